// §21.1: the audit log of the built service: beside the log, over several workers, and with a limit on the file's size.
import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { statelessRequest } from '../support/clients/stateless.ts';
import { parseAuditLines } from '../support/gateway/audit-log.ts';
import {
  endPosterns,
  makeFolder,
  type RunningPostern,
  runPostern,
  startPostern,
} from '../support/gateway/process.ts';
import { startWorkers } from '../support/gateway/workers.ts';

afterEach(endPosterns);

const OPEN = { AUTH_REQUIRED: 'false' };

async function call({ url }: RunningPostern, name = 'service_ping'): Promise<number> {
  const { message, headers } = statelessRequest('tools/call', { name, arguments: {} });
  const answer = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(message),
  });
  await answer.text();
  return answer.status;
}

test('§21.1 audit: stdout has its lines among those of the log', async () => {
  const postern = await startPostern({ ...OPEN, AUDIT_LOG: 'stdout' });
  expect(await call(postern)).toBe(200);
  postern.kill('SIGTERM');
  await postern.ended;
  const lines = postern.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines.filter((line) => 'event' in line)).toMatchObject([
    { event: 'tool_call', outcome: 'success', tool: 'service_ping' },
  ]);
  expect(lines.filter((line) => 'level' in line && 'event' in line)).toEqual([]);
});

test('§21.1 audit: all workers write the same file, each line whole', async () => {
  const path = join(await makeFolder(), 'audit.log');
  const postern = await startWorkers({ env: { AUDIT_LOG: `file:${path}` } });
  const statuses = await Promise.all(Array.from({ length: 100 }, () => call(postern, 'who')));
  expect(new Set(statuses)).toEqual(new Set([200]));
  expect(parseAuditLines(readFileSync(path, 'utf8'))).toHaveLength(100);
});

test('§21.1 audit: after a line of which only a part could be written, the next is whole', async () => {
  const path = join(await makeFolder(), 'audit.log');
  const postern = await startPostern({
    ...OPEN,
    AUDIT_LOG: `file:${path}`,
    AUDIT_REQUIRED: 'true',
  });
  const limit = (bytes: number | 'unlimited') =>
    execFileSync('prlimit', ['--pid', String(postern.pid), `--fsize=${bytes}:unlimited`]);
  expect(await call(postern)).toBe(200);
  const before = statSync(path).size;
  limit(before + 20);
  expect([await call(postern), await call(postern)]).toEqual([503, 503]);
  limit('unlimited');
  expect(await call(postern)).toBe(200);
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  expect(lines).toHaveLength(5);
  expect(lines[2]).toHaveLength(20);
  for (const whole of lines.filter((_, at) => at !== 2)) {
    expect(JSON.parse(whole)).toMatchObject({ event: 'tool_call' });
  }
  const said = postern.log().filter(({ msg }) => msg.startsWith('The audit log'));
  expect(said).toMatchObject([{ level: 'error' }, { level: 'warn', lostLines: 2 }]);
});

test('§21.1 audit: a file that cannot be opened stops the start', async () => {
  const { code, stderr } = await runPostern({
    ...OPEN,
    AUDIT_LOG: 'file:/no/such/folder/audit.log',
  });
  expect(code).toBe(1);
  expect(stderr).toContain(
    'AUDIT_LOG: /no/such/folder/audit.log cannot be opened for writing (ENOENT). Its folder must exist',
  );
});
