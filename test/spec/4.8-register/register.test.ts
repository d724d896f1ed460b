import { describe, expect, test } from 'vitest';
import { manualClock } from '../../support/gateway/clock.ts';
import { useGateway } from '../../support/gateway/use-gateway.ts';

const clock = manualClock(1_800_000_000_500);

const gateway = useGateway({ deps: { clock }, env: { DCR_CLIENT_TTL: '3600' } });

const register = (body: unknown, headers = {}) =>
  gateway.request({ method: 'POST', path: '/oauth/register', body, headers });

const REDIRECT = 'https://client.example/callback';

describe('the registration endpoint', () => {
  test('§4.8 redirect_uris alone are enough, defaults are filled in', async () => {
    const { status, headers, json } = await register({ redirect_uris: [REDIRECT] });
    expect(status).toBe(201);
    expect(headers['content-type']).toBe('application/json');
    expect(json).toEqual({
      client_id: expect.stringMatching(/^svc-[A-Za-z0-9]{12}$/),
      redirect_uris: [REDIRECT],
      grant_types: ['authorization_code'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      client_id_issued_at: 1_800_000_000,
      client_secret_expires_at: 0,
    });
  });

  test('§4.8 what was sent is echoed, unknown members are ignored', async () => {
    const sent = {
      redirect_uris: [REDIRECT, 'http://localhost:33418/', 'http://127.0.0.1/cb?a=b'],
      client_name: '<script>alert("ü 𝄞")</script>',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'client_secret_basic',
      software_id: 'id',
      software_version: '1.0',
      scope: 'openid profile',
      client_uri: 'https://client.example/',
      logo_uri: 'https://client.example/logo.png',
      contacts: ['a@example.com'],
      tos_uri: 'https://client.example/tos',
      policy_uri: 'https://client.example/policy',
      application_type: 'native',
    };
    const { json } = await register({
      ...sent,
      jwks_uri: 'https://x.example',
      client_secret: 's',
      client_id: 'mine',
    });
    expect(json).toEqual({
      ...sent,
      client_id: expect.stringMatching(/^svc-/),
      client_id_issued_at: expect.any(Number),
      client_secret_expires_at: 0,
    });
  });

  test('§4.8 further members that are not well-typed are left out', async () => {
    const { status, json } = await register({
      redirect_uris: [REDIRECT],
      scope: 5,
      client_uri: 'javascript:alert(1)',
      logo_uri: 'data:text/html,x',
      tos_uri: 'no url',
      policy_uri: {},
      contacts: ['a', 1],
      application_type: null,
    });
    expect(status).toBe(201);
    for (const name of [
      'scope',
      'client_uri',
      'logo_uri',
      'tos_uri',
      'policy_uri',
      'contacts',
      'application_type',
    ]) {
      expect(json).not.toHaveProperty(name);
    }
  });

  test.each(['client_name', 'software_id', 'software_version'])(
    '§4.8 %s of more than 1,000 characters: a record is read at every step, so it stays small',
    async (member) => {
      const long = await register({ redirect_uris: [REDIRECT], [member]: 'ä'.repeat(1000) });
      expect([long.status, long.json[member]]).toEqual([201, 'ä'.repeat(1000)]);
      const longer = await register({ redirect_uris: [REDIRECT], [member]: 'ä'.repeat(1001) });
      expect([longer.status, longer.json.error]).toEqual([400, 'invalid_client_metadata']);
      expect(longer.json.error_description).toContain(member);
    },
  );

  test.each([
    { scope: 'x'.repeat(2049) },
    { contacts: ['x'.repeat(2049)] },
    { contacts: Array.from({ length: 11 }, () => 'a@example.com') },
    { client_uri: `https://a.example/${'x'.repeat(2048)}` },
  ])('§4.8 further members that are too long are left out', async (member) => {
    const { status, json } = await register({ redirect_uris: [REDIRECT], ...member });
    expect(status).toBe(201);
    expect(json).not.toHaveProperty(Object.keys(member)[0] ?? '');
  });

  test('§2.2 two registrations are two clients', async () => {
    const ids = await Promise.all(
      Array.from(
        { length: 20 },
        async () => (await register({ redirect_uris: [REDIRECT] })).json.client_id,
      ),
    );
    expect(new Set(ids).size).toBe(20);
  });

  test.each([
    { what: 'no redirect_uris', body: {} },
    { what: 'redirect_uris a string', body: { redirect_uris: REDIRECT } },
    { what: 'redirect_uris null', body: { redirect_uris: null } },
    { what: 'no entry', body: { redirect_uris: [] } },
    { what: 'eleven entries', body: { redirect_uris: Array(11).fill(REDIRECT) } },
    { what: 'an entry that is no string', body: { redirect_uris: [REDIRECT, 5] } },
    {
      what: 'an unknown grant type',
      body: { redirect_uris: [REDIRECT], grant_types: ['password'] },
    },
    { what: 'no grant type', body: { redirect_uris: [REDIRECT], grant_types: [] } },
    {
      what: 'grant_types a string',
      body: { redirect_uris: [REDIRECT], grant_types: 'authorization_code' },
    },
    { what: 'response type token', body: { redirect_uris: [REDIRECT], response_types: ['token'] } },
    {
      what: 'auth method private_key_jwt',
      body: { redirect_uris: [REDIRECT], token_endpoint_auth_method: 'private_key_jwt' },
    },
    { what: 'auth method 5', body: { redirect_uris: [REDIRECT], token_endpoint_auth_method: 5 } },
    { what: 'client_name 5', body: { redirect_uris: [REDIRECT], client_name: 5 } },
    { what: 'software_id object', body: { redirect_uris: [REDIRECT], software_id: {} } },
    { what: 'software_version 5', body: { redirect_uris: [REDIRECT], software_version: 5 } },
    { what: 'an array', body: [] },
    { what: 'null', body: null },
    { what: 'a number', body: 5 },
    { what: 'broken JSON', body: '{"redirect_uris":' },
  ])('§7.3 register with $what: 400 invalid_client_metadata', async ({ body }) => {
    const { status, json } = await register(body);
    expect(status).toBe(400);
    expect(json).toEqual({
      error: 'invalid_client_metadata',
      error_description: expect.any(String),
    });
  });

  test('§7.3 a form or an oversized body: 415 and 413 as invalid_client_metadata', async () => {
    const form = await register(new URLSearchParams({ redirect_uris: REDIRECT }));
    expect(form.status).toBe(415);
    expect(form.json.error).toBe('invalid_client_metadata');
    const huge = await register({ redirect_uris: [REDIRECT], x: 'x'.repeat(1_100_000) });
    expect(huge.status).toBe(413);
    expect(huge.json.error).toBe('invalid_client_metadata');
  });
});

describe('redirect URIs', () => {
  test.each([
    'https://client.example/cb',
    'https://client.example',
    'https://CLIENT.example/cb',
    'https://client.example:443/cb',
    'https://client.example:8443/cb?x=1&y=%20',
    'http://localhost/cb',
    'http://localhost:80/cb',
    'http://localhost:33418/',
    'http://127.0.0.1:51234/callback',
    'https://[2001:db8::1]/cb',
    'https://claude.ai/api/mcp/auth_callback',
    'https://vscode.dev/redirect',
  ])('§4.8 %s is allowed and echoed as it was sent', async (uri) => {
    const { status, json } = await register({ redirect_uris: [uri] });
    expect(status).toBe(201);
    expect(json.redirect_uris).toEqual([uri]);
  });

  test.each([
    { uri: 'http://client.example/cb', why: 'http' },
    { uri: 'http://localhost.evil.example/cb', why: 'a look-alike of localhost' },
    { uri: 'http://localhost@evil.example/cb', why: 'user info' },
    { uri: 'https://user:pass@client.example/cb', why: 'user info' },
    { uri: 'https://@client.example/cb', why: 'empty user info' },
    { uri: 'https://client.example/cb#frag', why: 'a fragment' },
    { uri: 'https://client.example/cb#', why: 'an empty fragment' },
    { uri: 'http://127.1/cb', why: 'a short address' },
    { uri: 'http://0x7f000001/cb', why: 'a hexadecimal address' },
    { uri: 'http://2130706433/cb', why: 'a decimal address' },
    { uri: 'http://0177.0.0.1/cb', why: 'an octal address' },
    { uri: 'http://[::1]/cb', why: 'an IPv6 loopback' },
    { uri: 'http://127.0.0.2/cb', why: 'another loopback address' },
    { uri: 'http://localhost./cb', why: 'a trailing dot' },
    { uri: 'https://client.example./cb', why: 'a trailing dot' },
    { uri: 'https:\\\\client.example\\cb', why: 'backslashes' },
    { uri: 'https://client.example\\@evil.example/', why: 'a backslash' },
    { uri: 'https://cli\tent.example/cb', why: 'a tab' },
    { uri: 'https://client.example/c b', why: 'a space' },
    { uri: ' https://client.example/cb', why: 'a leading space' },
    { uri: 'https://client.example/cb\n', why: 'a line break' },
    { uri: 'https://client.example/\u0000', why: 'a NUL' },
    { uri: 'https://ünï.example/cb', why: 'characters beyond ASCII' },
    { uri: 'https:/client.example/cb', why: 'one slash' },
    { uri: 'https:client.example/cb', why: 'no slashes' },
    { uri: '//client.example/cb', why: 'no scheme' },
    { uri: 'https://client.example/a/../cb', why: 'dot segments' },
    { uri: 'https://client.example/%2e%2e/cb', why: 'encoded dot segments' },
    { uri: 'HTTPS://client.example/cb', why: 'a scheme in capitals' },
    { uri: 'javascript:alert(1)', why: 'javascript' },
    { uri: 'data:text/html,x', why: 'data' },
    { uri: 'cursor://anysphere.cursor-mcp/oauth/callback', why: 'an own scheme' },
    { uri: '', why: 'an empty string' },
    { uri: 'callback', why: 'a relative reference' },
    { uri: `https://client.example/${'x'.repeat(2048)}`, why: 'its length' },
  ])('§7.3 $uri is refused for $why: 400 invalid_redirect_uri', async ({ uri }) => {
    const { status, json } = await register({ redirect_uris: [REDIRECT, uri] });
    expect(status).toBe(400);
    expect(json.error).toBe('invalid_redirect_uri');
    expect(json.error_description).toContain('redirect_uris[1]');
  });
});

describe('a registered client', () => {
  const authorize = (clientId: string, redirectUri = REDIRECT) =>
    gateway.request({
      path: `/oauth/authorize?${new URLSearchParams({ client_id: clientId, redirect_uri: redirectUri })}`,
    });

  test('§3.2 is known until its time is over, and is not renewed by use', async () => {
    const { client_id: id } = (await register({ redirect_uris: [REDIRECT] })).json;
    clock.advance(3_500_000);
    // Known: the next refusal is about the next parameter.
    expect((await authorize(id)).json.error_description).toContain('response_type');
    clock.advance(101_000);
    const { status, json } = await authorize(id);
    expect(status).toBe(400);
    expect(json.error).toBe('invalid_client');
  });
});
