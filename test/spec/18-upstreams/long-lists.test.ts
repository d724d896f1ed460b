// §18.2, §18.5: what takes long for one caller is done in turns of the event loop, between which others are answered.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { ServerLists } from '../../../src/catalog/server-lists.ts';
import { GATEWAY_CALLER } from '../../../src/mcp/upstream/upstream.ts';
import { type Clock, systemClock } from '../../../src/platform/clock.ts';
import { openTestRuntime } from '../../support/gateway/runtime.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { openHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { buildTool, startListingServer } from '../../support/upstreams/listing-server.ts';

const TOOLS = 2_000;
/** A request that asks nobody has some ten turns of its own. */
const MANY = 100;

/** Whenever somebody looks, more time has passed than one turn may take. */
function hastyClock(): Clock {
  let passed = 0;
  return {
    ...systemClock,
    monotonic() {
      passed += 10;
      return systemClock.monotonic() + passed;
    },
  };
}

const serveTools = async (count: number) =>
  closeAfterTest(
    await startListingServer({
      tools: Array.from({ length: count }, (_, index) => buildTool(`tool_${index}`)),
      capabilities: { tools: {} },
    }),
  );

async function countTurns(work: Promise<unknown>): Promise<number> {
  let isDone = false;
  void work.finally(() => {
    isDone = true;
  });
  let turns = 0;
  while (!isDone) {
    await nextTurn();
    turns += 1;
  }
  return turns;
}

/** How many turns a list takes of a user of these groups, where another had it before. */
async function countTurnsOfList(conditions: number, tools: number, groups: readonly string[]) {
  const rules = Array.from({ length: conditions }, (_, index) => ({
    who: 'everyone',
    may: ['*'],
    when: `user.groups.exists(it, it == 'none-${index}') || tool.name.endsWith('_${index}')`,
  }));
  const { url } = await serveTools(tools);
  const gateway = await startForTest({
    file: { mcpServers: { s: { url, prefix: '' } }, rules },
    deps: { clock: hastyClock() },
  });
  await gateway.list('tools/list');
  const token = await gateway.issuer.sign({ sub: 'ann', groups });
  const session = await gateway.open({ token });
  const listing = gateway.rpc({ jsonrpc: '2.0', id: 1, method: 'tools/list' }, { session, token });
  return { turns: await countTurns(listing), listed: (await listing).json.result.tools.length };
}

test('§18.2 while a long list is read for the first time, others have their turn', async () => {
  const { url } = await serveTools(TOOLS);
  const { upstream, close } = await openHttpUpstream({ url });
  closeAfterTest({ close });
  const tools = await upstream.request(GATEWAY_CALLER, {
    method: 'tools/list',
    params: {},
    signal: new AbortController().signal,
    trace: {},
    logLevel: undefined,
  });
  const lists = new ServerLists(
    openTestRuntime({ clock: hastyClock() }),
    { ...upstream, request: async () => tools },
    { isPersonal: false, maxUsers: 1, signal: new AbortController().signal },
    { getLock: () => undefined, onChange() {} },
  );
  const loading = Promise.resolve(lists.load('tools', GATEWAY_CALLER, 'told'));
  expect(await countTurns(loading)).toBeGreaterThan(MANY);
  expect((await loading)?.items).toHaveLength(TOOLS);
});

test('§18.5 while rules decide on a long list, others have their turn', async () => {
  const { turns, listed } = await countTurnsOfList(8, TOOLS, []);
  expect(listed).toBe(8);
  expect(turns).toBeGreaterThan(MANY);
});

test('§18.5 while conditions look at the groups of one caller, others have their turn', async () => {
  const { turns, listed } = await countTurnsOfList(
    200,
    1,
    Array.from({ length: 300 }, (_, index) => `group-${index}`),
  );
  expect(listed).toBe(1);
  expect(turns).toBeGreaterThan(MANY);
});
