import { beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway/gateway.ts';
import { useGateway } from '../../support/gateway/use-gateway.ts';

const UPSTREAM = 'https://idp.example/authorize';
const REDIRECT = 'https://client.example/cb?keep=1';
const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';

const gateway = useGateway({
  env: {
    OAUTH_AUTHORIZATION_URL: `${UPSTREAM}?access_type=offline&p=a%20b`,
    OAUTH_CLIENT_ID: 'static-client',
  },
});
let svc: string;
beforeAll(async () => {
  svc = await registerAt(gateway);
});

async function registerAt(at: TestGateway): Promise<string> {
  const body = { redirect_uris: [REDIRECT, 'http://localhost:1234/cb'] };
  return (await at.request({ method: 'POST', path: '/oauth/register', body })).json.client_id;
}

type Changes = Readonly<Record<string, string | undefined>>;

const queryOf = (changes: Changes = {}) => {
  const all = {
    client_id: svc,
    redirect_uri: REDIRECT,
    response_type: 'code',
    scope: 'openid profile email',
    state: 'st/a te+&=ü',
    code_challenge: CHALLENGE,
    code_challenge_method: 'S256',
    ...changes,
  };
  const given = Object.entries(all).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  return new URLSearchParams(given).toString();
};
const authorize = (query: string, at = gateway) =>
  at.request({ path: `/oauth/authorize?${query}` });

describe('the authorization endpoint', () => {
  test('§4.6 redirects to the provider with every parameter and the static client', async () => {
    const { status, headers, text } = await authorize(
      queryOf({ resource: 'https://a.example', prompt: 'login' }),
    );
    expect(status).toBe(302);
    expect(text).toBe('');
    const location = new URL(headers.location ?? '');
    expect(location.origin + location.pathname).toBe(UPSTREAM);
    expect(Object.fromEntries(location.searchParams)).toEqual({
      access_type: 'offline',
      p: 'a b',
      client_id: 'static-client',
      redirect_uri: REDIRECT,
      response_type: 'code',
      scope: 'openid profile email',
      state: 'st/a te+&=ü',
      code_challenge: CHALLENGE,
      code_challenge_method: 'S256',
      resource: 'https://a.example',
      prompt: 'login',
    });
    expect(headers.location).toContain('?access_type=offline&p=a%20b&');
  });

  test('§4.6 another client id passes unchanged, the provider judges it', async () => {
    const { headers } = await authorize(
      queryOf({ client_id: 'my-app', redirect_uri: 'https://any.example/' }),
    );
    const { searchParams } = new URL(headers.location ?? '');
    expect(searchParams.get('client_id')).toBe('my-app');
    expect(searchParams.get('redirect_uri')).toBe('https://any.example/');
  });

  test('§4.6 resource may repeat, and all of its values go on', async () => {
    const { headers } = await authorize(`${queryOf()}&resource=a&resource=b`);
    expect(new URL(headers.location ?? '').searchParams.getAll('resource')).toEqual(['a', 'b']);
  });

  test('§4.6 a configured parameter wins over the caller’s', async () => {
    const { headers } = await authorize(queryOf({ access_type: 'online' }));
    expect(new URL(headers.location ?? '').searchParams.getAll('access_type')).toEqual(['offline']);
  });

  const unknown = 'svc-AAAAAAAAAAAA';
  test.each([
    {
      what: 'no client_id',
      change: { client_id: undefined },
      error: 'invalid_request',
      names: 'client_id',
    },
    {
      what: 'an empty client_id',
      change: { client_id: '' },
      error: 'invalid_request',
      names: 'client_id',
    },
    {
      what: 'an unknown client',
      change: { client_id: unknown },
      error: 'invalid_client',
      names: '',
    },
    {
      what: 'a client id that never was one',
      change: { client_id: 'svc-x' },
      error: 'invalid_client',
      names: '',
    },
    {
      what: 'an unknown client and nothing else',
      change: { client_id: unknown, redirect_uri: undefined },
      error: 'invalid_client',
      names: '',
    },
    {
      what: 'no redirect_uri',
      change: { redirect_uri: undefined },
      error: 'invalid_request',
      names: 'redirect_uri',
    },
    {
      what: 'a foreign redirect_uri',
      change: { redirect_uri: 'https://evil.example/' },
      error: 'invalid_redirect_uri',
      names: '',
    },
    {
      what: 'a redirect_uri in other case',
      change: { redirect_uri: REDIRECT.replace('client', 'CLIENT') },
      error: 'invalid_redirect_uri',
      names: '',
    },
    {
      what: 'a redirect_uri with more path',
      change: { redirect_uri: `${REDIRECT}/more` },
      error: 'invalid_redirect_uri',
      names: '',
    },
    {
      what: 'another loopback port',
      change: { redirect_uri: 'http://localhost:1235/cb' },
      error: 'invalid_redirect_uri',
      names: '',
    },
    {
      what: 'no response_type',
      change: { response_type: undefined },
      error: 'invalid_request',
      names: 'response_type',
    },
    {
      what: 'response_type token',
      change: { response_type: 'token' },
      error: 'unsupported_response_type',
      names: '',
    },
    { what: 'no state', change: { state: undefined }, error: 'invalid_request', names: 'state' },
    { what: 'an empty state', change: { state: '' }, error: 'invalid_request', names: 'state' },
    {
      what: 'no code_challenge',
      change: { code_challenge: undefined },
      error: 'invalid_request',
      names: 'code_challenge',
    },
    {
      what: 'a short code_challenge',
      change: { code_challenge: CHALLENGE.slice(1) },
      error: 'invalid_request',
      names: 'code_challenge',
    },
    {
      what: 'a code_challenge with padding',
      change: { code_challenge: `${CHALLENGE.slice(1)}=` },
      error: 'invalid_request',
      names: 'code_challenge',
    },
    {
      what: 'no code_challenge_method',
      change: { code_challenge_method: undefined },
      error: 'invalid_request',
      names: 'code_challenge_method',
    },
    {
      what: 'method plain',
      change: { code_challenge_method: 'plain' },
      error: 'invalid_request',
      names: 'S256',
    },
    {
      what: 'a request object',
      change: { request: 'ey.J.x' },
      error: 'invalid_request',
      names: 'request',
    },
    {
      what: 'a request_uri',
      change: { request_uri: 'https://evil.example/r' },
      error: 'invalid_request',
      names: 'request_uri',
    },
    {
      what: 'a registration',
      change: { registration: '{}' },
      error: 'invalid_request',
      names: 'registration',
    },
  ])('§7.3 authorize with $what: 400 $error, and no redirect', async ({ change, error, names }) => {
    const { status, headers, json } = await authorize(queryOf(change));
    expect(status).toBe(400);
    expect(headers.location).toBeUndefined();
    expect(json.error).toBe(error);
    expect(json.error_description).toContain(names);
  });

  test('§7.3 the log has the redirect URI that was refused, without its query, and those registered', async () => {
    const redirect_uri = 'https://client.example/elsewhere?secret=hunter2#hunter2';
    await authorize(queryOf({ redirect_uri }));
    const line = gateway.log.at(-1);
    expect(line).toMatchObject({
      error: 'unregistered_redirect_uri',
      found: 'https://client.example/elsewhere',
      expected: ['https://client.example/cb', 'http://localhost:1234/cb'],
    });
    expect(JSON.stringify(line)).not.toContain('hunter2');
  });

  test('§4.6 more than 100 parameters: 400 invalid_request', async () => {
    const many = Array.from({ length: 100 }, (_, at) => `p${at}=`).join('&');
    const { status, json } = await authorize(`${queryOf({})}&${many}`);
    expect([status, json.error]).toEqual([400, 'invalid_request']);
  });

  test.each(['client_id', 'redirect_uri', 'state', 'scope', 'code_challenge', 'anything'])(
    '§4.6 %s given twice: 400 invalid_request',
    async (name) => {
      for (const extra of [
        `${name}=a&${name}=b`,
        `${name}=a&${encodeURIComponent(name).replace('_', '%5F')}=b`,
      ]) {
        const { status, headers, json } = await authorize(
          `${queryOf({ [name]: undefined })}&${extra}`,
        );
        expect(status).toBe(400);
        expect(headers.location).toBeUndefined();
        expect(json.error).toBe('invalid_request');
        expect(json.error_description).toContain(name);
      }
    },
  );
});

describe('authorization where settings are missing', () => {
  const bare = useGateway();

  test('§7.3 no authorization URL: 500 server_error, after the client checks', async () => {
    const id = await registerAt(bare);
    const { status, json } = await authorize(queryOf({ client_id: id }), bare);
    expect(status).toBe(500);
    expect(json).toEqual({
      error: 'server_error',
      error_description: expect.stringContaining('OAUTH_AUTHORIZATION_URL'),
    });
    expect((await authorize(queryOf({ client_id: 'svc-AAAAAAAAAAAA' }), bare)).status).toBe(400);
  });

  test('§7.3 no static client for a svc- client: 500 server_error; others pass', async () => {
    const half = await startGateway({ env: { OAUTH_AUTHORIZATION_URL: UPSTREAM } });
    try {
      const id = await registerAt(half);
      const { status, json } = await authorize(queryOf({ client_id: id }), half);
      expect(status).toBe(500);
      expect(json.error_description).toContain('OAUTH_CLIENT_ID');
      expect((await authorize(queryOf({ client_id: 'my-app' }), half)).status).toBe(302);
    } finally {
      await half.close();
    }
  });
});
