// A process that gets no time of its processor: what Redis answers meanwhile lies in the socket, and is
// no outage of Redis.
import { afterEach, expect, test } from 'vitest';
import { writeFileIn } from '../support/catalogs/catalog-files.ts';
import {
  endPosterns,
  makeFolder,
  type RunningPostern,
  startPostern,
} from '../support/gateway/process.ts';
import { checkSession, openSession, rpc } from '../support/gateway/process-http.ts';
import { closeAfterTest } from '../support/lifetimes.ts';
import { startRedis } from '../support/stores/redis.ts';
import { chooseCount } from '../support/tools/long-run.ts';

const LONG = { timeout: 20_000 };
const TURNS = chooseCount(1, 2);
/** Longer than every time that the store is given: 250 ms for an answer, 2 s for a silent connection. */
const STALL_MS = 2600;

/** Tools that keep the process busy: in one piece, or in timers of which one is always due. */
const CATALOG = `
import { createLocalCatalog, defineTool } from 'postern/define';

const inputSchema = { type: 'object', additionalProperties: false };
function stall(ms) {
  const until = performance.now() + ms;
  while (performance.now() < until);
}
async function stallInPieces() {
  for (let piece = 0; piece < 20; piece += 1) {
    await new Promise((resolve) => setTimeout(() => resolve(stall(${STALL_MS} / 40)), 1));
  }
}
const done = { content: [] };
const inOnePiece = defineTool({
  name: 'in_one_piece',
  description: 'Blocks.',
  inputSchema,
  run() {
    stall(${STALL_MS});
    return done;
  },
});
const inTimers = defineTool({
  name: 'in_timers',
  description: 'Blocks in pieces.',
  inputSchema,
  async run() {
    // While one keeps it busy, the next of the other becomes due.
    await Promise.all([stallInPieces(), stallInPieces()]);
    return done;
  },
});
export default createLocalCatalog({ tools: [inOnePiece, inTimers] });
`;

afterEach(endPosterns);

async function start(): Promise<RunningPostern> {
  const redis = closeAfterTest(await startRedis());
  const cwd = await makeFolder();
  await writeFileIn(cwd, 'catalog.mjs', CATALOG);
  const env = {
    REDIS_URL: redis.url,
    AUTH_REQUIRED: 'false',
    OAUTH_CONSENT: 'off',
    MCP_RATE_LIMIT_MAX: '1000000',
    MCP_GLOBAL_RATE_LIMIT_MAX: '1000000',
  };
  const postern = await startPostern(env, { cwd, args: ['start', '--catalog', 'catalog.mjs'] });
  const isReady = async () => (await fetch(`${postern.url}/health/ready`)).status;
  await expect.poll(isReady, LONG).toBe(200);
  return postern;
}

/** Calls without a pause, each in a session; stops when `isOver` says so. Resolves to all statuses. */
async function callUntil({ url }: RunningPostern, isOver: () => boolean): Promise<number[]> {
  const session = await openSession(url);
  const statuses: number[] = [];
  const callers = Array.from({ length: 16 }, async () => {
    while (!isOver()) statuses.push(await checkSession(url, { session }));
  });
  await Promise.all(callers);
  return statuses;
}

async function pass(ms: number): Promise<void> {
  const since = performance.now();
  await expect.poll(() => performance.now() - since, LONG).toBeGreaterThan(ms);
}

const linesOf = (postern: RunningPostern) =>
  postern.log().filter(({ level }) => level !== 'info' && level !== 'debug');

test.each(['in_one_piece', 'in_timers'])(
  '§8.5 a tool that keeps the process busy for longer than all time-outs, %s: no outage, no wrong answer',
  async (name) => {
    const postern = await start();
    let isOver = false;
    const calls = callUntil(postern, () => isOver);
    const session = await openSession(postern.url);
    for (let turn = 0; turn < TURNS; turn += 1) {
      const params = { name, arguments: {} };
      const call = { jsonrpc: '2.0', id: turn, method: 'tools/call', params };
      const answer = await rpc(postern.url, call, { session });
      expect(await answer.json()).toMatchObject({ result: { content: [] } });
    }
    isOver = true;
    expect([...new Set(await calls)]).toEqual([200]);
    expect(linesOf(postern)).toEqual([]);
  },
);

test('§8.5 a process that is stopped for a while: no outage, no wrong answer', async () => {
  const postern = await start();
  let isOver = false;
  const calls = callUntil(postern, () => isOver);
  for (let turn = 0; turn < TURNS; turn += 1) {
    await openSession(postern.url);
    postern.kill('SIGSTOP');
    await pass(3000);
    postern.kill('SIGCONT');
    await openSession(postern.url);
    // Long enough to be two stalls, and not one that goes on: that would be an overload (§12).
    await pass(1000);
  }
  isOver = true;
  expect([...new Set(await calls)]).toEqual([200]);
  expect(linesOf(postern)).toEqual([]);
});
