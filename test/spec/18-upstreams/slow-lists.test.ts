// A server that lists slowly costs nobody but its own names.
import { expect, test } from 'vitest';
import { ServerLists } from '../../../src/catalog/server-lists.ts';
import { GATEWAY_CALLER } from '../../../src/mcp/upstream/upstream.ts';
import { type ManualClock, manualClock } from '../../support/gateway/clock.ts';
import { openTestRuntime } from '../../support/gateway/runtime.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { countSeconds, pause } from '../../support/upstreams/as-seconds-pass.ts';
import { startForTest as start } from '../../support/upstreams/catalog-gateway.ts';
import { openHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { buildTool, serveForTest as serve } from '../../support/upstreams/listing-server.ts';

const PATIENT = { timeout: 20_000 };
const NEVER = new Promise(() => {});

/** It answers everything but its lists. */
const serveSlow = () =>
  serve({
    answers: {
      'tools/list': () => NEVER,
      'prompts/list': () => NEVER,
      'resources/list': () => NEVER,
      'resources/templates/list': () => NEVER,
    },
  });

/** The lists of one server, which are the same for all users. */
async function openSharedLists(url: string, clock: ManualClock) {
  const { upstream, close } = await openHttpUpstream({ url });
  closeAfterTest({ close });
  return new ServerLists(
    openTestRuntime({ clock }),
    upstream,
    { isPersonal: false, maxUsers: 1, signal: new AbortController().signal },
    { getLock: () => undefined, onChange() {} },
  );
}

test('§18.4 slow lists: what other servers have is used without waiting', async () => {
  const clock = manualClock();
  const slow = await serveSlow();
  const quick = await serve({
    tools: [buildTool('t')],
    resources: [{ uri: 'x://a', name: 'a' }],
    resourceTemplates: [{ uriTemplate: 'x://{id}', name: 'x' }],
    answers: {
      'tools/call': () => ({
        result: { content: [{ type: 'resource_link', uri: 'x://unlisted/1', name: 'l' }] },
      }),
    },
  });
  const gateway = await start({
    file: { mcpServers: { slow: slow.url, quick: quick.url } },
    clock,
  });
  const opening = gateway.open();
  await countSeconds(clock, opening);
  const session = await opening;
  await expect.poll(() => quick.count('resources/templates/list'), PATIENT).toBe(1);
  const ref = { type: 'ref/resource', uri: 'x://{id}' };
  const work = async () => {
    const argument = { name: 'id', value: 'v' };
    for (const [method, params] of [
      ['tools/call', { name: 'quick__t' }],
      ['resources/read', { uri: 'x://a' }],
      ['resources/read', { uri: 'x://unlisted/1' }],
      ['completion/complete', { ref, argument }],
    ] as const) {
      const { json } = await gateway.call(session, method, params);
      expect(json).toHaveProperty('result');
    }
  };
  expect(await countSeconds(clock, work())).toBe(0);
});

test('§18.4 slow lists: of servers without a prefix none is waited for that takes more than a second', async () => {
  const clock = manualClock();
  const slow = await serveSlow();
  const quick = await serve({ tools: [buildTool('t')] });
  const gateway = await start({
    file: {
      mcpServers: {
        slow: { url: slow.url, prefix: '' },
        quick: { url: quick.url, prefix: '' },
      },
    },
    clock,
  });
  const opening = gateway.open();
  await countSeconds(clock, opening);
  const session = await opening;
  await expect.poll(() => quick.count('tools/list'), PATIENT).toBe(1);
  const call = () => gateway.call(session, 'tools/call', { name: 't' });
  expect(await countSeconds(clock, call())).toBeLessThanOrEqual(1);
  expect(await countSeconds(clock, call())).toBe(0);
  expect(quick.count('tools/call')).toBe(2);
});

test('§18.4 slow lists: a list that never comes makes one user wait, and then nobody', async () => {
  const clock = manualClock();
  // Its other lists come: they are no reason to wait for this one.
  const slow = await serve({ answers: { 'tools/list': () => NEVER } });
  const quick = await serve({ tools: [buildTool('t')] });
  const gateway = await start({
    file: {
      mcpServers: { slow: { url: slow.url, auth: { type: 'identity' } }, quick: quick.url },
    },
    clock,
  });
  await expect.poll(() => quick.count('tools/list'), PATIENT).toBe(1);
  const waited: number[] = [];
  for (let user = 0; user < 6; user += 1) {
    const token = await gateway.issuer.sign({ sub: `user ${user}` });
    const session = await gateway.open({ token });
    await gateway.list('prompts/list', session, token);
    const listing = gateway.listNames('tools/list', session, token);
    waited.push(await countSeconds(clock, listing));
    expect(await listing).toEqual(['quick__t']);
    // Nor is it waited for again, by the same user.
    expect(await countSeconds(clock, gateway.listNames('tools/list', session, token))).toBe(0);
  }
  const [first, ...others] = waited;
  expect(first).toBeGreaterThanOrEqual(7);
  expect(first).toBeLessThanOrEqual(8);
  expect(others.every((seconds) => seconds <= 1)).toBe(true);
}, 60_000);

test('§18.4 slow lists: one user whose lists never come does not make others miss theirs', async () => {
  const clock = manualClock();
  const { upstream, close } = await openHttpUpstream({
    url: (await serve({ tools: [buildTool('t')] })).url,
    auth: { type: 'identity' },
  });
  closeAfterTest({ close });
  let isSlow = true;
  const answer: (() => void)[] = [];
  const lists = new ServerLists(
    openTestRuntime({ clock }),
    {
      ...upstream,
      describe: (caller) => upstream.describe(caller),
      async request(caller, request) {
        if (caller.clientId === 'slow') await NEVER;
        if (isSlow) await new Promise<void>((resolve) => answer.push(resolve));
        return upstream.request(caller, request);
      },
    },
    { isPersonal: true, maxUsers: 100, signal: new AbortController().signal },
    { getLock: () => undefined, onChange() {} },
  );
  const load = async (clientId: string) =>
    lists.load('tools', { ...GATEWAY_CALLER, clientId }, 'told');
  expect(await countSeconds(clock, load('slow'))).toBeGreaterThanOrEqual(4);
  const loading = load('other');
  await expect.poll(() => answer.length, PATIENT).toBe(1);
  clock.advance(900);
  isSlow = false;
  for (const resume of answer) resume();
  expect(await loading).toMatchObject({ items: [{ name: 't' }] });
  // Whose list has come, it is waited for as long as ever, however often the first one asks.
  isSlow = true;
  expect(await countSeconds(clock, load('slow'))).toBeLessThanOrEqual(1);
  const next = load('third');
  await expect.poll(() => answer.length, PATIENT).toBe(2);
  for (let second = 0; second < 4; second += 1) {
    clock.advance(1_000);
    await pause();
  }
  for (const resume of answer) resume();
  expect(await next).toMatchObject({ items: [{ name: 't' }] });
});

test('§18.4 slow lists: a server that comes and goes is not waited for as long each time', async () => {
  const clock = manualClock();
  const slow = await serveSlow();
  const lists = await openSharedLists(slow.url, clock);
  const load = async () => lists.load('tools', GATEWAY_CALLER, 'told');
  expect(await countSeconds(clock, load())).toBeGreaterThanOrEqual(4);
  for (let time = 0; time < 3; time += 1) {
    lists.refresh();
    expect(await countSeconds(clock, load())).toBeLessThanOrEqual(1);
  }
});

test('§18.4 slow lists: whoever comes later waits for what is left', async () => {
  const clock = manualClock();
  const slow = await serveSlow();
  const lists = await openSharedLists(slow.url, clock);
  const load = async (patience: 'told' | 'untold' | 'forCall') =>
    lists.load('tools', GATEWAY_CALLER, patience);
  const first = load('told');
  clock.advance(3_000);
  expect(await countSeconds(clock, Promise.all([first, load('told')]))).toBe(2);
  expect(await countSeconds(clock, load('untold'))).toBe(3);
  expect(await countSeconds(clock, load('forCall'))).toBe(7);
  for (const patience of ['told', 'untold', 'forCall'] as const) {
    expect(await countSeconds(clock, load(patience))).toBe(0);
  }
});
