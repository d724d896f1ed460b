// §2.1: WORKERS, several processes that serve one port as one service.
import { connect } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import type { EventStream } from '../support/clients/event-stream.ts';
import { INITIALIZE_REQUEST } from '../support/gateway/gateway.ts';
import { endPosterns } from '../support/gateway/process.ts';
import { endSession } from '../support/gateway/process-http.ts';
import {
  connectToEach,
  isAlive,
  startWorkers,
  type WorkerConnection,
} from '../support/gateway/workers.ts';

afterEach(endPosterns);

/** A service, a connection to each of its two workers, and a session of a client that answers questions. */
async function startPair(env = {}) {
  const service = await startWorkers({ env });
  const [one, other] = await connectToEach(service.port);
  if (one === undefined || other === undefined) throw new Error('There are not two workers');
  const { params } = INITIALIZE_REQUEST;
  const opened = await one.post({
    ...INITIALIZE_REQUEST,
    params: { ...params, capabilities: { elicitation: {} } },
  });
  await opened.text();
  return { service, one, other, session: String(opened.headers['mcp-session-id']) };
}

const headersOf = (session: string) => ({ 'mcp-session-id': session });

/** The last message of a call. */
async function lastOf(stream: EventStream) {
  return (await stream.rest()).at(-1);
}

test('§2.1 workers: both answer at one port, with the same sessions', async () => {
  const { service, one, other, session } = await startPair();
  expect(new Set([service.pid, one.pid, other.pid]).size).toBe(3);
  for (const worker of [one, other]) {
    const answer = await worker.call('who', session);
    expect(JSON.parse(await answer.text()).result.content[0].text).toBe(String(worker.pid));
  }
  expect(await endSession(service.url, { session })).toBe(204);
  for (const worker of [one, other]) {
    const answer = await worker.call('who', session);
    expect(answer.status).toBe(404);
    await answer.text();
  }
});

test('§16 workers: what one of them asks is answered at the other', async () => {
  const { one, other, session } = await startPair();
  const stream = await one.call('asks', session);
  const { id } = await stream.next();
  const result = { action: 'accept', content: { name: 'Ada' } };
  const answered = await other.post({ jsonrpc: '2.0', id, result }, headersOf(session));
  expect(answered.status).toBe(202);
  await answered.text();
  expect(await lastOf(stream)).toMatchObject({ result: { content: [{ text: 'Ada' }] } });
});

test('§16 workers: a call of one of them is cancelled at the other', async () => {
  const { one, other, session } = await startPair();
  const stream = await one.call('waits', session);
  expect(await stream.next()).toMatchObject({ method: 'notifications/message' });
  const method = 'notifications/cancelled';
  const cancelled = await other.post(
    { jsonrpc: '2.0', method, params: { requestId: 'waits' } },
    headersOf(session),
  );
  expect(cancelled.status).toBe(202);
  await cancelled.text();
  expect(await lastOf(stream)).toMatchObject({ error: { data: { reason: 'request_cancelled' } } });
});

test('§8.2 workers: all count a caller together', async () => {
  const { one, other, session } = await startPair({ MCP_RATE_LIMIT_MAX: '20' });
  const statuses: number[] = [];
  for (let turn = 0; turn < 20; turn += 1) {
    const answer = await (turn % 2 ? one : other).call('who', session);
    await answer.text();
    statuses.push(answer.status);
  }
  // The connections and the session took a few.
  expect(new Set(statuses)).toEqual(new Set([200, 429]));
  expect(statuses.slice(statuses.indexOf(429))).not.toContain(200);
});

describe('metrics', () => {
  const countCalls = (text: string) =>
    Number(/^mcp_tool_invocations_total\{tool="who".*\} (\d+)$/m.exec(text)?.[1]);
  const scrape = async (worker: WorkerConnection) => (await worker.get('/metrics')).text();

  test('§4.11 workers: whichever is asked, the figures are those of all', async () => {
    const { one, other, session } = await startPair({ METRICS_ENABLED: 'true' });
    // Of those who answer, each was asked once.
    for (const worker of [one, one, one, other]) await (await worker.call('who', session)).text();
    const text = await scrape(one);
    const calls = countCalls(text);
    expect(calls).toBeGreaterThanOrEqual(6);
    expect(countCalls(await scrape(other))).toBe(calls);
    expect(text).toMatch(/^mcp_tool_duration_seconds_bucket\{le="10",tool="who",.*\} (\d+)$/m);
    expect(text).toContain(
      `mcp_tool_duration_seconds_count{tool="who",status="success",era="session"} ${calls}\n`,
    );
    // One for each connection, and that of the calls.
    expect(text).toContain(`\nmcp_sessions_active ${calls - 3}\n`);
    expect(text).toMatch(/^nodejs_version_info\{.*\} 1$/m);
    expect(text).not.toContain('_total_total');
    expect(text.match(/^# EOF$/gm)).toHaveLength(1);
    expect(text.endsWith('\n# EOF\n')).toBe(true);
    expect(text.match(/^# TYPE mcp_tool_invocations counter$/gm)).toHaveLength(1);
  });

  test('§4.11 workers: what one of them has counted stays in the sum when it dies', async () => {
    const { one, other, session } = await startPair({ METRICS_ENABLED: 'true' });
    for (const worker of [one, one, other]) await (await worker.call('who', session)).text();
    const calls = countCalls(await scrape(other));
    process.kill(one.pid, 'SIGKILL');
    await expect.poll(() => isAlive(one.pid)).toBe(false);
    expect(countCalls(await scrape(other))).toBe(calls);
  });

  test('§4.11 workers: of one that is too busy to answer, what it had counted is in the sum', async () => {
    const { one, other, session } = await startPair({ METRICS_ENABLED: 'true' });
    for (const worker of [one, other]) await (await worker.call('who', session)).text();
    const calls = countCalls(await scrape(other));
    process.kill(one.pid, 'SIGSTOP');
    expect(countCalls(await scrape(other))).toBe(calls);
    process.kill(one.pid, 'SIGCONT');
  });
});

describe('a worker that dies', () => {
  test('§17 workers: is replaced, while the other one serves on', async () => {
    const { service, one, other, session } = await startPair();
    process.kill(one.pid, 'SIGKILL');
    for (let call = 0; call < 50; call += 1) {
      const answer = await other.call('works', session);
      expect([answer.status, JSON.parse(await answer.text()).result.content[0].text]).toEqual([
        200,
        String(other.pid),
      ]);
    }
    await expect.poll(() => service.stdout).toContain('"A new worker is serving."');
    const after = await connectToEach(service.port);
    expect(after.map(({ pid }) => pid)).not.toContain(one.pid);
    expect(after.map(({ pid }) => pid)).toContain(other.pid);
    expect(service.log()).toContainEqual(
      expect.objectContaining({ level: 'error', pid: one.pid, code: null, signal: 'SIGKILL' }),
    );
    expect(service.hasEnded).toBe(false);
  });

  test('§17 workers: one that ends by SIGTERM finishes its calls first', async () => {
    const { service, one, session } = await startPair();
    const call = await one.call('reports', session);
    await call.next();
    process.kill(one.pid, 'SIGTERM');
    expect(await lastOf(call)).toMatchObject({ result: { content: [{ text: String(one.pid) }] } });
    await expect.poll(() => service.stdout).toContain('"A new worker is serving."');
    expect(service.log().filter(({ level }) => level !== 'info')).toEqual([]);
  });

  test('§17 workers: a connection that was on its way to it is closed', async () => {
    const { service, one } = await startPair();
    process.kill(one.pid, 'SIGSTOP');
    // Those that the frozen one should take up wait for it, the others are answered.
    const open = Array.from({ length: 6 }, () => {
      const socket = connect(service.port, '127.0.0.1');
      socket.on('error', () => {});
      socket.write('GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n');
      const closed = new Promise<string>((resolve) =>
        socket.once('close', () => resolve('closed')),
      );
      const answered = new Promise<string>((resolve) =>
        socket.once('data', () => resolve('answered')),
      );
      return { socket, end: Promise.race([answered, closed]) };
    });
    await Promise.any(open.map(({ end }) => end));
    process.kill(one.pid, 'SIGKILL');
    const ends = await Promise.all(open.map(({ end }) => end));
    for (const { socket } of open) socket.destroy();
    expect(ends.sort()).toEqual([...Array(5).fill('answered'), 'closed']);
  });

  test('§17 workers: under load no connection is left waiting when it dies', async () => {
    const { service, one, other } = await startPair();
    // All go to one worker, and the main process has more for it with each that it takes.
    process.kill(other.pid, 'SIGSTOP');
    let open = 0;
    let ended = 0;
    let isStopping = false;
    function keepConnecting(): void {
      if (isStopping) return;
      open += 1;
      const socket = connect(service.port, '127.0.0.1');
      socket.write('GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n');
      socket.on('error', () => {}).once('data', () => socket.destroy());
      socket.once('close', () => {
        open -= 1;
        ended += 1;
        keepConnecting();
      });
    }
    for (let client = 0; client < 20; client += 1) keepConnecting();
    await expect.poll(() => ended).toBeGreaterThan(200);
    process.kill(one.pid, 'SIGKILL');
    process.kill(other.pid, 'SIGCONT');
    isStopping = true;
    await expect.poll(() => open).toBe(0);
  });

  test('§17 workers: one that dies again and again at start is replaced ever more slowly', async () => {
    const { service, one } = await startPair();
    const deaths = () => service.log().filter(({ signal }) => signal === 'SIGKILL');
    const replacements = () =>
      service.log().filter(({ msg }) => msg === 'A new worker is serving.');
    let pid = one.pid;
    for (let death = 1; death <= 3; death += 1) {
      process.kill(pid, 'SIGKILL');
      await expect.poll(() => replacements().length).toBe(death);
      pid = Number(replacements().at(-1)?.pid);
    }
    expect(deaths().map(({ replacedInMs }) => replacedInMs)).toEqual([0, 1000, 2000]);
  });
});
