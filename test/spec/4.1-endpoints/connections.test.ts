// §12: MAX_CONNECTIONS: a newcomer is served in place of whoever is idle longest.
import { EventEmitter, once } from 'node:events';
import { afterEach, describe, expect, test } from 'vitest';
import { createLocalCatalog, defineTool } from '../../../src/index.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { startGateway, type TestGateway } from '../../support/gateway/gateway.ts';
import {
  flushLoopback,
  type ManualConnection,
  openConnection,
  postHead,
} from '../../support/gateway/manual-connection.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

const ends = new EventEmitter().setMaxListeners(0);
let running = 0;
const catalog = createLocalCatalog({
  tools: [
    defineTool({
      name: 'waits',
      description: 'Runs until the test says so.',
      inputSchema: { type: 'object' },
      async run() {
        running++;
        await once(ends, 'end');
        running--;
        return { content: [] };
      },
    }),
  ],
});

const HEALTH = 'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n';
const METADATA = 'GET /.well-known/oauth-authorization-server HTTP/1.1\r\nHost: localhost\r\n\r\n';

let gateway: TestGateway;
let port: number;
const opened: ManualConnection[] = [];

afterEach(async () => {
  ends.emit('end');
  for (const { socket } of opened.splice(0)) socket.destroy();
});

async function start(max: number): Promise<void> {
  gateway = closeAfterTest(
    await startGateway({ env: { MAX_CONNECTIONS: String(max) }, deps: { catalog } }),
  );
  port = await gateway.listen();
}

async function open(first = ''): Promise<ManualConnection> {
  const slow = await openConnection(port, first);
  opened.push(slow);
  await flushLoopback();
  return slow;
}

async function openMany(count: number, first = ''): Promise<readonly ManualConnection[]> {
  const all = [];
  for (let at = 0; at < count; at++) all.push(await open(first));
  return all;
}

/** Connections on which a call runs. */
async function openBusy(count: number): Promise<readonly ManualConnection[]> {
  const before = running;
  const body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"waits"}}';
  const own = { token: await gateway.issuer.sign(), session: await gateway.open() };
  const head = postHead({ path: '/mcp', ...own, length: body.length });
  const all = await openMany(count, head + body);
  await expect.poll(() => running).toBe(before + count);
  return all;
}

const answerOf = async (slow: ManualConnection, request: string): Promise<string> => {
  const before = slow.received.length;
  slow.send(request);
  await expect.poll(() => slow.received.length).toBeGreaterThan(before);
  return slow.received.slice(before);
};

const closedOf = (all: readonly ManualConnection[]) =>
  all.flatMap(({ isClosed }, at) => (isClosed ? [at] : []));

describe('MAX_CONNECTIONS', () => {
  test('§12 of connections that send nothing the oldest makes room', async () => {
    await start(5);
    const idle = await openMany(5);
    const newcomers = await openMany(2);
    await expect.poll(() => closedOf(idle)).toEqual([0, 1]);
    for (const one of newcomers) expect(await answerOf(one, METADATA)).toMatch(/^HTTP\/1\.1 200/);
    expect(closedOf(idle)).toEqual([0, 1]);
  });

  test('§12 idle begins with the end of the last answer', async () => {
    await start(3);
    const [first, ...others] = await openMany(3);
    if (first === undefined) throw new Error('There is no first one.');
    await answerOf(first, METADATA);
    await openMany(2);
    await expect.poll(() => closedOf(others)).toEqual([0, 1]);
    expect(first.isClosed).toBe(false);
  });

  test('§12 a head that does not end is idle, too; a request under way is not', async () => {
    await start(4);
    const busy = await openBusy(2);
    const slow = await openMany(2, 'GET /health HT');
    await openMany(2);
    await expect.poll(() => closedOf(slow)).toEqual([0, 1]);
    expect(closedOf(busy)).toEqual([]);
  });

  test('§12 who announces a body and sends none of it makes room, when nobody is idle', async () => {
    const clock = manualClock();
    gateway = closeAfterTest(
      await startGateway({ env: { MAX_CONNECTIONS: '3' }, deps: { catalog, clock } }),
    );
    port = await gateway.listen();
    const [busy] = await openBusy(1);
    const head = postHead({ path: '/oauth/token', length: 60_000 });
    const holders = await openMany(2, head);
    for (let second = 0; second < 3; second += 1) {
      clock.advance(1000);
      await flushLoopback();
    }
    const newcomer = await open();
    expect(await answerOf(newcomer, METADATA)).toMatch(/^HTTP\/1\.1 200/);
    await expect.poll(() => closedOf(holders)).toEqual([0]);
    expect(busy?.isClosed).toBe(false);
  });

  test('§12 while all are busy /health is served, and everything else is 503', async () => {
    await start(3);
    const busy = await openBusy(3);
    const probe = await open(HEALTH);
    await probe.closed;
    expect(probe.received).toMatch(/^HTTP\/1\.1 200 /);
    expect(probe.received).toMatch(/^Connection: close\r$/m);
    const other = await open(METADATA);
    await other.closed;
    expect(other.received).toMatch(/^HTTP\/1\.1 503 /);
    expect(other.received).toMatch(/^Retry-After: 1\r$/m);
    expect(other.received).toMatch(/^X-Content-Type-Options: nosniff\r$/m);
    expect(other.received).toContain('MAX_CONNECTIONS');
    expect(closedOf(busy)).toEqual([]);

    // One that came meanwhile has its place as soon as another is idle.
    const waiting = await open();
    ends.emit('end');
    await expect.poll(() => running).toBe(0);
    expect(await answerOf(waiting, METADATA)).toMatch(/^HTTP\/1\.1 200/);
    await expect.poll(() => closedOf(busy)).toHaveLength(1);
    expect(waiting.isClosed).toBe(false);
  });

  test('§12 beyond the limit there are few, and the newest of them is heard', async () => {
    await start(3);
    const busy = await openBusy(3);
    const beyond = await openMany(1060);
    await expect.poll(() => closedOf(beyond)).toHaveLength(36);
    expect(closedOf(beyond).at(-1)).toBe(35);
    const probe = await open(HEALTH);
    await probe.closed;
    expect(probe.received).toMatch(/^HTTP\/1\.1 200 /);
    expect(closedOf(busy)).toEqual([]);
  });

  test('§12 it is said in the log, once a minute', async () => {
    await start(3);
    await openMany(6);
    const lines = gateway.log.filter(({ msg }) => String(msg).includes('MAX_CONNECTIONS'));
    expect(lines).toEqual([expect.objectContaining({ level: 'warn', connections: 3 })]);
  });

  test('§12 0 means no limit', async () => {
    await start(0);
    const all = await openMany(50);
    expect(await answerOf(await open(), METADATA)).toMatch(/^HTTP\/1\.1 200/);
    expect(closedOf(all)).toEqual([]);
  });
});
