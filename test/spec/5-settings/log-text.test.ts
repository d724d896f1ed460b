// LOG_FORMAT=text: a line of the log for people.
import { expect, test } from 'vitest';
import { createLog } from '../../../src/platform/log.ts';

function write(run: (log: ReturnType<typeof createLog>) => void): string {
  let written = '';
  const destination = {
    write(text: string) {
      written += text;
    },
  };
  run(createLog('debug', { format: 'text', destination }));
  return written.replace(/^\d\d:\d\d:\d\d /gm, '');
}

test('§5 LOG_FORMAT=text: the level is a mark, and facts that the message says are not said again', () => {
  const written = write((log) => {
    log.error('It broke', { cause: new Error('disk full'), attempts: 3 });
    log.warn('The MCP server git is slow', { server: 'git' });
    log.info('Listening.', { host: '127.0.0.1', tls: { on: false } });
    log.debug('Done');
  });
  expect(written.split('\n')).toEqual([
    '✗ It broke (attempts: 3, cause: "disk full")',
    '! The MCP server git is slow',
    '· Listening. (host: 127.0.0.1, tls: {"on":false})',
    '  Done',
    '',
  ]);
});

test('§5 LOG_FORMAT=text: what others say cannot end a line, nor move the cursor', () => {
  const said = 'fine"\n12:00:00 ✗ forged\r\u001b[2J\u202e';
  const written = write((log) => log.warn(`It said ${said}`, { also: said }));
  expect(written.trimEnd().split('\n')).toHaveLength(1);
  expect(written).not.toMatch(/[\r\u001b\u202e]/);
  expect(written).toContain('It said fine"\\n12:00:00 ✗ forged\\r\\u001b[2J\\u202e');
});

test('§5 LOG_FORMAT=text: no fact looks like two, or like the end of them', () => {
  const written = write((log) =>
    log.warn('Refused.', {
      path: '/mcp',
      url: 'https://a.example/x',
      user: 'eve, error: none)',
      client: 'a" b',
      of: 'x=y',
      tools: ['a, b'],
      back: 'a\\b',
    }),
  );
  expect(written).toBe(
    '! Refused. (path: /mcp, url: https://a.example/x, user: "eve, error: none)", client: "a\\" b", of: "x=y", tools: ["a, b"], back: "a\\\\b")\n',
  );
});

test.each([
  { told: '\\u2800', blank: '\u2800' },
  { told: '\\ud834\\udd59', blank: '\u{1d159}' },
  { told: '\\ud80d\\udc41', blank: '\u{13441}' },
  { told: '\\ud80d\\udc42', blank: '\u{13442}' },
  { told: '\\ud81b\\udfe4', blank: '\u{16fe4}' },
])('§5 LOG_FORMAT=text: a blank is told by its code, $told', ({ told, blank }) => {
  expect(write((log) => log.warn(`Refused${blank}.`))).toBe(`! Refused${told}.\n`);
});
