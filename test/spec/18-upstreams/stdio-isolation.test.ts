// §18.3: whose process it is, and what it may ask of whom.
import { expect, test } from 'vitest';
import type {
  UpstreamCaller,
  UpstreamQuestion,
  UpstreamRequest,
} from '../../../src/mcp/upstream/upstream.ts';
import type { JsonObject } from '../../../src/platform/json.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { ALL_CAPABILITIES, NO_CAPABILITIES } from '../../support/upstreams/requests.ts';
import {
  callTool,
  isAlive,
  type StdioTest,
  scripted,
  supportFile,
  toCaller,
  toRequest,
  useStdio,
} from '../../support/upstreams/stdio.ts';

const perUser = { ...scripted(), isolation: 'user' } as const;
const perSession = { ...scripted(), isolation: 'session' } as const;

const ann = toCaller('ann', { sessionId: 'session-of-ann' });
const annElsewhere = toCaller('ann', { sessionId: 'other-session-of-ann' });
const bob = toCaller('bob', { sessionId: 'session-of-bob' });
const cid = toCaller('cid', { sessionId: 'session-of-cid' });

const readPid = async (stdio: StdioTest, caller: UpstreamCaller): Promise<number> =>
  Number(await callTool(stdio, 'pid', {}, { caller }));

/** A call that stays under way; resolves once the server has it. */
async function hang(
  stdio: StdioTest,
  caller: UpstreamCaller,
  members: Partial<UpstreamRequest> = {},
) {
  const controller = new AbortController();
  const outcome = callTool(stdio, 'hang', {}, { caller, signal: controller.signal, ...members });
  outcome.catch(() => {});
  await callTool(stdio, 'echo', { value: '' }, { caller });
  return { end: () => controller.abort() };
}

test('§18.3 stdio: with "user" each user has one process, whatever the session', async () => {
  const stdio = useStdio(perUser);
  const pid = await readPid(stdio, ann);
  expect(await readPid(stdio, annElsewhere)).toBe(pid);
  expect(await readPid(stdio, toCaller('ann'))).toBe(pid);
  expect(await readPid(stdio, bob)).not.toBe(pid);
});

test('§18.3 stdio: with "session" each session has one process, which ends with it', async () => {
  const stdio = useStdio(perSession);
  const pid = await readPid(stdio, ann);
  const elsewhere = await readPid(stdio, annElsewhere);
  expect(await readPid(stdio, ann)).toBe(pid);
  expect(elsewhere).not.toBe(pid);
  await stdio.upstream.endSession(ann);
  expect([isAlive(pid), isAlive(elsewhere)]).toEqual([false, true]);
});

test('§18.3 stdio: with "session" a client without sessions shares a process with itself', async () => {
  const stdio = useStdio(perSession);
  const pid = await readPid(stdio, toCaller('ann', { clientId: 'editor' }));
  expect(await readPid(stdio, toCaller('ann', { clientId: 'editor' }))).toBe(pid);
  expect(await readPid(stdio, toCaller('ann', { clientId: 'other' }))).not.toBe(pid);
  expect(await readPid(stdio, toCaller('bob', { clientId: 'editor' }))).not.toBe(pid);
});

test('§18.3 stdio: no name of a user leads to the process of another', async () => {
  const stdio = useStdio(perUser);
  const names = ['gateway', 'ann', '["user","ann"]', 'ann","', ''];
  const pids = [];
  for (const name of names) pids.push(await readPid(stdio, toCaller(name)));
  expect(new Set(pids).size).toBe(names.length);
});

test('§18.3 stdio: no name of a client leads to the process of another user', async () => {
  const stdio = useStdio(perSession);
  const pid = await readPid(stdio, toCaller('ann', { clientId: 'x,y' }));
  expect(await readPid(stdio, toCaller('ann,x', { clientId: 'y' }))).not.toBe(pid);
});

test('§18.3 stdio: when there are too many, the process that was idle the longest ends', async () => {
  const clock = manualClock();
  const stdio = useStdio({ ...perUser, maxProcesses: 2 }, { clock });
  const pids: number[] = [];
  for (const caller of [ann, bob, ann]) {
    pids.push(await readPid(stdio, caller));
    clock.advance(1000);
  }
  await readPid(stdio, cid);
  const [ofAnn = 0, ofBob = 0] = pids;
  expect([isAlive(ofAnn), isAlive(ofBob)]).toEqual([true, false]);
  expect(Math.max(...stdio.counts)).toBe(2);
});

test('§18.3 stdio: when all are busy, a call fails at once and says so', async () => {
  const stdio = useStdio({ ...perUser, maxProcesses: 2 });
  await hang(stdio, ann);
  const busy = await hang(stdio, bob);
  await expect(readPid(stdio, cid)).rejects.toMatchObject({
    failure: 'unavailable',
    message: 'all of its 2 processes are busy',
  });
  expect(stdio.lines).toContainEqual(
    expect.objectContaining({
      level: 'warn',
      msg: 'All 2 processes of the server files are busy, so a call was refused. If that happens often, raise "maxProcesses".',
    }),
  );
  expect(await readPid(stdio, ann)).toBeGreaterThan(0);
  busy.end();
  await expect.poll(() => readPid(stdio, cid)).toBeGreaterThan(0);
});

test('§18.3 stdio: with "session" a user has half of the processes: more take the place of its own idle ones', async () => {
  const stdio = useStdio({ ...perSession, maxProcesses: 4 });
  const toSession = (sub: string, at: number) => toCaller(sub, { sessionId: `${sub}-${at}` });
  const ofBob = await readPid(stdio, toSession('bob', 0));
  const ofAnn: number[] = [];
  for (const at of [1, 2, 3]) ofAnn.push(await readPid(stdio, toSession('ann', at)));
  expect(ofAnn.map(isAlive)).toEqual([false, true, true]);
  await hang(stdio, toSession('ann', 2));
  await hang(stdio, toSession('ann', 3));
  await expect(readPid(stdio, toSession('ann', 4))).rejects.toMatchObject({
    failure: 'unavailable',
    message: 'all of the 2 processes that one user may have are busy',
  });
  expect(await readPid(stdio, cid)).toBeGreaterThan(0);
  expect(await readPid(stdio, toSession('bob', 0))).toBe(ofBob);
});

test('§18.3 stdio: without users the processes of sessions are shared out to whoever comes', async () => {
  const stdio = useStdio({ ...perSession, maxProcesses: 3 });
  const toSession = (at: number) => toCaller(undefined, { sessionId: `nobody-${at}` });
  await readPid(stdio, cid);
  const pids = [];
  for (const at of [1, 2]) pids.push(await readPid(stdio, toSession(at)));
  expect(pids.map(isAlive)).toEqual([true, true]);
});

test('§18.3 stdio: the process of a session that ended without a word ends once it is idle', async () => {
  const clock = manualClock();
  const active = new Set([ann.sessionId, bob.sessionId]);
  const stdio = useStdio(
    { ...perSession, idleSeconds: 10 },
    { clock, isSessionActive: async (sessionId) => active.has(sessionId) },
  );
  const ofAnn = await readPid(stdio, ann);
  const ofBob = await readPid(stdio, bob);
  await stdio.upstream.request(ann, toRequest('resources/subscribe', { uri: 'a://1' }));
  active.delete(ann.sessionId);
  clock.advance(10_000);
  await expect.poll(() => isAlive(ofAnn)).toBe(false);
  active.delete(bob.sessionId);
  expect(isAlive(ofBob)).toBe(true);
  clock.advance(10_000);
  await expect.poll(() => isAlive(ofBob)).toBe(false);
});

test('§18.3 stdio: a process of a user ends after "idleSeconds", but not while it is called', async () => {
  const clock = manualClock();
  const stdio = useStdio({ ...perUser, idleSeconds: 10, timeoutMs: 60_000 }, { clock });
  const ofAnn = await readPid(stdio, ann);
  const ofBob = await readPid(stdio, bob);
  const busy = await hang(stdio, bob);
  clock.advance(9999);
  expect([isAlive(ofAnn), isAlive(ofBob)]).toEqual([true, true]);
  clock.advance(1);
  await expect.poll(() => isAlive(ofAnn)).toBe(false);
  clock.advance(20_000);
  expect(await readPid(stdio, bob)).toBe(ofBob);
  busy.end();
  await callTool(stdio, 'echo', { value: '' }, { caller: bob });
  clock.advance(20_000);
  await expect.poll(() => isAlive(ofBob)).toBe(false);
  expect(stdio.states).toEqual([[true, 'it answers']]);
  expect(await readPid(stdio, ann)).not.toBe(ofAnn);
});

test('§18.3 stdio: the end of one process concerns nobody else, and the server stays up', async () => {
  const stdio = useStdio(perUser);
  const pid = await readPid(stdio, ann);
  await hang(stdio, bob);
  process.kill(await readPid(stdio, bob), 'SIGKILL');
  await expect.poll(() => stdio.counts.at(-1)).toBeLessThan(Math.max(...stdio.counts));
  expect(await readPid(stdio, ann)).toBe(pid);
  expect(stdio.upstream.isUp).toBe(true);
});

test.each([
  ['shared', false, {}],
  ['shared', true, {}],
  ['user', false, { elicitation: {}, sampling: {} }],
  ['user', true, { elicitation: {}, sampling: {}, roots: {} }],
  ['session', false, { elicitation: {}, sampling: {} }],
  ['session', true, { elicitation: {}, sampling: {}, roots: {} }],
] as const)(
  '§18.3 stdio: with "%s" and roots %s a server is offered what can be told apart',
  async (isolation, roots, offered) => {
    const stdio = useStdio({ ...scripted(), isolation, roots });
    const read = async (caller: UpstreamCaller) =>
      JSON.parse(await callTool(stdio, 'clientCapabilities', {}, { caller }));
    expect(await read({ ...ann, capabilities: ALL_CAPABILITIES })).toEqual(offered);
    expect(await read({ ...bob, capabilities: NO_CAPABILITIES })).toEqual({});
  },
);

const ASK = { method: 'elicitation/create', params: { message: 'Which?' } };

/** Calls a tool that asks; what the server got for an answer. */
async function ask(stdio: StdioTest, caller: UpstreamCaller, answer: JsonObject): Promise<unknown> {
  const onRequest = async ({ method, params }: UpstreamQuestion) => ({ method, params, ...answer });
  return JSON.parse(await callTool(stdio, 'ask', ASK, { caller, onRequest }));
}

const refusedFor = (reason: string) => ({
  error: { code: -32601, message: expect.stringContaining(reason) },
});

test('§18.3 stdio: a question goes to the call under way', async () => {
  const stdio = useStdio(perUser);
  expect(await ask(stdio, ann, { action: 'accept' })).toEqual({
    result: { ...ASK, action: 'accept' },
  });
});

test.each([
  ['elicitation/create', '"isolation": "user"'],
  ['sampling/createMessage', '"isolation": "user"'],
  ['roots/list', '"isolation": "user" and "roots": true'],
])(
  '§18.3 stdio: the question %s of a shared process is an error, and the log says once which "isolation" lets it ask',
  async (method, remedy) => {
    const stdio = useStdio();
    const call = () => callTool(stdio, 'ask', { method, params: {} }, { caller: ann });
    expect(JSON.parse(await call())).toEqual(refusedFor('"isolation": "shared"'));
    await call();
    expect(stdio.lines.filter(({ level }) => level === 'warn')).toMatchObject([
      {
        msg: `The MCP server files wanted to ask a client (${method}) and was refused: with "isolation": "shared" all users share one process, which cannot say which user it asks. If it may ask, set ${remedy} for it in the configuration file. Tools that it lists only for clients that it can ask appear then, too.`,
        server: 'files',
      },
    ]);
  },
);

test('§18.3 stdio: a question that may belong to several clients is an error', async () => {
  const stdio = useStdio(perUser);
  await hang(stdio, annElsewhere, { onRequest: async () => ({ action: 'decline' }) });
  expect(await ask(stdio, ann, { action: 'accept' })).toEqual(refusedFor('cannot tell'));
});

test('§18.3 stdio: of several calls of one client without a session the newest is asked, and the time of all stands still', async () => {
  const clock = manualClock();
  const stdio = useStdio({ ...perUser, timeoutMs: 5000 }, { clock });
  const caller = { ...ann, sessionId: undefined };
  let answer: (result: JsonObject) => void = () => {};
  let asked = 0;
  const onRequest = () => {
    asked += 1;
    return new Promise<JsonObject>((resolve) => {
      answer = resolve;
    });
  };
  const older = callTool(
    stdio,
    'hang',
    {},
    { caller, onRequest: async () => ({ action: 'decline' }) },
  );
  const called = callTool(stdio, 'ask', ASK, { caller, onRequest });
  await expect.poll(() => asked).toBe(1);
  clock.advance(60_000);
  answer({ action: 'accept' });
  expect(JSON.parse(await called)).toEqual({ result: { action: 'accept' } });
  const ended = expect(older).rejects.toMatchObject({ failure: 'timeout' });
  clock.advance(5000);
  await ended;
});

test('§18.3 stdio: a question that belongs to one of several calls of a session goes to its client', async () => {
  const stdio = useStdio(perUser);
  await hang(stdio, ann, { onRequest: async () => ({ action: 'accept' }) });
  expect(await ask(stdio, ann, { action: 'accept' })).toMatchObject({
    result: { action: 'accept' },
  });
});

test('§18.3 stdio: a call that cannot be asked is not asked', async () => {
  const stdio = useStdio(perUser);
  await hang(stdio, annElsewhere);
  expect(await ask(stdio, ann, { action: 'accept' })).toMatchObject({
    result: { action: 'accept' },
  });
});

test('§18.3 stdio: the time of a call stands still while its client is asked', async () => {
  const clock = manualClock();
  const stdio = useStdio({ ...perUser, timeoutMs: 5000 }, { clock });
  let answer: (result: JsonObject) => void = () => {};
  let asked = 0;
  const onRequest = () => {
    asked += 1;
    return new Promise<JsonObject>((resolve) => {
      answer = resolve;
    });
  };
  const called = callTool(stdio, 'ask', ASK, { caller: ann, onRequest });
  await expect.poll(() => asked).toBe(1);
  clock.advance(60_000);
  answer({ action: 'cancel' });
  expect(JSON.parse(await called)).toEqual({ result: { action: 'cancel' } });
});

test('§18.3 stdio: a server may ping, and is told what is not offered', async () => {
  const stdio = useStdio();
  const read = async (method: string) => JSON.parse(await callTool(stdio, 'ask', { method }));
  expect(await read('ping')).toEqual({ result: {} });
  expect(await read('tools/list')).toEqual(refusedFor('method'));
  expect(stdio.lines.filter(({ level }) => level === 'warn')).toEqual([]);
});

test('§18.3 stdio: the least severe level that is wanted is set, and log messages reach their call', async () => {
  const stdio = useStdio(perUser);
  const heard: unknown[] = [];
  const onLog = ({ data }: JsonObject) => void heard.push(data);
  const read = (logLevel: UpstreamRequest['logLevel']) =>
    callTool(stdio, 'logLevel', {}, { caller: ann, logLevel });
  expect(await read(undefined)).toBe('');
  expect(await read('error')).toBe('error');
  await hang(stdio, ann, { logLevel: 'info' });
  expect(await read('error')).toBe('info');
  expect(await read('debug')).toBe('debug');
  await callTool(stdio, 'log', { data: 'mine' }, { caller: ann, logLevel: 'info', onLog });
  expect(heard).toEqual(['mine']);
});

test('§18.3 stdio: log messages of a shared process reach nobody, and its level is not set', async () => {
  const stdio = useStdio();
  const heard: unknown[] = [];
  const members = { caller: ann, logLevel: 'debug', onLog: () => void heard.push('any') } as const;
  await callTool(stdio, 'log', {}, members);
  expect(await callTool(stdio, 'logLevel', {}, members)).toBe('');
  expect(heard).toEqual([]);
});

test('§18.3 stdio: a server of the stateless era is told with each call what its client can be asked', async () => {
  const { upstream } = useStdio({ args: [supportFile('sdk-2-server.mjs')] });
  const caller = { ...ann, capabilities: ALL_CAPABILITIES };
  const asked = await upstream.request(caller, toRequest('tools/call', { name: 'choose' }));
  expect(asked).toMatchObject({ resultType: 'input_required' });
  const cannot = upstream.request(ann, toRequest('tools/call', { name: 'choose' }));
  await expect(cannot).rejects.toMatchObject({ failure: 'error' });
});
