// npm run walk: shows what a warm call executes.
import { statSync } from 'node:fs';
import { afterEach, expect, test } from 'vitest';
import { endPosterns, runPostern } from '../support/gateway/process.ts';

const ROOT = new URL('../../', import.meta.url);

const runWalk = (...args: readonly string[]) =>
  runPostern({}, { npm: true, args: ['-s', 'walk', '--', ...args] });

afterEach(endPosterns);

test('§1 walk: tools/list names the files, functions and imports of one warm call', async () => {
  const { code, stdout, stderr } = await runWalk('tools/list', '--functions');
  expect(stderr).toBe('');
  expect(code).toBe(0);
  const [title = ''] = stdout.split('\n');
  expect(title).toMatch(/^tools\/list: /);

  const rooms = [...stdout.matchAll(/^ {2}([a-z/]\S*) +(\d+) files? +(\d+) functions?$/gm)];
  expect(rooms[0]?.[1]).toBe('http/server');
  expect(rooms.map(([, room]) => room)).toContain('mcp/calls');
  const files = [...stdout.matchAll(/^ {4}([\w/.-]+\.ts) +(\d+)$/gm)];
  expect(files.map(([, file]) => file)).toContain('http/server/server.ts');
  expect(files.map(([, file]) => file)).toContain('logins/auth/token-verifier.ts');
  expect(files.filter(([, file]) => !isFile(`src/${file}`))).toEqual([]);
  // What only another method executes, what only the start of the service does, and what tests and scripts are.
  expect(files.map(([, file]) => file)).not.toContain('logins/broker/token.ts');
  expect(files.map(([, file]) => file)).not.toContain('gateway/gateway.ts');
  const functions = [...stdout.matchAll(/^ {6}(\S.*) :\d+( ×\d+)?$/gm)];
  expect(functions.map(([, name]) => name)).toContain('handle');
  // What a timer runs.
  expect(functions.map(([, name]) => name)).not.toContain('tick');

  const arrows = [...stdout.matchAll(/^ {2}(\S+) → (\S+)$/gm)];
  expect(arrows.filter(([, from, to]) => from === to)).toEqual([]);
  expect(stdout).toContain('\n  logins/auth → platform\n');
  expect(stdout).toContain(
    `\n${files.length} files, ${functions.length} functions, ${arrows.length} arrows\n`,
  );
  expect(sum(rooms.map(([, , count]) => count))).toBe(files.length);
  expect(sum(rooms.map(([, , , count]) => count))).toBe(functions.length);
  expect(sum(files.map(([, , count]) => count))).toBe(functions.length);
});

test('§1 walk: a method that it does not know is answered with those that it knows', async () => {
  const { code, stdout, stderr } = await runWalk('tools/cal');
  expect(code).toBe(2);
  expect(stdout).toBe('');
  expect(stderr).toBe(
    'There is no walk "tools/cal". There are tools/call, relay, tools/list, initialize, token, authorize.\n',
  );
});

const isFile = (path: string): boolean =>
  statSync(new URL(path, ROOT), { throwIfNoEntry: false })?.isFile() === true;

const sum = (counts: readonly (string | undefined)[]): number =>
  counts.reduce((total, count) => total + Number(count), 0);
