// The emulated providers by themselves: what they refuse, and how they end logins. Gateways are elsewhere.
import { createLocalJWKSet, jwtVerify } from 'jose';
import { expect, test } from 'vitest';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { newPkce } from '../../support/oauth/login-steps.ts';
import { CLIENT_ID, startEmulator } from '../../support/providers/emulator.ts';
import { EMULATED } from '../../support/providers/emulators.ts';
import { ADA } from '../../support/providers/login-page.ts';
import { listenOnLoopback } from '../../support/upstreams/listen.ts';

const CALLBACK = 'http://localhost:3000/oauth/callback';

/** What a client does at it, step by step. */
async function startAt(name: string) {
  const habits = EMULATED.get(name);
  if (habits === undefined) throw new Error(`There is no ${name}.`);
  const emulator = closeAfterTest(await startEmulator(habits));
  const { OAUTH_CLIENT_SECRET: secret = '' } = emulator.env;
  const { verifier, challenge } = newPkce();
  const basic = Buffer.from(`${CLIENT_ID}:${secret}`).toString('base64');
  const isBasic = !habits.clientAuth.includes('post');

  const own = {
    emulator,
    async authorize(change: Readonly<Record<string, string>> = {}): Promise<URL> {
      const query = new URLSearchParams({
        client_id: CLIENT_ID,
        redirect_uri: CALLBACK,
        response_type: 'code',
        state: 'a long state',
        scope: 'openid',
        code_challenge: challenge,
        code_challenge_method: 'S256',
        ...change,
      });
      const url = `${emulator.origin}${habits.paths.authorize}?${query}`;
      const answer = await fetch(url, { redirect: 'manual' });
      return new URL(answer.headers.get('location') ?? `error:${answer.status}`);
    },
    async askForTokens(form: Readonly<Record<string, string>>) {
      const answer = await fetch(`${emulator.origin}${habits.paths.token}`, {
        method: 'POST',
        headers: {
          accept: 'application/json',
          ...(isBasic && { authorization: `Basic ${basic}` }),
        },
        body: new URLSearchParams({
          ...(!isBasic && { client_id: CLIENT_ID, client_secret: secret }),
          ...form,
        }),
      });
      return { status: answer.status, json: JSON.parse(await answer.text()) };
    },
    redeem: (back: URL, change: Readonly<Record<string, string>> = {}) =>
      own.askForTokens({
        grant_type: 'authorization_code',
        code: back.searchParams.get('code') ?? '',
        redirect_uri: CALLBACK,
        code_verifier: verifier,
        ...change,
      }),
    logIn: async (change: Readonly<Record<string, string>> = {}) =>
      own.redeem(await own.authorize(change)),
  };
  return own;
}

test.each([
  ['google', { scope: 'openid offline_access' }, 'invalid_scope'],
  ['cognito', { scope: 'openid offline_access' }, 'invalid_scope'],
  ['entra', { resource: 'https://gw.example/mcp' }, 'AADSTS901002'],
  ['entra', { resource: 'https://gw.example', scope: 'api://x/y' }, 'AADSTS9010010'],
  ['hydra', { state: 'short' }, 'invalid_state'],
  ['dex', { code_challenge_method: 'plain' }, 'invalid_request'],
  ['okta', { response_type: 'token' }, 'unsupported_response_type'],
] as const)('§5.11 emulators: %s refuses %j with %s', async (name, change, refusal) => {
  const { authorize } = await startAt(name);
  expect((await authorize(change)).href).toContain(refusal);
  expect((await authorize()).searchParams.get('code')).toMatch(/./);
});

test.each([
  ['another client', { client_id: 'another' }],
  ['another redirect URI', { redirect_uri: 'https://evil.example/' }],
])('§5.11 emulators: %s is sent nowhere', async (_, change) => {
  const { authorize } = await startAt('google');
  expect((await authorize(change)).href).toBe('error:400');
});

test.each([...EMULATED.keys()])(
  '§5.11 emulators: %s gives a code for one verifier and redirect URI, and once',
  async (name) => {
    const { authorize, redeem } = await startAt(name);
    const isGood = async (from: URL, change = {}): Promise<boolean> =>
      'access_token' in (await redeem(from, change)).json;
    expect(await isGood(await authorize(), { code_verifier: 'another' })).toBe(false);
    expect(await isGood(await authorize(), { redirect_uri: `${CALLBACK}/other` })).toBe(false);
    const back = await authorize();
    expect([await isGood(back), await isGood(back)]).toEqual([true, false]);
  },
);

test('§5.11 emulators: google gives a refresh token at the first consent, and later to who asks for consent', async () => {
  const { logIn } = await startAt('google');
  const has = async (change: Readonly<Record<string, string>>) =>
    'refresh_token' in (await logIn(change)).json;
  const offline = { access_type: 'offline' };
  expect(await has(offline)).toBe(true);
  expect(await has(offline)).toBe(false);
  expect(await has({ ...offline, prompt: 'consent' })).toBe(true);
  expect(await has({ prompt: 'consent' })).toBe(false);
});

test.each([
  ['google', 'is kept', 200, 200],
  ['entra', 'stays good', 200, 200],
  ['github-app', 'is refused', 200, 200],
  ['dex', 'is refused', 400, 200],
  ['hydra', 'ends the login', 400, 400],
  ['auth0', 'ends the login', 403, 403],
] as const)(
  '§5.11 emulators: %s: a refresh token that was used %s: %i, and its successor %i',
  async (name, _, again, successor) => {
    const { logIn, askForTokens } = await startAt(name);
    const scope = name === 'google' ? 'openid' : 'openid offline_access';
    const { json } = await logIn({ scope, access_type: 'offline' });
    const refresh = (token: string) =>
      askForTokens({ grant_type: 'refresh_token', refresh_token: token, scope });
    const first = await refresh(json.refresh_token);
    const second = await refresh(json.refresh_token);
    const third = await refresh(first.json.refresh_token ?? json.refresh_token);
    expect([first.status, second.status, third.status]).toEqual([200, again, successor]);
    // GitHub refuses with 200, too.
    expect(second.json.error === undefined).toBe(again === 200 && name !== 'github-app');
  },
);

test.each([
  ['keycloak', ['sid', 'sub']],
  ['auth0', ['sid', 'sub']],
  ['hydra', ['sid']],
] as const)('§5.11 emulators: %s posts a logout token that names %j', async (name, names) => {
  const { emulator, logIn } = await startAt(name);
  const posted: string[] = [];
  const gateway = closeAfterTest(
    await listenOnLoopback((req, res) => {
      req.on('data', (chunk) => posted.push(String(chunk)));
      req.on('end', () => res.writeHead(200).end());
    }),
  );
  emulator.logoutUrl = gateway.url;
  const { json } = await logIn();
  const keys = createLocalJWKSet({ keys: emulator.issuer.keys });
  const idToken = await jwtVerify(json.id_token, keys);
  const sent = await emulator.logOutUser({ sub: ADA.sub });
  expect(sent.map(({ status }) => status)).toEqual([200]);
  const token = new URLSearchParams(posted.join('')).get('logout_token') ?? '';
  const { payload, protectedHeader } = await jwtVerify(token, keys, {
    issuer: emulator.issuer.url,
    audience: CLIENT_ID,
    typ: 'logout+jwt',
    requiredClaims: ['iat', 'jti'],
  });
  expect(protectedHeader.alg).toBe('RS256');
  expect(payload.events).toEqual({ 'http://schemas.openid.net/event/backchannel-logout': {} });
  // Hydra's are good for ever.
  expect(payload.exp === undefined).toBe(name === 'hydra');
  expect(payload.nonce).toBeUndefined();
  const { sid, sub } = payload;
  const isNamed = (member: 'sid' | 'sub') => names.some((one) => one === member);
  expect([sid, sub]).toEqual([
    isNamed('sid') ? idToken.payload.sid : undefined,
    isNamed('sub') ? ADA.sub : undefined,
  ]);
});

test('§5.11 emulators: keycloak ends a session by the hint of its ID token, and an offline login outlives it', async () => {
  const { emulator, logIn, askForTokens } = await startAt('keycloak');
  const online = (await logIn()).json;
  const offline = (await logIn({ scope: 'openid offline_access' })).json;
  const end = async (hint: string) => {
    const query = new URLSearchParams({
      id_token_hint: hint,
      post_logout_redirect_uri: CALLBACK,
      state: 's',
    });
    const url = `${emulator.origin}${emulator.habits.paths.endSession}?${query}`;
    return fetch(url, { redirect: 'manual' });
  };
  for (const { id_token } of [online, offline]) {
    expect((await end(id_token)).headers.get('location')).toBe(`${CALLBACK}?state=s`);
  }
  expect((await end('none')).status).toBe(400);
  const refresh = async (token: string) =>
    (await askForTokens({ grant_type: 'refresh_token', refresh_token: token })).status;
  expect([await refresh(online.refresh_token), await refresh(offline.refresh_token)]).toEqual([
    400, 200,
  ]);
});

test("§5.11 emulators: github's API wants a User-Agent and a good token, and answers in pages", async () => {
  const { emulator, logIn } = await startAt('github');
  const groups = Array.from({ length: 31 }, (_, index) => `org-${index}`);
  emulator.person = { ...ADA, groups };
  const { json } = await logIn({ scope: 'read:org' });
  const read = (path: string, headers: Readonly<Record<string, string>> = {}) =>
    fetch(`${emulator.origin}/api/v3${path}`, {
      headers: { authorization: `Bearer ${json.access_token}`, ...headers },
    });
  const first = await read('/user/orgs');
  expect(JSON.parse(await first.text())).toHaveLength(30);
  const [, next = ''] = /^<([^>]+)>; rel="next"$/.exec(first.headers.get('link') ?? '') ?? [];
  const second = await fetch(next, { headers: { authorization: `Bearer ${json.access_token}` } });
  expect([JSON.parse(await second.text()).length, second.headers.get('link')]).toEqual([1, null]);
  expect((await read('/user/emails')).status).toBe(404);
  expect((await read('/user', { 'user-agent': '' })).status).toBe(403);
  const refused = await read('/user', { authorization: 'Bearer none' });
  expect([refused.status, JSON.parse(await refused.text()).message]).toEqual([
    401,
    'Bad credentials',
  ]);
});
