// §18.3: what changes at a process is told to those who listen.
import { expect, test } from 'vitest';
import type { UpstreamCaller } from '../../../src/mcp/upstream/upstream.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import {
  callTool,
  type StdioTest,
  scripted,
  toCaller,
  toRequest,
  useStdio,
} from '../../support/upstreams/stdio.ts';

const ann = toCaller('ann', { sessionId: 'session-of-ann' });
const bob = toCaller('bob', { sessionId: 'session-of-bob' });

function listen({ upstream }: StdioTest, caller: UpstreamCaller, uris?: readonly string[]) {
  const heard: string[] = [];
  const stop = upstream.listen(
    caller,
    {
      listChanged: (list) => void heard.push(list),
      resourceUpdated: (uri) => void heard.push(uri),
    },
    uris,
  );
  return { heard, stop };
}

/** Has the server send a notification; what it tells has come when this resolves. */
const notify = (stdio: StdioTest, caller: UpstreamCaller, method: string, params = {}) =>
  callTool(stdio, 'notify', { method: `notifications/${method}`, params }, { caller });

const subscribe = ({ upstream }: StdioTest, caller: UpstreamCaller, uri: string) =>
  upstream.request(caller, toRequest('resources/subscribe', { uri }));

const unsubscribe = ({ upstream }: StdioTest, caller: UpstreamCaller, uri: string) =>
  upstream.request(caller, toRequest('resources/unsubscribe', { uri }));

const readSubscriptions = async (stdio: StdioTest, caller: UpstreamCaller) =>
  JSON.parse(await callTool(stdio, 'subscriptions', {}, { caller }));

async function restart(stdio: StdioTest, caller: UpstreamCaller): Promise<void> {
  const ups = stdio.states.filter(([isUp]) => isUp).length;
  process.kill(Number(await callTool(stdio, 'pid', {}, { caller })), 'SIGKILL');
  await expect.poll(() => stdio.states.filter(([isUp]) => isUp).length).toBe(ups + 1);
}

test('§18.3 stdio: changed lists are told to all who share the process, until they stop', async () => {
  const stdio = useStdio();
  const [first, second] = [listen(stdio, ann), listen(stdio, bob)];
  await notify(stdio, ann, 'tools/list_changed');
  second.stop();
  await notify(stdio, ann, 'prompts/list_changed');
  await notify(stdio, ann, 'resources/list_changed');
  await notify(stdio, ann, 'no/such/list_changed');
  expect(first.heard).toEqual(['tools', 'prompts', 'resources']);
  expect(second.heard).toEqual(['tools']);
});

test('§18.3 stdio: an elicitation that is completed is told to its user, and by a shared process to nobody', async () => {
  const heard: string[] = [];
  for (const isolation of ['user', 'shared'] as const) {
    const stdio = useStdio({ ...scripted(), isolation });
    for (const caller of [ann, bob]) {
      stdio.upstream.listen(caller, {
        listChanged() {},
        resourceUpdated() {},
        elicitationCompleted: (id) => void heard.push(`${caller.user?.sub} ${id}`),
      });
    }
    await notify(stdio, ann, 'elicitation/complete', { elicitationId: isolation });
  }
  expect(heard).toEqual(['ann user']);
});

test('§18.3 stdio: a session can subscribe to 200 resources at most, and keeps nobody else from it', async () => {
  const stdio = useStdio();
  for (let at = 0; at < 200; at += 1) await subscribe(stdio, ann, `a://${at}`);
  await expect(subscribe(stdio, ann, 'a://200')).rejects.toMatchObject({
    jsonRpcError: { code: -32602 },
  });
  expect(await subscribe(stdio, ann, 'a://0')).toEqual({});
  expect(await subscribe(stdio, bob, 'a://200')).toEqual({});
});

test('§18.3 stdio: subscriptions of a session that expired end', async () => {
  const clock = manualClock();
  const active = new Set([ann.sessionId, bob.sessionId]);
  const stdio = useStdio(undefined, { clock, isSessionActive: async (id) => active.has(id) });
  await subscribe(stdio, ann, 'a://1');
  await subscribe(stdio, bob, 'a://2');
  active.delete(ann.sessionId);
  clock.advance(900_000);
  await expect.poll(() => readSubscriptions(stdio, bob)).toEqual(['+a://1', '+a://2', '-a://1']);
});

test('§18.3 stdio: who listens without a session has a process started that can tell', async () => {
  const stdio = useStdio({ ...scripted(), isolation: 'user' });
  const before = stdio.counts.at(-1) ?? 0;
  listen(stdio, toCaller('ann', { clientId: 'editor' }), ['a://1']);
  await expect.poll(() => stdio.counts.at(-1)).toBe(before + 1);
});

test('§18.3 stdio: of a process of another user nothing is told', async () => {
  const stdio = useStdio({ ...scripted(), isolation: 'user' });
  const [first, second] = [listen(stdio, ann), listen(stdio, bob)];
  await notify(stdio, ann, 'tools/list_changed');
  await subscribe(stdio, bob, 'a://b');
  await notify(stdio, ann, 'resources/updated', { uri: 'a://b' });
  expect([first.heard, second.heard]).toEqual([['tools'], []]);
});

test('§18.3 stdio: several subscriptions to a resource are one at the server, and each hears of its own', async () => {
  const stdio = useStdio();
  const [first, second] = [listen(stdio, ann), listen(stdio, bob)];
  expect(await subscribe(stdio, ann, 'a://1')).toEqual({});
  expect(await subscribe(stdio, bob, 'a://1')).toEqual({});
  await subscribe(stdio, bob, 'a://2');
  for (const uri of ['a://1', 'a://2', 'a://3'])
    await notify(stdio, ann, 'resources/updated', { uri });
  expect([first.heard, second.heard]).toEqual([['a://1'], ['a://1', 'a://2']]);
  await unsubscribe(stdio, ann, 'a://1');
  await unsubscribe(stdio, ann, 'a://1');
  expect(await readSubscriptions(stdio, ann)).toEqual(['+a://1', '+a://2']);
  await unsubscribe(stdio, bob, 'a://1');
  expect(await readSubscriptions(stdio, ann)).toEqual(['+a://1', '+a://2', '-a://1']);
});

test('§18.3 stdio: a part of a resource that is subscribed to is told, and nothing beside it', async () => {
  const stdio = useStdio();
  const { heard } = listen(stdio, ann);
  await subscribe(stdio, ann, 'file:///docs');
  for (const uri of ['file:///docs/a/b', 'file:///docs2', 'file:///docs/']) {
    await notify(stdio, ann, 'resources/updated', { uri });
  }
  expect(heard).toEqual(['file:///docs/a/b', 'file:///docs/']);
});

test('§18.3 stdio: a subscription that the server refuses is an error of the request', async () => {
  const stdio = useStdio();
  await expect(subscribe(stdio, ann, 'none://')).rejects.toMatchObject({
    failure: 'error',
    jsonRpcError: { code: -32002, message: 'no such resource' },
  });
  await expect(subscribe(stdio, bob, 'none://')).rejects.toMatchObject({ failure: 'error' });
});

test('§18.3 stdio: the subscriptions of a session end with it', async () => {
  const stdio = useStdio();
  await subscribe(stdio, ann, 'a://1');
  await subscribe(stdio, bob, 'a://2');
  await stdio.upstream.endSession(ann);
  expect(await readSubscriptions(stdio, bob)).toEqual(['+a://1', '+a://2', '-a://1']);
});

test('§18.3 stdio: a subscription without a session lasts as long as its listener', async () => {
  const stdio = useStdio();
  const caller = toCaller('ann', { clientId: 'editor' });
  const { heard, stop } = listen(stdio, caller, ['a://1']);
  const other = listen(stdio, caller, ['a://2']);
  await expect.poll(() => readSubscriptions(stdio, caller)).toEqual(['+a://1', '+a://2']);
  await notify(stdio, caller, 'resources/updated', { uri: 'a://1' });
  expect([heard, other.heard]).toEqual([['a://1'], []]);
  stop();
  expect(await readSubscriptions(stdio, caller)).toEqual(['+a://1', '+a://2', '-a://1']);
});

test('§18.3 stdio: a process that was started again is subscribed to anew, and what was missed is told', async () => {
  const stdio = useStdio();
  await subscribe(stdio, ann, 'a://1');
  const { heard } = listen(stdio, ann);
  await restart(stdio, ann);
  expect(heard).toEqual(['tools', 'resources']);
  expect(await readSubscriptions(stdio, ann)).toEqual(['+a://1']);
});
