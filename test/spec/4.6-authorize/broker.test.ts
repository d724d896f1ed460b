import { createHash } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { useShared } from '../../support/lifetimes.ts';
import { BASE, type Broker, startBroker } from '../../support/oauth/broker.ts';
import { type Client, REDIRECT, STATE } from '../../support/oauth/login-steps.ts';

const AUTHORIZE = 'https://id.example/authorize?tenant=1';
const ISSUER_OFF = { iss: undefined };

const broker = useShared(() =>
  startBroker({
    OAUTH_AUTHORIZATION_URL: AUTHORIZE,
    OAUTH_ALLOWED_SCOPES: 'openid,profile,email,files',
    OAUTH_CONSENT_TTL_SECONDS: '7200',
  }),
);
let gateway: Broker['gateway'];
let clock: Broker['clock'];
let steps: Broker['steps'];
let client: Client;
beforeAll(async () => {
  ({ gateway, clock, steps } = broker);
  client = await steps.register();
});

describe('the way to the provider', () => {
  test('§13 broker: it is asked by its own client, with state, PKCE and callback of our own', async () => {
    const { asked } = await steps.approve(client, { resource: `${BASE}/mcp` });
    const { searchParams: sent } = asked;
    expect(asked.origin + asked.pathname).toBe('https://id.example/authorize');
    expect(Object.fromEntries(sent)).toEqual({
      tenant: '1',
      client_id: 'provider-client',
      redirect_uri: `${BASE}/oauth/callback`,
      response_type: 'code',
      scope: 'openid profile email',
      state: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: 'S256',
      nonce: expect.stringMatching(/^[\w-]{43}$/),
    });
    expect(sent.get('code_challenge')).not.toBe(client.challenge);
    expect(sent.get('state')).not.toBe(STATE);
  });

  test('§13 broker: whatever scopes the client names, the provider has to say who logs in', async () => {
    const { asked } = await steps.approve(client, { scope: 'files' });
    expect(asked.searchParams.get('scope')).toBe('files openid profile email');
    const usual = await steps.approve(client, { scope: undefined });
    expect(usual.asked.searchParams.get('scope')).toBe('openid profile email');
  });

  test.each(['response_mode', 'nonce', 'audience', 'claims', 'x-vendor:name.1'])(
    '§13 broker: a client’s %s does not reach the provider',
    async (name) => {
      const { asked } = await steps.approve(client, { [name]: 'smuggled' });
      expect(asked.href).not.toContain('smuggled');
    },
  );

  test('§13 broker: what concerns the login page does', async () => {
    const { asked } = await steps.approve(client, { login_hint: 'ada', prompt: 'login' });
    expect(asked.searchParams.get('login_hint')).toBe('ada');
    expect(asked.searchParams.get('prompt')).toBe('login');
  });

  test.each(['https://other.example', `${BASE}/other`, `${BASE}.evil.example/mcp`])(
    '§13 broker: the resource %s is not ours: 400 invalid_target',
    async (resource) => {
      const { status, json } = await steps.authorize(client, { resource });
      expect([status, json.error]).toEqual([400, 'invalid_target']);
    },
  );

  test('§13 broker: a client of the provider’s own is none of ours: 400 invalid_client', async () => {
    const { status, headers, json } = await steps.authorize({ ...client, id: 'provider-client' });
    expect([status, json.error]).toEqual([400, 'invalid_client']);
    expect(headers.location).toBeUndefined();
  });

  test('§13 broker: loopback redirect URIs match with any port, and as strings otherwise', async () => {
    const native = await steps.register({
      redirect_uris: ['http://127.0.0.1/cb', 'http://[::1]:1/cb', 'http://localhost:1/cb?x=1'],
    });
    const good = [
      'http://127.0.0.1:50000/cb',
      'http://[::1]:50000/cb',
      'http://localhost:50000/cb?x=1',
      'http://localhost/cb?x=1',
    ];
    for (const redirect_uri of good) {
      expect((await steps.authorize(native, { redirect_uri })).status).toBe(200);
    }
    const bad = [
      'http://127.0.0.1:50000/CB',
      'http://127.0.0.1:50000/cb/',
      'http://127.0.0.1:500000/cb',
      'http://127.0.0.1:65536/cb',
      'http://127.0.0.1:1@evil.example/cb',
      'http://127.1:50000/cb',
      'http://localhost:50000/cb',
      'https://127.0.0.1:50000/cb',
      'http://LOCALHOST:50000/cb?x=1',
      'http://localhost.evil.example:50000/cb?x=1',
    ];
    for (const redirect_uri of bad) {
      const { status, json } = await steps.authorize(native, { redirect_uri });
      expect([redirect_uri, status, json.error]).toEqual([
        redirect_uri,
        400,
        'invalid_redirect_uri',
      ]);
    }
    const web = await steps.register({ redirect_uris: ['https://app.example:8443/cb'] });
    const other = await steps.authorize(web, { redirect_uri: 'https://app.example:9443/cb' });
    expect(other.status).toBe(400);
  });

  test.each([
    { uri: 'cursor://anysphere.cursor-mcp/oauth/callback', status: 201 },
    { uri: 'vscode://x/cb', status: 201 },
    { uri: 'javascript:alert(1)', status: 400 },
    { uri: 'data:text/html,x', status: 400 },
    { uri: 'file:///etc/passwd', status: 400 },
    { uri: 'other://x/cb', status: 400 },
    { uri: 'cursor://user@x/cb', status: 400 },
    { uri: 'cursor://x/cb#fragment', status: 400 },
    { uri: 'CURSOR://x/cb', status: 400 },
    { uri: 'https://client.example/cb?x=1', status: 201 },
    { uri: 'https://client.example/cb?code=1', status: 400 },
    { uri: 'https://client.example/cb?x=1&iss=https%3A%2F%2Fevil', status: 400 },
    { uri: 'cursor://x/cb?state=1', status: 400 },
  ])('§4.8 broker: registering $uri: $status', async ({ uri, status }) => {
    const body = { redirect_uris: [uri] };
    const answer = await gateway.request({ method: 'POST', path: '/oauth/register', body });
    expect(answer.status).toBe(status);
  });
});

describe('consent', () => {
  test('§13 broker: the page says which app asks, who publishes it, and where the login goes', async () => {
    const { text, headers } = await steps.authorize(client);
    for (const shown of ['Test', 'not verified', 'client.example', 'openid', 'profile']) {
      expect(text).toContain(shown);
    }
    expect(headers['content-security-policy']).toContain("default-src 'none'");
    expect(headers['content-security-policy']).not.toContain('form-action');
    expect(headers['cache-control']).toBe('no-store');
    expect(headers['set-cookie']?.toString()).toMatch(
      /^__Host-postern=[\w-]{43}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax; Secure$/,
    );
  });

  test('§13 broker: the policy of the page allows its one script by its hash, whoever asks', async () => {
    const policies = [client, await steps.register({ client_name: 'Other' })].map(async (one) => {
      const { text, headers } = await steps.authorize(one);
      const scripts = [...text.matchAll(/<script>(.*?)<\/script>/gs)].map(
        ([, script = '']) => script,
      );
      const hashes = scripts.map((script) => createHash('sha256').update(script).digest('base64'));
      expect(hashes).toHaveLength(1);
      const policy = headers['content-security-policy']?.toString() ?? '';
      expect(policy.split('; ')).toContain(`script-src 'sha256-${hashes[0]}'`);
      return policy;
    });
    expect(new Set(await Promise.all(policies)).size).toBe(1);
  });

  test.each([
    { name: '<script>alert(1)</script>', shown: '&lt;script&gt;alert(1)&lt;/script&gt;' },
    { name: 'Cla\u202eedu\u2066', shown: '>Cla edu<' },
    { name: '"\'&', shown: '>&#39;&#39;&amp;<' },
    { name: 'a\u0000b\u001b[31mc', shown: 'a b [31mc' },
    { name: '\u200b\u200b', shown: 'unnamed app' },
    { name: 'x'.repeat(500), shown: `>${'x'.repeat(40)}…<` },
  ])('§13 broker: the client’s name $name is shown as $shown', async ({ name, shown }) => {
    const named = await steps.register({ client_name: name });
    const { text } = await steps.authorize(named);
    expect(text).toContain(shown);
    expect(text.match(/<script/g)).toHaveLength(1);
    expect(text).not.toMatch(/[\u0000-\u0008\u202a-\u202e\u2066-\u2069]/);
  });

  test('§13 broker: a look-alike host is shown in full and in ASCII', async () => {
    const redirect_uri = 'https://claude.ai.evil-xn--example.example/cb';
    const puny = 'https://xn--clude-9qa.ai/cb';
    const fake = await steps.register({ redirect_uris: [redirect_uri, puny] });
    expect((await steps.authorize(fake, { redirect_uri })).text).toContain(
      '<code>claude.ai.evil-xn--example.example</code>',
    );
    expect((await steps.authorize(fake, { redirect_uri: puny })).text).toContain(
      '<code>xn--clude-9qa.ai</code>',
    );
  });

  test('§13 broker: denied, the client hears access_denied, its state and our issuer', async () => {
    const { status, headers } = await steps.decide(await steps.ask(client), 'deny');
    expect(status).toBe(303);
    const back = new URL(headers.location ?? '');
    expect(back.origin + back.pathname).toBe(REDIRECT);
    expect(Object.fromEntries(back.searchParams)).toEqual({
      error: 'access_denied',
      error_description: expect.any(String),
      state: STATE,
      iss: BASE,
    });
  });

  test('§13 broker: an approval is remembered per browser, client, redirect URI and scopes', async () => {
    const own = await steps.register({ redirect_uris: [REDIRECT, `${REDIRECT}/2`] });
    const other = await steps.register();
    const { cookie, asked } = await steps.approve(own);
    await steps.callback({ code: 'c', state: asked.searchParams.get('state') ?? '' }, cookie);
    expect((await steps.authorize(own, {}, cookie)).status).toBe(303);
    expect((await steps.authorize(own, { scope: 'profile openid' }, cookie)).status).toBe(303);
    for (const asks of [
      () => steps.authorize(own),
      () => steps.authorize(own, { redirect_uri: `${REDIRECT}/2` }, cookie),
      () => steps.authorize(own, { scope: 'openid profile files' }, cookie),
      () => steps.authorize(other, {}, cookie),
    ]) {
      expect((await asks()).status).toBe(200);
    }
    clock.advance(7_200_000);
    expect((await steps.authorize(own, {}, cookie)).status).toBe(200);
  });

  test('§13 broker: an approval in another browser, or with a made-up form, is refused', async () => {
    const mine = await steps.register();
    const question = await steps.ask(mine);
    const other = await steps.ask(mine);
    for (const refused of [
      () => steps.decide(question, 'approve', other.cookie),
      () => steps.decide(question, 'approve', ''),
      () => steps.decide({ ...question, form: { ...question.form, csrf: other.form.csrf ?? '' } }),
      () => steps.decide({ ...question, form: { ...question.form, request: 'x'.repeat(43) } }),
      () => steps.post('/oauth/consent', { decision: 'approve' }, question.cookie),
    ]) {
      const { status, headers, json } = await refused();
      expect([status, json.error]).toEqual([400, 'invalid_request']);
      expect(headers.location).toBeUndefined();
    }
    expect((await steps.authorize(mine, {}, other.cookie)).status).toBe(200);
    expect((await steps.decide(question)).status).toBe(303);
  });

  test.each([
    { what: 'another origin', headers: { origin: 'https://app.gw.example' } },
    { what: 'another port of this machine', headers: { origin: 'http://localhost:9999' } },
    { what: 'no origin', headers: { origin: 'null' } },
    {
      what: 'a script of its own origin',
      headers: { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' },
    },
    {
      what: 'a frame',
      headers: {
        'sec-fetch-site': 'same-site',
        'sec-fetch-mode': 'navigate',
        'sec-fetch-dest': 'iframe',
      },
    },
  ])('§13 broker: the question is neither shown to nor answered by $what', async ({ headers }) => {
    const own = await steps.register();
    const question = await steps.ask(own);
    const query = new URLSearchParams({ client_id: own.id });
    for (const request of [
      { path: `/oauth/authorize?${query}` },
      { path: '/oauth/callback?state=x' },
      {
        path: '/oauth/consent',
        method: 'POST',
        body: new URLSearchParams({ ...question.form, decision: 'approve' }),
      },
    ]) {
      const sent = { ...headers, cookie: question.cookie };
      const answer = await gateway.request({ ...request, headers: sent });
      expect([answer.status, answer.json.error.data.reason]).toEqual([403, 'invalid_origin']);
      expect(answer.headers['access-control-allow-origin']).toBeUndefined();
    }
    expect((await steps.decide(question)).status).toBe(303);
  });

  test('§13 broker: scopes that are not allowed are left out of what is shown and of what is asked', async () => {
    const own = await steps.register();
    const { text } = await steps.authorize(own, { scope: 'openid https://graph.example/Mail' });
    expect(text).toContain('<code>openid</code>');
    expect(text).not.toContain('graph.example');
    const { asked } = await steps.approve(own, { scope: 'openid https://graph.example/Mail' });
    expect(asked.searchParams.get('scope')).toBe('openid profile email');
    const usual = await steps.authorize(own, { scope: undefined });
    expect(usual.text).toContain('<code>email</code>');
    for (const scope of [
      'openid\tadmin',
      'openid  profile',
      'open\u00a0id',
      '"openid"',
      'x\u202e',
    ]) {
      const { status, json } = await steps.authorize(own, { scope });
      expect([status, json.error]).toEqual([400, 'invalid_request']);
    }
  });

  test('§13 broker: a query of more than 4,096 characters is not kept: 400', async () => {
    const { status, json } = await steps.authorize(client, { state: 'x'.repeat(4096) });
    expect([status, json.error]).toEqual([400, 'invalid_request']);
  });

  test('§13 broker: a question is open for ten minutes', async () => {
    const late = await steps.register();
    const question = await steps.ask(late);
    clock.advance(600_000);
    expect((await steps.decide(question)).status).toBe(400);
  });

  test('§13 broker: where no redirect is safe, a browser gets a page and a program JSON', async () => {
    const path = '/oauth/authorize?client_id=svc-AAAAAAAAAAAA';
    const page = await steps.get(path, undefined, 'text/html,application/xhtml+xml,*/*;q=0.8');
    expect([page.status, page.headers['content-type']]).toEqual([400, 'text/html; charset=utf-8']);
    expect(page.text).toContain('invalid_client');
    expect((await steps.get(path)).json.error).toBe('invalid_client');
  });
});

describe('the callback', () => {
  test('§13 broker: the client gets a code of ours, its own state, and our issuer', async () => {
    const back = await steps.logIn(client);
    expect(back.origin + back.pathname).toBe(REDIRECT);
    expect(Object.fromEntries(back.searchParams)).toEqual({
      code: expect.stringMatching(/^[\w-]{43}$/),
      state: STATE,
      iss: BASE,
    });
  });

  test('§13 broker: a state is good once, for ten minutes, in its own browser', async () => {
    const { cookie, asked } = await steps.approve(client);
    const state = asked.searchParams.get('state') ?? '';
    expect((await steps.callback({ code: 'c', state }, cookie)).status).toBe(303);
    expect((await steps.callback({ code: 'c', state }, cookie)).status).toBe(400);

    const second = await steps.approve(client);
    const stolen = second.asked.searchParams.get('state') ?? '';
    const theft = await steps.callback({ code: 'c', state: stolen }, cookie);
    expect([theft.status, theft.headers.location]).toEqual([400, undefined]);
    expect((await steps.callback({ code: 'c', state: stolen }, second.cookie)).status).toBe(400);

    const third = await steps.approve(client);
    clock.advance(600_000);
    const late = third.asked.searchParams.get('state') ?? '';
    expect((await steps.callback({ code: 'c', state: late }, third.cookie)).status).toBe(400);
    expect((await steps.callback({ code: 'c', state: 'x' }, cookie)).status).toBe(400);
    expect((await steps.callback({ code: 'c' }, cookie)).status).toBe(400);
  });

  test('§13 broker: the answer of another provider is refused (mix-up)', async () => {
    const { cookie, asked } = await steps.approve(client);
    const state = asked.searchParams.get('state') ?? '';
    const mixed = await steps.callback({ code: 'c', state, iss: 'https://evil.example' }, cookie);
    expect([mixed.status, mixed.headers.location]).toEqual([400, undefined]);

    const again = await steps.approve(client);
    const own = again.asked.searchParams.get('state') ?? '';
    const good = { code: 'c', state: own, iss: gateway.issuer.url };
    expect((await steps.callback(good, again.cookie)).status).toBe(303);
  });

  test('§13 broker: a provider that says it sends iss must send it', async () => {
    gateway.issuer.document = { authorization_response_iss_parameter_supported: true };
    clock.advance(300_000);
    const { cookie, asked } = await steps.approve(client);
    const state = asked.searchParams.get('state') ?? '';
    const { status } = await steps.callback({ code: 'c', state, ...ISSUER_OFF }, cookie);
    gateway.issuer.document = {};
    clock.advance(300_000);
    expect(status).toBe(400);
  });

  test('§13 broker: the provider’s error goes on to the client', async () => {
    const { cookie, asked } = await steps.approve(client);
    const state = asked.searchParams.get('state') ?? '';
    const { headers } = await steps.callback(
      { error: 'login_required', error_description: 'a "b"\r\nSet-Cookie: x=1', state },
      cookie,
    );
    const back = new URL(headers.location ?? '');
    expect(Object.fromEntries(back.searchParams)).toEqual({
      error: 'login_required',
      error_description: "a 'b'  Set-Cookie: x=1",
      state: STATE,
      iss: BASE,
    });
  });
});
