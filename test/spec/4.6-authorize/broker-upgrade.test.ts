// §16: a rolling upgrade, in which replicas of two versions share one store.
import { expect, test } from 'vitest';
import { hashSha256 } from '../../../src/platform/ids.ts';
import { buildOAuthKey } from '../../../src/store/keys.ts';
import { createSeal } from '../../../src/store/seal/seal.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { type Broker, startBroker } from '../../support/oauth/broker.ts';
import { REDIRECT, STATE } from '../../support/oauth/login-steps.ts';

const SECRET = 'the secret of all replicas which is long enough';
let broker: Broker;

/** Where a record lies, and how it is sealed, as 0.1.0 has it. */
const keyOf = (kind: string, secret: string) => buildOAuthKey(kind, hashSha256(secret));
const open = (key: string, sealed: string | undefined) =>
  JSON.parse(createSeal([SECRET]).open(key, sealed ?? '') ?? 'null') as Record<string, unknown>;

async function rewrite(key: string, change: (record: Record<string, unknown>) => object) {
  const record = open(key, await broker.store.get(key));
  await broker.store.set(key, createSeal([SECRET]).seal(key, JSON.stringify(change(record))), 60);
}

test('§13 broker: what 0.1.0 left of a login is read, and it finds in ours what it needs', async () => {
  broker = closeAfterTest(await startBroker({ OAUTH_STATE_SECRET: SECRET }));
  const { steps } = broker;
  const client = await steps.register();
  const { cookie, asked } = await steps.approve(client);
  const state = asked.searchParams.get('state') ?? '';
  const login = keyOf('login', state);
  expect(open(login, await broker.store.get(login))).toMatchObject({
    version: 1,
    browser: expect.any(String),
    clientId: client.id,
    redirectUri: REDIRECT,
    state: STATE,
    codeChallenge: client.challenge,
    resources: expect.any(Array),
    codeVerifier: expect.any(String),
  });
  await rewrite(login, ({ version: _, sendsIssuer: __, clientName: ___, ...old }) => ({
    ...old,
    resources: [],
  }));
  const { headers } = await steps.callback({ code: 'provider-code', state }, cookie);
  const back = new URL(headers.location ?? '');
  await rewrite(
    keyOf('code', back.searchParams.get('code') ?? ''),
    ({ version: _, ...old }) => old,
  );
  broker.answer(200, { access_token: await broker.sign() });
  expect((await steps.redeem(client, back)).status).toBe(200);
});
