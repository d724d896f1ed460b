// A logout at the provider in the very moment in which a login becomes one of the session that ends: at its code, or when it
// is renewed.
import { EventEmitter, once } from 'node:events';
import { expect, test } from 'vitest';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { createLogoutTokens, sendLogout } from '../../support/oauth/logout-tokens.ts';
import { startOwnTokens } from '../../support/oauth/own-tokens.ts';
import { wrapStore } from '../../support/stores/wrapped-store.ts';

const HOUR_MS = 3_600_000;

/** `held`: a grant is about to be written, by the step of this number; it is once the test says `go`. */
async function start() {
  const events = new EventEmitter();
  let stepsLeft = 0;
  async function hold(key: string): Promise<void> {
    if (stepsLeft === 0 || !key.startsWith('oauth:grant:')) return;
    stepsLeft -= 1;
    if (stepsLeft > 0) return;
    const go = once(events, 'go');
    events.emit('held');
    await go;
  }
  const { store, remove } = await wrapStore((real) => ({
    async set(key, value, ttlSeconds) {
      await hold(key);
      return real.set(key, value, ttlSeconds);
    },
    async compareAndSet(key, expected, value, ttlSeconds) {
      await hold(key);
      return real.compareAndSet(key, expected, value, ttlSeconds);
    },
  }));
  closeAfterTest({ close: remove });
  const own = closeAfterTest(await startOwnTokens({ deps: { store } }));

  /** What `write` comes to, where the session ends while it is held. */
  async function endMeanwhile<Answer>(step: number, write: () => Promise<Answer>, sid: string) {
    stepsLeft = step;
    const held = once(events, 'held');
    const writing = write();
    await held;
    const token = await createLogoutTokens(own).sign({ sid, sub: undefined });
    expect((await sendLogout(own.gateway, token)).status).toBe(200);
    events.emit('go');
    return writing;
  }
  return { own, endMeanwhile };
}

test('§13.4 provider logout: a code whose grant is about to be written comes to nothing', async () => {
  const { own, endMeanwhile } = await start();
  const client = await own.steps.register();
  const back = await own.logInTo(client, { sid: 'sid-1' });
  const answer = await endMeanwhile(1, () => own.steps.redeem(client, back), 'sid-1');
  expect([answer.status, answer.json.error]).toEqual([400, 'invalid_grant']);
  await expect.poll(() => own.provider.revoked).toHaveLength(1);
});

test('§13.4 provider logout: a login that is about to become one of the session ends, too', async () => {
  const { own, endMeanwhile } = await start();
  const tokens = await own.logIn({ sid: 'sid-1' });
  own.clock.advance(1.1 * HOUR_MS);
  own.provider.idToken = { sid: 'sid-2' };
  // First its refresh token is kept, then what its ID token says.
  const answer = await endMeanwhile(2, () => own.refresh(tokens), 'sid-2');
  expect([answer.status, answer.json.error]).toEqual([400, 'invalid_grant']);
  expect((await own.refresh(tokens)).json.error).toBe('invalid_grant');
});
