// Assertions (ID-JAG) of clients that no file names: a metadata document says by which keys such a client proves who it is.
import { expect, test } from 'vitest';
import { useFresh } from '../../support/lifetimes.ts';
import { startDocumentHost } from '../../support/oauth/document-host.ts';
import { assertUser, ID_JAG_ENV, JWT_BEARER } from '../../support/oauth/id-jag.ts';
import {
  ASSERTION_TYPE,
  askForToken,
  assertionOf,
  type Members,
  newKey,
} from '../../support/oauth/machine-clients.ts';
import { startOwnTokens } from '../../support/oauth/own-tokens.ts';

const HOST = 'client.example';
const ID = `https://${HOST}/agent.json`;
const KEYS = `https://${HOST}/keys.json`;
const KEY = newKey('ES256', 'one');
const NEXT = newKey('ES256', 'two');

const own = useFresh(async () => {
  const host = await startDocumentHost({ names: [HOST, 'other.example'] });
  const setup = await startOwnTokens({
    env: { ...ID_JAG_ENV, CIMD_ALLOWED_HOSTS: HOST },
    deps: { network: host.network },
  });
  const pages = new Map<string, unknown>();
  host.answer((res, path) => {
    const page = pages.get(path);
    res.writeHead(page === undefined ? 404 : 200, { 'Content-Type': 'application/json' });
    res.end(JSON.stringify(page));
  });
  return {
    ...setup,
    host,
    pages,
    async close() {
      await setup.close();
      await host.close();
    },
  };
});

const documentOf = (change: Members = {}) => ({
  client_id: ID,
  client_name: 'Agent',
  token_endpoint_auth_method: 'private_key_jwt',
  jwks: { keys: [KEY.jwk] },
  ...change,
});

const publish = (change: Members = {}): void => {
  own.pages.set('/agent.json', documentOf(change));
};

async function bring(key = KEY, claims: Members = {}) {
  const now = own.clock.now();
  return askForToken(own.gateway, {
    form: {
      grant_type: JWT_BEARER,
      assertion: await assertUser(own.provider.issuer, now, {
        claims: { client_id: ID, ...claims },
      }),
      client_assertion: assertionOf(ID, key, now),
      client_assertion_type: ASSERTION_TYPE,
    },
  });
}

test('§14, §13.7 ID-JAG: a client with keys in its document gets a token for its user', async () => {
  publish();
  const { status, json } = await bring();
  expect([status, json.scope, json.refresh_token]).toEqual([200, 'read write', undefined]);
  expect((await own.call(json.access_token)).status).toBe(200);
  expect((await bring(NEXT)).json.error).toBe('invalid_client');
  expect((await bring(KEY, { client_id: 'agent' })).json.error).toBe('invalid_grant');
});

test('§14, §13.7 ID-JAG: keys are fetched where the document says they are, again for one that is new, and never often', async () => {
  publish({ jwks: undefined, jwks_uri: KEYS });
  own.pages.set('/keys.json', { keys: [KEY.jwk] });
  const count = () => own.host.requests.filter(({ path }) => path === '/keys.json').length;
  expect((await bring()).status).toBe(200);
  own.pages.set('/keys.json', { keys: [NEXT.jwk] });
  for (let at = 0; at < 5; at += 1) expect((await bring(NEXT)).status).toBe(401);
  expect(count()).toBe(1);
  own.clock.advance(10_000);
  expect((await bring(NEXT)).status).toBe(200);
  expect((await bring(KEY)).status).toBe(401);
  expect(count()).toBe(2);
  own.pages.delete('/keys.json');
  own.clock.advance(301_000);
  for (let at = 0; at < 5; at += 1) expect((await bring(NEXT)).status).not.toBe(200);
  expect(count()).toBe(3);
});

test.each<[string, Members]>([
  [
    'is public',
    { token_endpoint_auth_method: 'none', redirect_uris: ['https://client.example/cb'] },
  ],
  ['has no method', { token_endpoint_auth_method: undefined }],
  ['has a secret', { token_endpoint_auth_method: 'client_secret_basic' }],
  ['has another ID', { client_id: `${ID}/other` }],
  ['shows a secret', { client_secret: 'secret' }],
  ['has no keys', { jwks: undefined }],
  ['has keys in two places', { jwks_uri: KEYS }],
  ['has no usable key', { jwks: { keys: [{ kty: 'oct', k: 'AAAA' }] } }],
  [
    'has its keys at another host',
    { jwks: undefined, jwks_uri: 'https://other.example/keys.json' },
  ],
  ['has its keys inside', { jwks: undefined, jwks_uri: 'https://127.0.0.1/keys.json' }],
  ['has its keys without TLS', { jwks: undefined, jwks_uri: `http://${HOST}/keys.json` }],
  ['has no such grant type', { grant_types: ['authorization_code'] }],
])('§14, §13.7 ID-JAG: refused: a document that %s', async (_what, change) => {
  publish(change);
  const { status, json } = await bring();
  expect([status, json.error]).toEqual([401, 'invalid_client']);
  expect(own.host.requests.map(({ path }) => path)).toEqual(['/agent.json']);
});

test('§14, §13.7 ID-JAG: such a client does nothing else: no login, no token of its own', async () => {
  publish();
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: ID,
    redirect_uri: 'https://client.example/cb',
    code_challenge: 'x'.repeat(43),
    code_challenge_method: 'S256',
  });
  const { status } = await own.gateway.request({ path: `/oauth/authorize?${query}` });
  expect(status).toBe(400);
  const itself = await askForToken(own.gateway, {
    form: {
      client_assertion: assertionOf(ID, KEY, own.clock.now()),
      client_assertion_type: ASSERTION_TYPE,
    },
  });
  expect(itself.status).toBeGreaterThanOrEqual(400);
  expect(itself.json).not.toHaveProperty('access_token');
});

test('RFC 7009 §2.1, §13.7 ID-JAG: a client with keys revokes by them, and its ID alone ends nothing', async () => {
  publish();
  const { access_token: token } = (await bring()).json;
  const stranger = await own.steps.register();
  const revoke = (form: Readonly<Record<string, string>>) =>
    askForToken(own.gateway, { path: '/oauth/revoke', form: { token, ...form } });
  const proof = (key = KEY) => ({
    client_assertion: assertionOf(ID, key, own.clock.now()),
    client_assertion_type: ASSERTION_TYPE,
  });
  for (const form of [
    { client_id: ID },
    proof(NEXT),
    { client_id: ID, ...proof(NEXT) },
    { client_id: stranger.id },
  ]) {
    const { status, json } = await revoke(form);
    expect([status, json.error]).toEqual([401, 'invalid_client']);
  }
  expect((await own.call(token)).status).toBe(200);
  expect((await revoke({ client_id: ID, ...proof() })).status).toBe(200);
  expect((await own.call(token)).json.error.data.reason).toBe('token_revoked');
});
