// §17: SHUTDOWN_DELAY_MS, and what a second signal does.
import { afterEach, expect, test } from 'vitest';
import { endPosterns, type RunningPostern, startPostern } from '../support/gateway/process.ts';
import { checkSession, isRefused, openSession } from '../support/gateway/process-http.ts';

afterEach(endPosterns);

/** Longer than any test: only a second signal ends it. */
const LONG_DELAY = { AUTH_REQUIRED: 'false', SHUTDOWN_DELAY_MS: '600000' } as const;

const isDraining = (postern: RunningPostern) => postern.stdout.includes('"Shutting down');

async function beginShutdown(postern: RunningPostern, signal: NodeJS.Signals): Promise<void> {
  postern.kill(signal);
  await expect.poll(() => isDraining(postern), { timeout: 10_000, interval: 5 }).toBe(true);
}

test.each(['SIGTERM', 'SIGINT'] as const)(
  '§17 shutdown: after %s readiness is 503 at once, and all else is served during the delay',
  async (signal) => {
    const postern = await startPostern(LONG_DELAY);
    const session = await openSession(postern.url);
    expect((await fetch(`${postern.url}/health/ready`)).status).toBe(200);
    await beginShutdown(postern, signal);
    const ready = await fetch(`${postern.url}/health/ready`);
    expect(ready.status).toBe(503);
    expect(await ready.json()).toMatchObject({
      status: 'not_ready',
      checks: { store: { status: 'ok' } },
    });
    // Each closes its connection, so that the client comes back by way of the load balancer.
    for (const path of ['/health', '/', '/.well-known/oauth-protected-resource']) {
      const answer = await fetch(`${postern.url}${path}`);
      expect([path, answer.status]).toEqual([path, 200]);
      expect(answer.headers.get('connection')).toBe('close');
    }
    expect(await checkSession(postern.url, { session })).toBe(200);
    expect(await checkSession(postern.url, { session: await openSession(postern.url) })).toBe(200);
    expect(postern.hasEnded).toBe(false);
  },
);

test('§17 shutdown: when the delay is over the service ends by itself', async () => {
  const postern = await startPostern({ AUTH_REQUIRED: 'false', SHUTDOWN_DELAY_MS: '1000' });
  const before = performance.now();
  postern.kill('SIGTERM');
  expect(await postern.ended).toEqual({ code: 0, signal: null });
  expect(performance.now() - before).toBeGreaterThan(900);
});

test.each([
  { first: 'SIGTERM', second: 'SIGTERM', code: 143 },
  { first: 'SIGTERM', second: 'SIGINT', code: 130 },
  { first: 'SIGINT', second: 'SIGTERM', code: 143 },
] as const)('§17 shutdown: $second after $first ends at once', async ({ first, second, code }) => {
  const postern = await startPostern(LONG_DELAY);
  await beginShutdown(postern, first);
  postern.kill(second);
  expect(await postern.ended).toEqual({ code, signal: null });
  expect(await isRefused(postern.port)).toBe(true);
});

test('§17 shutdown: pressing Ctrl+C again ends at once', async () => {
  const postern = await startPostern(LONG_DELAY);
  await beginShutdown(postern, 'SIGINT');
  // What follows within 200 ms counts as npm's echo of the first, so it takes more than one.
  const pressing = setInterval(() => postern.kill('SIGINT'), 100);
  const end = await postern.ended.finally(() => clearInterval(pressing));
  expect(end).toEqual({ code: 130, signal: null });
});

test('§17 shutdown: the echo of one Ctrl+C, from the terminal and from npm, is no second wish', async () => {
  let tookMs = Number.POSITIVE_INFINITY;
  // On a machine too slow to press twice within 200 ms there is nothing to see: once more.
  for (let attempt = 1; attempt <= 10 && tookMs >= 200; attempt += 1) {
    const postern = await startPostern(LONG_DELAY);
    const before = performance.now();
    await beginShutdown(postern, 'SIGINT');
    postern.kill('SIGINT');
    // Once it answers this, it has seen the second signal.
    const status = await fetch(`${postern.url}/health`).then(
      (answer) => answer.status,
      () => 0,
    );
    tookMs = performance.now() - before;
    if (tookMs < 200) expect(status).toBe(200);
    await endPosterns();
  }
  expect(tookMs).toBeLessThan(200);
});
