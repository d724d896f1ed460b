// §21.1: the file: full, renamed, truncated, shared; and what AUDIT_REQUIRED makes of it.
import { existsSync, readFileSync, renameSync, rmSync, symlinkSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { createLocalCatalog, definePrompt, defineTool } from '../../../src/index.ts';
import { stateless } from '../../support/clients/stateless.ts';
import { createAuditLog, parseAuditLines } from '../../support/gateway/audit-log.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { startGateway, type TestGateway } from '../../support/gateway/gateway.ts';
import { seriesOf } from '../../support/gateway/metrics.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';

/** Every write to it fails as on a full disk. */
const FULL = { AUDIT_LOG: 'file:/dev/full' };
const REQUIRED = { AUDIT_REQUIRED: 'true' };
const CALL = { name: 'counts', arguments: {} };

function createCountingCatalog() {
  const counted = { runs: 0 };
  const count = () => {
    counted.runs += 1;
  };
  const catalog = createLocalCatalog({
    tools: [
      defineTool({
        name: 'counts',
        description: '',
        inputSchema: { type: 'object' },
        run() {
          count();
          return { content: [] };
        },
      }),
    ],
    prompts: [
      definePrompt({
        name: 'counts',
        description: '',
        get() {
          count();
          return { messages: [] };
        },
      }),
    ],
  });
  return { counted, catalog };
}

const errorsOf = ({ log }: TestGateway) => log.filter(({ level }) => level === 'error');

describe('a full disk', () => {
  test('§21.1 audit: stops nothing; it is in the log once a minute, and counted', async () => {
    const { catalog, counted } = createCountingCatalog();
    const clock = manualClock();
    const gateway = closeAfterTest(await startGateway({ env: FULL, deps: { catalog, clock } }));
    for (let at = 0; at < 3; at += 1) {
      expect((await stateless(gateway, 'tools/call', CALL)).status).toBe(200);
    }
    expect(counted.runs).toBe(3);
    expect(errorsOf(gateway)).toMatchObject([
      { msg: expect.stringContaining('AUDIT_LOG'), cause: expect.stringContaining('ENOSPC') },
    ]);
    clock.advance(60_000);
    await stateless(gateway, 'tools/call', CALL);
    expect(errorsOf(gateway)).toHaveLength(2);
    const labels = { event: 'tool_call', status: 'error' };
    expect(await seriesOf(gateway, 'audit_lines_total', labels)).toBe(4);
  });

  test('§21.1 audit: with AUDIT_REQUIRED no call runs, in either era; lists do', async () => {
    const { catalog, counted } = createCountingCatalog();
    const gateway = closeAfterTest(
      await startGateway({ env: { ...FULL, ...REQUIRED }, deps: { catalog } }),
    );
    const session = await gateway.open();
    const refused = [
      await gateway.call(session, 'tools/call', CALL),
      await gateway.call(session, 'prompts/get', { name: 'counts' }),
      await stateless(gateway, 'tools/call', CALL),
      await stateless(gateway, 'prompts/get', { name: 'counts' }),
    ];
    for (const { status, json, headers } of refused) {
      expect([status, headers['retry-after']]).toEqual([503, '5']);
      expect(json).toMatchObject({
        id: 1,
        error: { code: -32000, data: { reason: 'audit_unavailable' } },
      });
    }
    expect(counted.runs).toBe(0);
    expect((await gateway.call(session, 'tools/list')).status).toBe(200);
  });

  test('§21.1 audit: when there is room again, lines are written, and the log says how many are lost', async () => {
    const { catalog } = createCountingCatalog();
    const folder = closeAfterTest(await createTemporaryFolder());
    const path = join(folder.path, 'audit.log');
    symlinkSync('/dev/full', path);
    const clock = manualClock();
    const gateway = closeAfterTest(
      await startGateway({ env: { AUDIT_LOG: `file:${path}` }, deps: { catalog, clock } }),
    );
    await stateless(gateway, 'tools/call', CALL);
    await stateless(gateway, 'tools/call', CALL);
    rmSync(path);
    clock.advance(1_000);
    await stateless(gateway, 'tools/call', CALL);
    expect(parseAuditLines(readFileSync(path, 'utf8'))).toMatchObject([
      { event: 'gap', lost: 2 },
      { event: 'tool_call', outcome: 'success' },
    ]);
    expect(gateway.log.filter(({ level }) => level === 'warn')).toMatchObject([{ lostLines: 2 }]);
  });
});

test('§4.3 ready: not while AUDIT_REQUIRED=true lets no call run; and again by itself', async () => {
  const { catalog } = createCountingCatalog();
  const folder = closeAfterTest(await createTemporaryFolder());
  const path = join(folder.path, 'audit.log');
  symlinkSync('/dev/full', path);
  const clock = manualClock();
  const env = { AUDIT_LOG: `file:${path}`, ...REQUIRED };
  const gateway = closeAfterTest(await startGateway({ env, deps: { catalog, clock } }));
  const ready = async () => {
    const { status, json } = await gateway.request({ path: '/health/ready' });
    return [status, json.checks.audit];
  };
  // With a key set at hand.
  await gateway.open();
  expect(await ready()).toEqual([200, { status: 'ok' }]);
  expect((await stateless(gateway, 'tools/call', CALL)).status).toBe(503);
  expect(await ready()).toEqual([503, { status: 'unavailable' }]);
  rmSync(path);
  clock.advance(1_000);
  expect(await ready()).toEqual([200, { status: 'ok' }]);
  expect(await ready()).toEqual([200, { status: 'ok' }]);
  expect(parseAuditLines(readFileSync(path, 'utf8'))).toMatchObject([{ event: 'gap', lost: 1 }]);
});

test('§4.3 ready: an audit log that is not required is no check', async () => {
  const gateway = closeAfterTest(await startGateway({ env: FULL }));
  await stateless(gateway, 'tools/call', CALL);
  const { status, json } = await gateway.request({ path: '/health/ready' });
  expect(status).toBe(200);
  expect(json.checks).not.toHaveProperty('audit');
});

test('§21.1 audit: with AUDIT_REQUIRED a line says that a call starts, and one what came of it', async () => {
  const { catalog } = createCountingCatalog();
  const audit = await createAuditLog();
  const gateway = closeAfterTest(
    await startGateway({ env: { ...audit.env, ...REQUIRED }, deps: { catalog } }),
  );
  await stateless(gateway, 'tools/call', CALL);
  await stateless(gateway, 'tools/call', { name: 'unknown', arguments: {} });
  expect(audit.lines()).toMatchObject([
    { outcome: 'started', tool: 'counts', user: 'user-1' },
    { outcome: 'success', tool: 'counts', user: 'user-1' },
    { outcome: 'started', tool: 'unknown' },
    { outcome: 'failure', tool: 'unknown' },
  ]);
});

test('§21.1 audit: a file that was renamed has a successor within a second; a truncated one goes on', async () => {
  const { catalog } = createCountingCatalog();
  const audit = await createAuditLog();
  const clock = manualClock();
  const gateway = closeAfterTest(await startGateway({ env: audit.env, deps: { catalog, clock } }));
  const call = () => stateless(gateway, 'tools/call', CALL);
  await call();
  renameSync(audit.path, `${audit.path}.1`);
  await call();
  expect(existsSync(audit.path)).toBe(false);
  clock.advance(1_000);
  await call();
  expect(parseAuditLines(readFileSync(`${audit.path}.1`, 'utf8'))).toHaveLength(2);
  expect(audit.lines()).toHaveLength(1);
  truncateSync(audit.path);
  await call();
  expect(audit.lines()).toHaveLength(1);
});

test('§21.1 audit: several gateways write the same file, each line whole', async () => {
  const { catalog } = createCountingCatalog();
  const audit = await createAuditLog();
  const start = async () =>
    closeAfterTest(await startGateway({ env: audit.env, deps: { catalog } }));
  const gateways = [await start(), await start()];
  await Promise.all(
    Array.from({ length: 200 }, (_, at) =>
      stateless(gateways[at % 2] as TestGateway, 'tools/call', CALL),
    ),
  );
  expect(audit.lines()).toHaveLength(200);
});

test('§21.1 audit: what callers choose is cut, and escaped where a terminal would act on it', async () => {
  const audit = await createAuditLog();
  const gateway = closeAfterTest(await startGateway({ env: audit.env }));
  const session = await gateway.open();
  await gateway.call(session, 'tools/call', {
    name: `\u001b[31m\u202e\u200e\u{e0041}${'x'.repeat(5_000)}\n{}`,
  });
  expect(audit.lines()).toHaveLength(1);
  expect(audit.lines()[0]?.tool).toHaveLength(256);
  expect(audit.text()).toMatch(/^[\x20-\x7e…]+\n$/);
  await gateway.call(session, 'tools/call', { name: '\u202e'.repeat(5_000) });
  expect(Buffer.byteLength(audit.text().split('\n')[1] ?? '')).toBeLessThan(4_096);
});

describe('settings that are refused', () => {
  test.each([
    [
      { AUDIT_LOG: '/var/log/audit.log' },
      'AUDIT_LOG: "/var/log/audit.log" is not valid. It must be stdout, or file:',
    ],
    [REQUIRED, 'AUDIT_LOG is missing: AUDIT_REQUIRED=true needs it. Set AUDIT_LOG=stdout'],
    [{ AUDIT_CLAIMS: 'true' }, 'AUDIT_LOG is missing: AUDIT_CLAIMS=true needs it.'],
  ])('§21.1 audit: %j', (env, problem) => {
    expect(() => loadConfig({ AUTH_REQUIRED: 'false', ...env })).toThrow(problem);
  });
});
