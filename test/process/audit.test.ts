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
  expect(lines).toHaveLength(6);
  expect(lines[2]).toHaveLength(20);
  expect(lines.filter((_, at) => at !== 2).map((line) => JSON.parse(line))).toMatchObject([
    { event: 'tool_call', outcome: 'started' },
    { event: 'tool_call', outcome: 'success' },
    { event: 'gap', lost: 2 },
    { event: 'tool_call', outcome: 'started' },
    { event: 'tool_call', outcome: 'success' },
  ]);
  const said = postern.log().filter(({ msg }) => msg.startsWith('The audit log'));
  expect(said).toMatchObject([{ level: 'error' }, { level: 'warn', lostLines: 2 }]);
});

test('§21.1 audit: a part of a line is not continued by another process either', async () => {
  const path = join(await makeFolder(), 'audit.log');
  const env = { ...OPEN, AUDIT_LOG: `file:${path}` };
  const [torn, other] = [await startPostern(env), await startPostern(env)];
  await call(torn);
  execFileSync('prlimit', ['--pid', String(torn.pid), `--fsize=${statSync(path).size + 20}`]);
  await call(torn);
  await call(other);
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  expect(lines).toHaveLength(3);
  expect(lines[1]).toHaveLength(20);
  expect(JSON.parse(lines[2] ?? '')).toMatchObject({ event: 'tool_call', outcome: 'success' });
});

/** Long lines, so that fewer of them fill what waits. */
const LONG = '\u202e'.repeat(200);

async function countLost({ url }: RunningPostern): Promise<number> {
  const metrics = await (await fetch(`${url}/metrics`)).text();
  return Number(/^audit_lines_total\{[^}]*status="error"[^}]*\} (\d+)/m.exec(metrics)?.[1] ?? 0);
}

test('§21.1 audit: a reader of stdout that is stuck stops nothing; what is lost is counted and said', async () => {
  const postern = await startPostern({
    ...OPEN,
    AUDIT_LOG: 'stdout',
    METRICS_ENABLED: 'true',
    RATE_LIMIT_ENABLED: 'false',
  });
  postern.reading.stop();
  for (let calls = 0; calls < 3_000 && (await countLost(postern)) === 0; calls += 20) {
    const statuses = await Promise.all(Array.from({ length: 20 }, () => call(postern, LONG)));
    expect(new Set(statuses)).toEqual(new Set([200]));
  }
  const lost = await countLost(postern);
  expect(lost).toBeGreaterThan(0);
  postern.reading.goOn();
  await expect
    .poll(async () => (await call(postern)) && postern.stdout, { timeout: 20_000 })
    .toContain('"event":"gap"');
  postern.kill('SIGTERM');
  await postern.ended;
  const lines = postern.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  const gaps = lines.filter(({ event }) => event === 'gap').map((line) => line.lost);
  expect(gaps.reduce((sum, one) => sum + one, 0)).toBeGreaterThanOrEqual(lost);
  expect(lines.filter(({ level }) => level === 'error')).toMatchObject([
    { msg: expect.stringContaining('lines are lost') },
  ]);
});

test('§21.1 audit: with AUDIT_REQUIRED a call does not run while nobody reads stdout', async () => {
  const postern = await startPostern({
    ...OPEN,
    AUDIT_LOG: 'stdout',
    AUDIT_REQUIRED: 'true',
    RATE_LIMIT_ENABLED: 'false',
  });
  postern.reading.stop();
  let status = 200;
  for (let calls = 0; calls < 3_000 && status === 200; calls += 1) {
    status = await call(postern, LONG);
  }
  expect(status).toBe(503);
  expect((await fetch(`${postern.url}/health/ready`)).status).toBe(503);
  postern.reading.goOn();
  await expect
    .poll(async () => (await fetch(`${postern.url}/health/ready`)).status, { timeout: 20_000 })
    .toBe(200);
  expect(await call(postern)).toBe(200);
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
