// §12: more calls than the process can serve.
import { describe, expect, test } from 'vitest';
import { createOverload } from '../../../src/http/server/overload.ts';
import type { Clock } from '../../../src/platform/clock.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { collectLog } from '../../support/gateway/log.ts';
import { useGateway } from '../../support/gateway/use-gateway.ts';
import { ACCEPT_PROVIDER_TOKENS } from '../../support/oauth/issuer.ts';

/** An event loop that does one thing after the other, each of which takes as long as is said. */
function createLoop() {
  let now = 0;
  let timers: { readonly dueAt: number; readonly task: () => void }[] = [];
  const clock: Clock = {
    now: () => now,
    monotonic: () => now,
    after(delay, task) {
      const timer = { dueAt: now + delay, task };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
  };
  return {
    clock,
    /** Nobody gets a turn meanwhile. */
    work(ms: number) {
      now += ms;
    },
    /** The timers have their turn. */
    runTimers() {
      const due = timers.filter(({ dueAt }) => dueAt <= now);
      timers = timers.filter((timer) => !due.includes(timer));
      for (const { task } of due) task();
    },
    countTimers: () => timers.length,
  };
}

const REFUSAL_MS = 0.03;

function start(getWait = () => 0) {
  const loop = createLoop();
  const { log, lines } = collectLog();
  const overload = createOverload({ clock: loop.clock, log }, { getWait });

  /** A turn in which so many calls come, each of which takes so long if it is let in. */
  function runTurn(calls: number, msPerCall: number) {
    let served = 0;
    for (let call = 0; call < calls; call += 1) {
      const isAdmitted = overload.tryAdmit(loop.clock.monotonic());
      loop.work(isAdmitted ? msPerCall : REFUSAL_MS);
      if (isAdmitted) served += 1;
    }
    loop.runTimers();
    return { served, refused: calls - served };
  }

  /** The same where calls wait for the store: those of a turn are served in the next one. */
  let waiting = 0;
  function runTurnWithStore(calls: number, msPerCall: number) {
    loop.work(waiting * msPerCall);
    const served = waiting;
    waiting = 0;
    for (let call = 0; call < calls; call += 1) {
      if (overload.tryAdmit(loop.clock.monotonic())) waiting += 1;
      loop.work(REFUSAL_MS);
    }
    loop.runTimers();
    return { served, refused: calls - waiting };
  }

  function wait(ms: number) {
    for (let left = ms; left > 0; left -= 50) {
      loop.work(50);
      loop.runTimers();
    }
  }

  const linesOf = (level: string) => lines.filter((line) => line.level === level);
  return { loop, overload, runTurn, runTurnWithStore, wait, linesOf };
}

type Run = ReturnType<typeof start>['runTurn'];

/** The milliseconds, good answers and refusals of so many turns. */
function measure(clock: Clock, turns: number, run: Run, calls: number, msPerCall: number) {
  const began = clock.monotonic();
  let served = 0;
  let refused = 0;
  for (let turn = 0; turn < turns; turn += 1) {
    const outcome = run(calls, msPerCall);
    served += outcome.served;
    refused += outcome.refused;
  }
  const ms = clock.monotonic() - began;
  return { served, refused, msPerTurn: ms / turns, share: (served * msPerCall) / ms };
}

describe.each(['runTurn', 'runTurnWithStore'] as const)('%s', (name) => {
  test.each([
    { calls: 3000, msPerCall: 1 },
    { calls: 300, msPerCall: 20 },
    { calls: 9000, msPerCall: 0.5 },
  ])(
    '§12 overload: of $calls calls at once of $msPerCall ms each, as many are let in as take half a second',
    ({ calls, msPerCall }) => {
      const started = start();
      const { clock } = started.loop;
      const run = started[name];
      measure(clock, 8, run, calls, msPerCall);
      const { refused, msPerTurn, share } = measure(clock, 40, run, calls, msPerCall);
      expect(refused).toBeGreaterThan(0);
      // Half a second for those that are let in, and what the refusals take.
      expect(msPerTurn).toBeGreaterThan(350);
      expect(msPerTurn).toBeLessThan(650 + calls * REFUSAL_MS);
      expect(share).toBeGreaterThan(500 / (500 + calls * REFUSAL_MS) - 0.05);
    },
  );

  test('§12 overload: calls that take less than half a second together are all let in', () => {
    const started = start();
    const { refused } = measure(started.loop.clock, 50, started[name], 900, 0.5);
    expect(refused).toBe(0);
    expect(started.linesOf('warn')).toEqual([]);
  });
});

test('§12 overload: one line when it begins, one when it is over, with how many were refused', () => {
  const { loop, runTurn, wait, linesOf } = start();
  const { refused } = measure(loop.clock, 10, runTurn, 3000, 1);
  expect(linesOf('warn')).toHaveLength(1);
  expect(linesOf('warn')[0]?.msg).toMatch(/503.*WORKERS/);
  expect(linesOf('info')).toEqual([]);
  wait(15_000);
  expect(linesOf('info')).toEqual([expect.objectContaining({ refused })]);
  measure(loop.clock, 10, runTurn, 3000, 1);
  expect(linesOf('warn')).toHaveLength(2);
});

test('§12 overload: when less comes, nothing is refused from then on', () => {
  const { loop, runTurn } = start();
  measure(loop.clock, 10, runTurn, 3000, 1);
  expect(measure(loop.clock, 50, runTurn, 200, 1).refused).toBe(0);
});

test('§12 overload: when calls become cheaper, more are let in, within a few turns', () => {
  const { loop, runTurn } = start();
  measure(loop.clock, 10, runTurn, 3000, 5);
  measure(loop.clock, 10, runTurn, 3000, 0.1);
  expect(measure(loop.clock, 10, runTurn, 3000, 0.1).refused).toBe(0);
});

test.each([
  { what: 'a stop of 3 s', ms: 3000 },
  { what: 'a stop of a minute', ms: 60_000 },
])('§12 overload: $what, and all that came meanwhile is let in', ({ ms }) => {
  const { loop, runTurn, linesOf } = start();
  measure(loop.clock, 20, runTurn, 100, 0.2);
  loop.work(ms);
  loop.runTimers();
  expect(runTurn(1500, 0.2).refused).toBe(0);
  expect(measure(loop.clock, 20, runTurn, 100, 0.2).refused).toBe(0);
  expect(linesOf('warn')).toEqual([]);
});

test('§12 overload: a stop in the middle of a turn, and the rest of the turn is let in', () => {
  const { loop, runTurn, overload } = start();
  measure(loop.clock, 20, runTurn, 100, 0.2);
  expect(overload.tryAdmit(loop.clock.monotonic())).toBe(true);
  loop.work(3000);
  expect(runTurn(1500, 0.2).refused).toBe(0);
  expect(measure(loop.clock, 20, runTurn, 1500, 0.2).refused).toBe(0);
});

test('§12 overload: a few calls that block for long are let in: refusals would help nobody', () => {
  const { loop, runTurn } = start();
  expect(measure(loop.clock, 50, runTurn, 8, 500).refused).toBe(0);
});

test('§12 overload: the first calls after a start are slow, and are let in', () => {
  const { runTurn } = start();
  expect(runTurn(300, 3).refused).toBe(0);
  expect(runTurn(300, 0.3).refused).toBe(0);
});

test('§12 overload: while the next call has waited for half a second, those that come are refused', () => {
  let waitMs = 499;
  const { runTurn, wait, linesOf } = start(() => waitMs);
  expect(runTurn(20, 0.2).refused).toBe(0);
  waitMs = 500;
  expect(runTurn(20, 0.2).refused).toBe(20);
  waitMs = 0;
  expect(runTurn(20, 0.2).refused).toBe(0);
  wait(15_000);
  expect(linesOf('info')).toEqual([expect.objectContaining({ refused: 20 })]);
});

test('§12 overload: an idle process has no timer', () => {
  const { loop, runTurn, wait } = start();
  runTurn(10, 0.2);
  wait(1000);
  expect(loop.countTimers()).toBe(0);
});

describe('what callers see', () => {
  const manual = manualClock();
  /** How much later than the timers this process has its turn. */
  let lateness = 0;
  const clock: Clock = { ...manual, monotonic: () => manual.monotonic() + lateness };
  const gateway = useGateway({
    env: {
      OAUTH_MODE: 'broker',
      ...ACCEPT_PROVIDER_TOKENS,
      OAUTH_CLIENT_ID: 'client',
      METRICS_ENABLED: 'true',
    },
    deps: { clock },
  });

  /** So that only the calls that are always let in are, until the next tick. */
  async function overloadIt(): Promise<void> {
    for (let tick = 0; tick < 3; tick += 1) {
      await gateway.rpc({ jsonrpc: '2.0', id: 1, method: 'ping' });
      lateness += 2000;
      manual.advance(100);
    }
    for (let call = 0; call < 32; call += 1)
      expect((await gateway.request({ path: '/mcp' })).status).not.toBe(503);
  }

  test('§12 overload: /mcp and /oauth are refused in their own form with Retry-After, all else is served', async () => {
    await overloadIt();
    const refused = await gateway.rpc({ jsonrpc: '2.0', id: 1, method: 'ping' });
    expect(refused.status).toBe(503);
    expect(refused.headers).toMatchObject({
      'retry-after': '1',
      'x-content-type-options': 'nosniff',
    });
    expect(refused.headers.connection).not.toBe('close');
    expect(refused.json).toEqual({
      jsonrpc: '2.0',
      id: null,
      error: {
        code: -32000,
        message: 'Service Unavailable',
        data: { details: expect.stringContaining('too many requests') },
      },
    });
    const token = await gateway.request({ method: 'POST', path: '/oauth/token', body: 'x=y' });
    expect(token).toMatchObject({ status: 503, json: { error: 'server_error' } });
    expect(token.headers['retry-after']).toBe('1');
    // Whatever stands there: the metrics name the endpoint.
    for (const path of ['/mcp/a', '/mcp/b', '/mcp/x%22y']) {
      expect((await gateway.request({ method: 'POST', path })).status).toBe(503);
    }

    for (const path of ['/health', '/health/ready', '/.well-known/oauth-authorization-server']) {
      expect((await gateway.request({ path })).status).toBe(200);
    }
    const preflight = {
      Origin: gateway.baseUrl,
      'Access-Control-Request-Method': 'POST',
    };
    const allowed = await gateway.request({ method: 'OPTIONS', path: '/mcp', headers: preflight });
    expect(allowed.status).toBe(204);
    const metrics = await gateway.request({ path: '/metrics' });
    expect(metrics.text).toContain('http_overload_refusals_total{route="/mcp"} 1');
    expect(metrics.text).toMatch(
      /http_requests_total\{method="POST",route="\/mcp",status_code="503"\} 1/,
    );
    expect(metrics.text).toContain('http_overload_refusals_total{route="/mcp/:server"} 3');
    expect(metrics.text).not.toMatch(/route="\/mcp\/[^:]/);
    const lines = gateway.log.filter(
      ({ msg, error }) => msg.startsWith('More calls') || error === 'overloaded',
    );
    expect(lines.map(({ level }) => level)).toEqual(['warn', ...Array(5).fill('debug')]);
  });
});
