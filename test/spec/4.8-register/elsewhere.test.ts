// §4.8, RFC 7591 §2: what clients say that is meant for other servers, and `null` for what they do not say.
import { describe, expect, test } from 'vitest';
import { useShared } from '../../support/lifetimes.ts';
import { startBroker } from '../../support/oauth/broker.ts';
import { documentAnswer, startDocumentHost } from '../../support/oauth/document-host.ts';
import { newPkce, REDIRECT } from '../../support/oauth/login-steps.ts';

const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code';

const LEFT_OUT = [
  [
    ['authorization_code', 'refresh_token', JWT_BEARER],
    ['authorization_code', 'refresh_token'],
  ],
  [['authorization_code', DEVICE_CODE], ['authorization_code']],
  [[DEVICE_CODE, JWT_BEARER, 'authorization_code', 'URN:example:grant'], ['authorization_code']],
  [['refresh_token', JWT_BEARER], ['refresh_token']],
] as const;

const REFUSED = [
  [JWT_BEARER],
  [DEVICE_CODE],
  ['refresh_token', DEVICE_CODE],
  ['authorization_code', 'password'],
  ['authorization_code', 'implicit'],
  ['authorization_code', 'device_code'],
  ['authorization_code', JWT_BEARER, 'client_credentials'],
  ['authorization_code', 'https://client.example/grants/urn:x'],
  ['authorization_code', null],
  [],
];

const OPTIONAL = [
  'client_name',
  'grant_types',
  'response_types',
  'token_endpoint_auth_method',
  'software_id',
  'software_version',
  'scope',
  'client_uri',
  'logo_uri',
  'contacts',
  'tos_uri',
  'policy_uri',
  'application_type',
  'jwks_uri',
];

describe.each([
  ['proxy mode', { OAUTH_MODE: 'proxy' }],
  ['broker mode', {}],
])('in %s', (_mode, env: Readonly<Record<string, string>>) => {
  const broker = useShared(() => startBroker({ ...env, DCR_RATE_LIMIT_MAX: '1000' }));
  const register = (metadata: object) =>
    broker.gateway.request({ method: 'POST', path: '/oauth/register', body: metadata });

  test.each(LEFT_OUT)(
    '§4.8 register: of the grant types %j, %j are registered and answered',
    async (sent, kept) => {
      const { status, json } = await register({ redirect_uris: [REDIRECT], grant_types: sent });
      expect([status, json.grant_types]).toEqual([201, kept]);
      const stored = await broker.store.get(`dcr:client:${json.client_id}`);
      expect(JSON.parse(stored ?? '').grant_types).toEqual(kept);
    },
  );

  test.each(REFUSED.map((types) => [types]))(
    '§4.8 register: the grant types %j are refused',
    async (types) => {
      const { status, json } = await register({ redirect_uris: [REDIRECT], grant_types: types });
      expect([status, json.error]).toEqual([400, 'invalid_client_metadata']);
      expect(json.error_description).toContain('authorization_code, refresh_token');
    },
  );

  test.each(OPTIONAL)('§4.8 register: null for %s is as if it were left out', async (member) => {
    const [without, { status, json }] = await Promise.all([
      register({ redirect_uris: [REDIRECT] }),
      register({ redirect_uris: [REDIRECT], [member]: null }),
    ]);
    const { client_id: id, client_id_issued_at: at } = json;
    expect([status, json]).toEqual([
      201,
      { ...without.json, client_id: id, client_id_issued_at: at },
    ]);
  });

  test('§4.8 register: null for redirect_uris is as if they were left out, which they must not be', async () => {
    const { status, json } = await register({ redirect_uris: null });
    expect([status, json.error]).toEqual([400, 'invalid_client_metadata']);
    expect(json.error_description).toBe((await register({})).json.error_description);
  });
});

test('§14 client documents: null for an optional member, and grant types for elsewhere, keep nobody out', async () => {
  const host = await startDocumentHost({ names: ['client.example'] });
  const id = 'https://client.example/client.json';
  const broker = await startBroker(
    { CIMD_ALLOWED_HOSTS: 'client.example' },
    { network: host.network },
  );
  try {
    const common = { client_id: id, redirect_uris: [REDIRECT] };
    for (const members of [
      { grant_types: ['authorization_code', JWT_BEARER, DEVICE_CODE] },
      Object.fromEntries(OPTIONAL.map((member) => [member, null])),
    ]) {
      host.answer(documentAnswer({ ...common, ...members }));
      const { status } = await broker.steps.authorize({ id, ...newPkce() });
      expect([members, status]).toEqual([members, 200]);
      broker.clock.sleep(86_400_000);
    }
  } finally {
    await broker.close();
    await host.close();
  }
});
