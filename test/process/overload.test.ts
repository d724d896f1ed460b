// A process that is asked for several times of what it can serve.
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';
import { writeFileIn } from '../support/catalogs/catalog-files.ts';
import {
  endPosterns,
  makeFolder,
  type RunningPostern,
  startPostern,
} from '../support/gateway/process.ts';
import { openSession, rpc } from '../support/gateway/process-http.ts';

const LONG = { timeout: 30_000 };

const CATALOG = `
import { createLocalCatalog, defineTool } from 'postern/define';

const costly = defineTool({
  name: 'costly',
  description: 'Takes so many milliseconds of CPU.',
  inputSchema: { type: 'object', properties: { ms: { type: 'number' } }, required: ['ms'] },
  run({ ms }) {
    const until = performance.now() + ms;
    while (performance.now() < until);
    return { content: [] };
  },
});
export default createLocalCatalog({ tools: [costly] });
`;

afterEach(endPosterns);

async function start(): Promise<RunningPostern> {
  const cwd = await makeFolder();
  await writeFileIn(cwd, 'catalog.mjs', CATALOG);
  const env = {
    AUTH_REQUIRED: 'false',
    MCP_RATE_LIMIT_MAX: '1000000',
    MCP_GLOBAL_RATE_LIMIT_MAX: '1000000',
    METRICS_ENABLED: 'true',
  };
  return startPostern(env, { cwd, args: ['start', '--catalog', 'catalog.mjs'] });
}

const renderCall = (ms: number) => ({
  ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
  params: { name: 'costly', arguments: { ms } },
});

test('§12 overload: some calls are refused, the others answered, /health is served; then all is well again', async () => {
  const postern = await start();
  const session = await openSession(postern.url);
  const call = renderCall(20);

  // Node.js accepts one connection in each turn of the event loop, so they are opened before.
  const health = () => fetch(`${postern.url}/health`).then((answer) => answer.arrayBuffer());
  await Promise.all(Array.from({ length: 200 }, health));

  const counts = new Map<number, number>();
  const retryAfter = new Set<string | null>();
  let isOver = false;
  const callers = Array.from({ length: 200 }, async () => {
    while (!isOver) {
      const answer = await rpc(postern.url, call, { session });
      await answer.arrayBuffer();
      counts.set(answer.status, (counts.get(answer.status) ?? 0) + 1);
      if (answer.status === 503) retryAfter.add(answer.headers.get('retry-after'));
    }
  });
  await expect.poll(() => counts.get(503) ?? 0, LONG).toBeGreaterThan(100);
  const served = counts.get(200) ?? 0;
  expect((await fetch(`${postern.url}/health`)).status).toBe(200);
  await expect.poll(() => counts.get(200) ?? 0, LONG).toBeGreaterThan(served + 50);
  isOver = true;
  await Promise.all(callers);
  expect([...counts.keys()].sort()).toEqual([200, 503]);
  expect([...retryAfter]).toEqual(['1']);

  const after = await Promise.all(
    Array.from({ length: 20 }, () => rpc(postern.url, call, { session })),
  );
  expect(after.map(({ status }) => status)).toEqual(Array(20).fill(200));
  const warnings = postern.log().filter(({ level }) => level === 'warn' || level === 'error');
  expect(warnings.map(({ msg }) => msg)).toEqual([expect.stringMatching(/^More calls come/)]);
});

test('§12 connections that come at once do not wait until all calls of others are served', async () => {
  const postern = await start();
  const session = await openSession(postern.url);
  const makeCalls = () =>
    Array.from({ length: 200 }, async () => {
      const answer = await rpc(postern.url, renderCall(1), { session });
      await answer.arrayBuffer();
      return answer.status;
    });
  // For the connections, which are used again.
  await Promise.all(makeCalls());
  const before = await countCalls(postern);

  // While the process is stopped, the system takes calls and connections.
  postern.kill('SIGSTOP');
  const calls = makeCalls();
  const probes = await Promise.all(Array.from({ length: 60 }, () => connectProbe(postern)));
  postern.kill('SIGCONT');
  const counts = await Promise.all(probes.map((readCount) => readCount()));

  // Node.js accepts one connection in each turn of the event loop, and in each of these one call runs.
  expect(Math.max(...counts) - before).toBeLessThan(2 * probes.length);
  expect([...new Set(await Promise.all(calls))]).toEqual([200]);
});

/** Calls that have been served. */
const countCalls = async (postern: RunningPostern): Promise<number> =>
  (await connectProbe(postern))();

/** Resolves when it is connected; what it returns resolves to the number of calls that were served before it. */
async function connectProbe({ url }: RunningPostern): Promise<() => Promise<number>> {
  const sent = get(`${url}/metrics`, { agent: false });
  const answered = once(sent, 'response');
  const [socket] = await once(sent, 'socket');
  await once(socket, 'connect');
  return async () => {
    const [answer] = (await answered) as [IncomingMessage];
    const [, count] = /^mcp_tool_invocations_total\{.*\} (\d+)/m.exec(await text(answer)) ?? [];
    return Number(count);
  };
}
