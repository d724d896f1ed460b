// §18.4: what a process does wrong is an error of its own calls, and nobody else's.
import { describe, expect, test } from 'vitest';
import { GATEWAY_CALLER, type UpstreamCaller } from '../../../src/mcp/upstream/upstream.ts';
import { type ManualClock, manualClock } from '../../support/gateway/clock.ts';
import { sessionCaller } from '../../support/upstreams/requests.ts';
import {
  callTool,
  isAlive,
  type StdioTest,
  scripted,
  toCall,
  toRequest,
  useStdio,
} from '../../support/upstreams/stdio.ts';

/** A call that never ends by itself; resolves once the server has it, as requests are read in their order. */
async function startHanging(stdio: StdioTest, members: Parameters<typeof toCall>[2] = {}) {
  const outcome = stdio.upstream.request(GATEWAY_CALLER, toCall('hang', {}, members));
  outcome.catch(() => {});
  await callTool(stdio, 'echo', { value: '' });
  return { outcome };
}

/** A call that was just made has come as far as it can. */
const turn = () => new Promise(setImmediate);

const readPid = async (stdio: StdioTest): Promise<number> => Number(await callTool(stdio, 'pid'));

async function waitUntilUp({ states }: StdioTest, times = 1): Promise<void> {
  await expect.poll(() => states.filter(([isUp]) => isUp).length).toBe(times);
}

test('§18.4 stdio: calls under way fail at once when their process is killed', async () => {
  const stdio = useStdio();
  const pid = await readPid(stdio);
  const { outcome } = await startHanging(stdio);
  process.kill(pid, 'SIGKILL');
  await expect(outcome).rejects.toMatchObject({
    failure: 'interrupted',
    message: 'its process was ended by SIGKILL',
  });
  expect(stdio.upstream.isUp).toBe(false);
  expect(stdio.states.at(-1)).toEqual([false, 'its process was ended by SIGKILL']);
});

describe('after its end', () => {
  const startEnded = async (clock: ManualClock) => {
    const stdio = useStdio(scripted(), { clock });
    const pid = await readPid(stdio);
    process.kill(pid, 'SIGKILL');
    await expect.poll(() => stdio.upstream.isUp).toBe(false);
    return { stdio, pid };
  };

  test('§18.4 stdio: a process is started again after a second, and a call waits for it', async () => {
    const clock = manualClock();
    const { stdio, pid } = await startEnded(clock);
    clock.advance(999);
    expect(stdio.counts).toEqual([1, 0]);
    const answer = readPid(stdio);
    await turn();
    clock.advance(1);
    expect(stdio.counts).toEqual([1, 0, 1]);
    expect(await answer).not.toBe(pid);
  });

  test('§18.4 stdio: a call waits a second for it at most', async () => {
    const clock = manualClock();
    const { stdio } = await startEnded(clock);
    const answer = readPid(stdio);
    answer.catch(() => {});
    await turn();
    clock.advance(1000);
    await expect(answer).rejects.toMatchObject({
      failure: 'unavailable',
      message: 'its process was ended by SIGKILL; it is being started',
    });
  });
});

test('§18.4 stdio: starts are tried after 1, 2, 4, 8, 16 and 30 s, and calls in between fail at once with the time', async () => {
  const clock = manualClock();
  const { upstream, counts, states } = useStdio(scripted('crashes'), { clock });
  // The first one could have died of server/discover, so it is tried again without it.
  for (const [index, seconds] of [1, 2, 4, 8, 16, 30, 30].entries()) {
    const starts = index + 2;
    await expect.poll(() => counts.filter((count) => count === 0).length).toBe(starts);
    clock.advance(seconds * 1000 - 1);
    expect(counts).toHaveLength(2 * starts);
    clock.advance(1);
    expect(counts).toHaveLength(2 * starts + 1);
  }
  await expect.poll(() => counts.at(-1)).toBe(0);
  await expect(upstream.request(GATEWAY_CALLER, toCall('pid'))).rejects.toMatchObject({
    failure: 'unavailable',
    message: 'its process ended with exit code 7; it is started again in 30 s',
  });
  await expect(upstream.describe(GATEWAY_CALLER)).rejects.toMatchObject({ failure: 'unavailable' });
  expect(states).toEqual([[false, 'its process ended with exit code 7']]);
});

test('§18.4 stdio: the times begin again after it ran well', async () => {
  const clock = manualClock();
  const stdio = useStdio(scripted(), { clock });
  for (const [index, [ranMs, backOffMs]] of [
    [0, 1000],
    [0, 2000],
    [30_000, 1000],
  ].entries()) {
    await waitUntilUp(stdio, index + 1);
    clock.advance(ranMs ?? 0);
    process.kill(await readPid(stdio), 'SIGKILL');
    await expect
      .poll(() => stdio.lines.at(-1)?.msg)
      .toContain(`again in ${(backOffMs ?? 0) / 1000} s`);
    clock.advance(backOffMs ?? 0);
  }
});

test('§18.4 stdio: a call that is not answered in time ends, and the server is told', async () => {
  const clock = manualClock();
  const stdio = useStdio({ ...scripted(), timeoutMs: 5000 }, { clock });
  const { outcome } = await startHanging(stdio);
  clock.advance(4999);
  const other = callTool(stdio, 'echo', { value: 'others go on' });
  clock.advance(1);
  await expect(outcome).rejects.toMatchObject({
    failure: 'timeout',
    message: 'it did not answer within 5 s',
  });
  expect(await other).toBe('others go on');
  expect(JSON.parse(await callTool(stdio, 'cancelled'))).toHaveLength(1);
});

test('§18.4 stdio: progress puts off the end of a slow call', async () => {
  const clock = manualClock();
  const stdio = useStdio({ ...scripted(), timeoutMs: 5000 }, { clock });
  let steps = 0;
  const onProgress = () => {
    steps += 1;
  };
  const answer = callTool(stdio, 'slowly', { steps: 3 }, { onProgress });
  for (const step of [1, 2, 3]) {
    await expect.poll(() => steps).toBe(step);
    clock.advance(4000);
    await callTool(stdio, 'goOn');
  }
  expect(await answer).toBe('done');
});

test('§18.4 stdio: a call that nobody waits for is cancelled', async () => {
  const stdio = useStdio();
  const controller = new AbortController();
  const { outcome } = await startHanging(stdio, { signal: controller.signal });
  controller.abort();
  await expect(outcome).rejects.toMatchObject({ failure: 'aborted' });
  expect(JSON.parse(await callTool(stdio, 'cancelled'))).toEqual([expect.any(Number)]);
  const late = stdio.upstream.request(
    GATEWAY_CALLER,
    toCall('echo', {}, { signal: AbortSignal.abort() }),
  );
  await expect(late).rejects.toMatchObject({ failure: 'aborted' });
});

test('§18.4 stdio: of two answers the first counts, and the second is logged', async () => {
  const stdio = useStdio();
  expect(await callTool(stdio, 'twice')).toBe('first');
  await expect
    .poll(() => stdio.lines)
    .toContainEqual(expect.objectContaining({ level: 'warn', server: 'files', count: 1 }));
});

test('§18.4 stdio: answers with an id that nobody waits for are dropped', async () => {
  const stdio = useStdio();
  const { outcome } = await startHanging(stdio);
  expect(await callTool(stdio, 'strangeId')).toBe('mine');
  expect(await Promise.race([outcome, 'still under way'])).toBe('still under way');
});

test('§18.4 stdio: the late answer to a cancelled call is no reason for a log line', async () => {
  const stdio = useStdio();
  const controller = new AbortController();
  const outcome = callTool(stdio, 'slowly', { steps: 1 }, { signal: controller.signal });
  outcome.catch(() => {});
  await callTool(stdio, 'echo', { value: '' });
  controller.abort();
  await callTool(stdio, 'goOn');
  await callTool(stdio, 'echo', { value: '' });
  expect(stdio.lines.filter(({ level }) => level === 'warn')).toEqual([]);
});

test('§18.4 stdio: an answer that is no message is an error of its call', async () => {
  const stdio = useStdio();
  await expect(callTool(stdio, 'malformed')).rejects.toMatchObject({ failure: 'invalid' });
  expect(await callTool(stdio, 'echo', { value: 'goes on' })).toBe('goes on');
});

test('§18.4 stdio: a message of 100 MB ends its process, and is not kept', async () => {
  const stdio = useStdio();
  const pid = await readPid(stdio);
  const before = process.memoryUsage().rss;
  await expect(callTool(stdio, 'huge', { bytes: 100 * 1024 * 1024 })).rejects.toMatchObject({
    failure: 'invalid',
    message: 'it wrote a message of more than 8388608 bytes',
  });
  expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024);
  expect(stdio.states.at(-1)?.[1]).toContain('MAX_UPSTREAM_BYTES');
  await expect.poll(() => isAlive(pid)).toBe(false);
  await waitUntilUp(stdio, 2);
  expect(await callTool(stdio, 'echo', { value: 'again' })).toBe('again');
});

test('§18.4 stdio: a message may have as many bytes as are allowed', async () => {
  const stdio = useStdio(scripted(), { maxBytes: 1024 * 1024 });
  const answer = await callTool(stdio, 'huge', { bytes: 15 * 65_536 });
  expect(answer).toHaveLength(15 * 65_536);
});

test('§18.4 stdio: half a message and the end of the process is the end of the call', async () => {
  const stdio = useStdio();
  await expect(callTool(stdio, 'half')).rejects.toMatchObject({
    failure: 'interrupted',
    message: 'its process ended with exit code 3',
  });
});

test('§18.4 stdio: what is no JSON is skipped and logged without control characters', async () => {
  const stdio = useStdio();
  expect(await callTool(stdio, 'noJson')).toBe('done');
  const told = stdio.lines.map(({ msg }) => msg).filter((msg) => msg.startsWith('files: '));
  const stray = ['Listening on port 3000', '{"a":', '[1,2]', '"text"'];
  expect(told).toEqual(stray.map((line) => `files: ${line}`));
  const warned = stdio.lines.filter(({ level }) => level === 'warn');
  expect(warned).toMatchObject([{ line: 'Listening on port 3000' }]);
});

test('§18.4 stdio: a server that does not read fails calls after their time, and later ones at once', async () => {
  const clock = manualClock();
  const stdio = useStdio({ ...scripted(), timeoutMs: 5000 }, { clock, maxBytes: 1024 * 1024 });
  await callTool(stdio, 'stopReading');
  const value = 'x'.repeat(512 * 1024);
  const outcomes = Array.from({ length: 20 }, () =>
    callTool(stdio, 'echo', { value }).then(
      () => 'answered',
      (error: Error) => error.message,
    ),
  );
  await turn();
  clock.advance(5000);
  const messages = await Promise.all(outcomes);
  expect(new Set(messages)).toEqual(
    new Set(['it did not answer within 5 s', 'it does not read what is sent to it']),
  );
  // What the pipe takes, and a little more than 1 MiB.
  expect(messages.filter((message) => message.includes('did not answer')).length).toBeLessThan(6);
});

test('§18.4 stdio: calls of one moment that together are longer than one message may be reach a server that reads', async () => {
  const stdio = useStdio(scripted(), { maxBytes: 64 * 1024 });
  const value = 'x'.repeat(2048);
  const calls = Array.from({ length: 60 }, () => callTool(stdio, 'echo', { value }));
  expect(new Set(await Promise.all(calls))).toEqual(new Set([value]));
});

test('§18.4 stdio: a server that refuses initialize is not available, and the reason is told', async () => {
  const clock = manualClock();
  const { upstream, states } = useStdio(scripted('refuses-initialize'), { clock });
  await expect(upstream.describe(GATEWAY_CALLER)).rejects.toMatchObject({
    failure: 'unavailable',
    message: 'it refused initialize; it is started again in 1 s',
  });
  expect(states).toEqual([
    [
      false,
      String.raw`it refused initialize. The server said: "Log in first: run \"scripted login\"."`,
    ],
  ]);
});

test('§18.4 stdio: a server of an unknown revision is not available', async () => {
  const { upstream } = useStdio(scripted('unknown-version'), { clock: manualClock() });
  await expect(upstream.describe(GATEWAY_CALLER)).rejects.toMatchObject({
    message: 'it speaks no revision of MCP that the gateway knows; it is started again in 1 s',
  });
});

test('§18.3 stdio: a server that leaves server/discover unanswered gets initialize after 10 s, and at once the next time', async () => {
  const clock = manualClock();
  const stdio = useStdio(scripted('ignores-discover'), { clock });
  const described = stdio.upstream.describe(GATEWAY_CALLER);
  // Not before it was read.
  await expect
    .poll(() => stdio.lines.map(({ msg }) => msg))
    .toContain('files: ignored server/discover');
  clock.advance(10_000);
  expect(await described).toMatchObject({ era: 'session' });
  process.kill(await readPid(stdio), 'SIGKILL');
  await expect.poll(() => stdio.upstream.isUp).toBe(false);
  clock.advance(1000);
  await waitUntilUp(stdio, 2);
});

test.each([
  [
    'that is not there',
    { command: 'no-such-command' },
    'its command could not be started. The command no-such-command was not found. Install it, add its folder to the PATH of the gateway, or write its whole path in "command".',
  ],
  [
    'with its arguments',
    { command: 'npx -y server --token=hunter2' },
    'its command could not be started. The command npx -y server --token=… was not found. "command" is the program alone, and no shell reads it: its arguments belong in "args", a folder in "cwd".',
  ],
  [
    'in the home folder',
    { command: '~/server' },
    'its command could not be started. The command ~/server was not found. Write ${HOME} instead of ~: no shell expands it.',
  ],
  [
    'by a relative path',
    { command: './server' },
    'its command could not be started. The command ./server was not found. Write its full path: a relative one begins at "cwd", or in the folder where the gateway was started.',
  ],
  [
    'that may not be executed',
    { command: '/etc/passwd' },
    'its command could not be started. The command /etc/passwd may not be executed. Make the file executable for the user of the gateway.',
  ],
  [
    'in a folder that is not there',
    { ...scripted(), cwd: '/no/such/folder' },
    'its command could not be started. The folder of "cwd", /no/such/folder, does not exist.',
  ],
])('§18.4 stdio: a command %s is told with what to do', async (_name, config, reason) => {
  const { upstream, states, counts } = useStdio(config, { clock: manualClock() });
  await expect(upstream.request(GATEWAY_CALLER, toRequest('tools/list'))).rejects.toMatchObject({
    failure: 'unavailable',
    message: 'its command could not be started; it is started again in 1 s',
  });
  expect(states).toEqual([[false, reason]]);
  expect(counts.at(-1)).toBe(0);
});

const CHANGED = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}';

test.each([
  ['what is no message', '{no'],
  ['notifications', CHANGED],
])(
  '§18.4 stdio: a process that writes %s without end keeps nobody else waiting',
  async (_what, line) => {
    const wild = useStdio();
    const other = useStdio();
    await callTool(other, 'echo', { value: '' });
    await callTool(wild, 'flood', { line });
    for (let time = 0; time < 20; time += 1) {
      expect(await callTool(other, 'echo', { value: 'x' })).toBe('x');
    }
  },
);

function countChanges({ upstream }: StdioTest, caller: UpstreamCaller) {
  let heard = 0;
  const listChanged = () => {
    heard += 1;
  };
  upstream.listen(caller, { listChanged, resourceUpdated() {} });
  return () => heard;
}

test.each([
  ['all share', 'shared', 4000],
  ['one user has', 'user', 1000],
] as const)(
  '§18.4 stdio: of a process that %s, so many notifications are looked at in a second; the others wait',
  async (_what, isolation, count) => {
    const clock = manualClock();
    const stdio = useStdio({ ...scripted(), isolation }, { clock });
    const caller = sessionCaller();
    await callTool(stdio, 'echo', { value: '' }, { caller });
    const heard = countChanges(stdio, caller);
    const before = heard();
    await callTool(stdio, 'flood', { line: CHANGED }, { caller });
    await expect.poll(() => heard() - before).toBe(count);
    for (let time = 0; time < 500; time += 1) await turn();
    expect(heard() - before).toBe(count);
    clock.advance(1000);
    await expect.poll(() => heard() - before).toBe(2 * count);
  },
);

test('§18.4 stdio: a batch may have 100 messages; a longer one is skipped, and the call that it answers fails', async () => {
  const stdio = useStdio();
  await callTool(stdio, 'echo', { value: '' });
  const heard = countChanges(stdio, GATEWAY_CALLER);
  const before = heard();
  expect(await callTool(stdio, 'batch', { count: 99 })).toBe('done');
  expect(heard() - before).toBe(99);
  for (const count of [100, 100_000]) {
    await expect(callTool(stdio, 'batch', { count })).rejects.toMatchObject({
      failure: 'invalid',
      message: 'it answered in a batch of more than 100 messages',
    });
  }
  expect(heard() - before).toBe(99);
  expect(await callTool(stdio, 'echo', { value: 'still there' })).toBe('still there');
});
