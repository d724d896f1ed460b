// What of a logout token has to be right: each member changed in each way, and nothing ends.
import { createHmac, createPublicKey, randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { useShared } from '../../support/lifetimes.ts';
import {
  createLogoutTokens,
  EVENT,
  LOGOUT_PATH,
  sendLogout,
  sendLogoutAsTimePasses,
} from '../../support/oauth/logout-tokens.ts';
import { BASE, startOwnTokens, type Tokens } from '../../support/oauth/own-tokens.ts';
import { CLIENT_ID, type Claims } from '../../support/providers/opaque-provider.ts';

const UNLIMITED = Object.fromEntries(
  ['MCP', 'MCP_GLOBAL', 'BACKCHANNEL_LOGOUT', 'BACKCHANNEL_LOGOUT_GLOBAL'].map((name) => [
    `${name}_RATE_LIMIT_MAX`,
    '1000000',
  ]),
);

const own = useShared(() =>
  startOwnTokens({ env: { ...UNLIMITED, OIDC_CLOCK_TOLERANCE_SECONDS: '10' } }),
);
const logoutTokens = () => createLogoutTokens(own);
const seconds = () => Math.floor(own.clock.now() / 1000);

const MISSING = undefined;
const SESSION = { sid: 'sid-1' };

/** What is never right where a text belongs. */
const NO_TEXTS = [null, true, false, 0, 1, '', [], ['sid-1'], {}, { a: 'sid-1' }];
/** What is never right where a time belongs. */
const NO_TIMES = [MISSING, null, true, '', 'soon', '1900000000', [], [1_900_000_000], {}];

type Change = (now: number) => Claims;

const of = (member: string, values: readonly unknown[]): readonly Change[] =>
  values.map((value) => () => ({ [member]: value }));

const events = (values: readonly unknown[]): readonly Change[] =>
  values.map((value) => () => ({ events: { [EVENT]: value } }));

const WRONG_CLAIMS: readonly Change[] = [
  ...of('iss', [MISSING, ...NO_TEXTS, 'https://other.example', `${BASE}/`, 'http://127.0.0.1']),
  ...of('aud', [
    MISSING,
    ...NO_TEXTS,
    'another',
    ` ${CLIENT_ID}`,
    CLIENT_ID.toUpperCase(),
    `${CLIENT_ID},another`,
    ['another'],
    [CLIENT_ID, 1],
    [[CLIENT_ID]],
    { [CLIENT_ID]: true },
    BASE,
  ]),
  ...of('exp', [...NO_TIMES, 0, -1, 1]),
  (now) => ({ exp: now - 61 }),
  (now) => ({ exp: now - 3600 }),
  (now) => ({ exp: String(now + 60) }),
  (now) => ({ exp: (now + 60) * -1 }),
  ...of('iat', [...NO_TIMES, 0, -1, 1]),
  (now) => ({ iat: now + 120, exp: now + 3600 }),
  (now) => ({ iat: now + 1e9, exp: now + 2e9 }),
  (now) => ({ iat: now - 700, exp: now + 3600 }),
  (now) => ({ iat: now - 86_400, exp: now + 86_400 }),
  (now) => ({ iat: now * 1000, exp: now * 1001 }),
  (now) => ({ nbf: now + 120 }),
  ...of('nbf', [null, 'soon', [], {}]),
  ...of('jti', [MISSING, ...NO_TEXTS]),
  ...of('sub', NO_TEXTS),
  ...of('sub', [BASE, `${BASE}/`, BASE.toUpperCase(), '\ud800']),
  ...NO_TEXTS.map((sub) => () => ({ sub, sid: MISSING })),
  ...of('sid', NO_TEXTS),
  ...NO_TEXTS.map((sid) => () => ({ sid, sub: MISSING })),
  () => ({ sid: MISSING, sub: MISSING }),
  ...of('nonce', [null, true, false, 0, '', 'n', [], {}]),
  ...of('events', [
    MISSING,
    null,
    true,
    0,
    '',
    EVENT,
    [],
    [EVENT],
    [{ [EVENT]: {} }],
    {},
    { 'https://schemas.openid.net/event/backchannel-logout': {} },
    { [`${EVENT}/`]: {} },
    { [EVENT.toUpperCase()]: {} },
    { [` ${EVENT}`]: {} },
    { event: { [EVENT]: {} } },
    { 'https://schemas.openid.net/secevent/risc/event-type/sessions-revoked': {} },
    JSON.stringify({ [EVENT]: {} }),
  ]),
  ...events([MISSING, null, true, false, 0, 1, '', '{}', [], [{}]]),
];

const WRONG_HEADERS: readonly Readonly<Record<string, unknown>>[] = [
  ...['JWT', 'jwt', 'at+jwt', 'application/at+jwt', 'secevent+jwt', 'dpop+jwt', 'logout'].map(
    (typ) => ({ typ }),
  ),
  ...['', 'logout+jwt ', 'logout jwt', 'logout+jwt+x', 'xlogout+jwt', 'JOSE'].map((typ) => ({
    typ,
  })),
  ...[null, 1, true, [], ['logout+jwt'], {}].map((typ) => ({ typ })),
  { kid: 1 },
  { kid: ['RS256-1'] },
];

async function expectNothingEnded({ access }: Tokens): Promise<void> {
  const { status, text } = await own.call(access);
  expect([status, text]).toEqual([200, expect.stringContaining('protocolVersion')]);
}

const send = (logoutToken: string) => sendLogoutAsTimePasses(own, logoutToken);

async function expectRefused(logoutToken: string, post = send): Promise<void> {
  const { status, headers, json } = await post(logoutToken);
  expect(json).toEqual({ error: 'invalid_request', error_description: expect.any(String) });
  expect([status, headers['cache-control']]).toEqual([400, 'no-store']);
  const said = JSON.stringify(json);
  for (const secret of [own.provider.issuer.url, CLIENT_ID, 'user-1', 'sid-1', logoutToken]) {
    expect(said).not.toContain(secret);
  }
}

const encode = (part: unknown): string => Buffer.from(JSON.stringify(part)).toString('base64url');

/** An own signature, over whatever the two parts are. */
const assemble = (header: object, claims: Claims, sign: (input: string) => string): string => {
  const input = `${encode(header)}.${encode(claims)}`;
  return `${input}.${sign(input)}`;
};

const hmac = (key: string | Buffer) => (input: string) =>
  createHmac('sha256', key).update(input).digest('base64url');

test('§13.4 logout token: there are enough ways to be wrong', () => {
  expect(WRONG_CLAIMS.length + WRONG_HEADERS.length).toBeGreaterThanOrEqual(150);
});

test('§13.4 logout token: with any claim that is missing, of another type or another value, nothing ends', async () => {
  const victim = await own.logIn(SESSION);
  for (const change of WRONG_CLAIMS) {
    const changed = change(seconds());
    await expectRefused(await logoutTokens().sign(changed)).catch((thrown) => {
      throw new Error(`Accepted with ${JSON.stringify(changed)}`, { cause: thrown });
    });
    await expectNothingEnded(victim);
  }
  expect((await sendLogout(own.gateway, await logoutTokens().sign())).status).toBe(200);
  expect((await own.call(victim.access)).status).toBe(401);
}, 60_000);

test('§13.4 logout token: with another typ, or a kid that is none, nothing ends', async () => {
  const victim = await own.logIn(SESSION);
  for (const header of WRONG_HEADERS) {
    const { kid } = own.provider.issuer.keys[0] ?? {};
    const claims = logoutTokens().claims();
    // Whatever the header says, the signature is that of the provider.
    const named = { alg: 'RS256', kid, typ: 'logout+jwt', ...header };
    const signed = await own.provider.issuer
      .sign(claims, { header: named })
      .catch(() => assemble(named, claims, () => 'AA'));
    await expectRefused(signed);
  }
  await expectNothingEnded(victim);
});

test('§13.4 logout token: with another signature, or none, nothing ends', async () => {
  const victim = await own.logIn(SESSION);
  const { issuer } = own.provider;
  const right = await logoutTokens().sign();
  const [header = '', payload = '', signature = ''] = right.split('.');
  const [key] = issuer.keys;
  if (key === undefined) throw new Error('The provider has no key');
  const { kid } = key;
  const pem = createPublicKey({ key, format: 'jwk' }).export({ type: 'spki', format: 'pem' });
  const der = createPublicKey({ key, format: 'jwk' }).export({ type: 'spki', format: 'der' });
  const claims = logoutTokens().claims();
  const other = await logoutTokens().sign({ sub: 'user-2' });
  const [, , otherSignature = ''] = other.split('.');
  const flipped = `${signature[0] === 'A' ? 'B' : 'A'}${signature.slice(1)}`;
  const typ = 'logout+jwt';
  const wrong = [
    ...['none', 'None', 'NONE', 'nOnE', ''].flatMap((alg) => [
      assemble({ alg, typ, kid }, claims, () => ''),
      assemble({ alg, typ, kid }, claims, () => signature),
    ]),
    assemble({ typ, kid }, claims, () => signature),
    ...[pem.toString(), der, JSON.stringify(key), key.n ?? '', ''].map((secret) =>
      assemble({ alg: 'HS256', typ, kid }, claims, hmac(secret)),
    ),
    assemble({ alg: 'RS256', typ, kid }, claims, hmac(pem.toString())),
    ...['HS384', 'HS512', 'RS512', 'PS256', 'ES256', 'EdDSA', 'RS1'].map((alg) =>
      assemble({ alg, typ, kid }, claims, () => signature),
    ),
    `${header}.${encode(claims)}.${signature}`,
    `${header}.${payload}.${otherSignature}`,
    `${header}.${payload}.${flipped}`,
    `${header}.${payload}.${signature.slice(0, -4)}`,
    `${header}.${payload}.${signature}=`,
    `${header}.${payload}.`,
    `${header}.${payload}`,
    `${header}.${payload}.${signature}.`,
    `${header}.${payload}.${signature}.a.b`,
    ` ${right}`,
    `${right}\n`,
    assemble({ alg: 'RS256', typ, kid, crit: ['x'], x: 1 }, claims, () => signature),
    assemble({ alg: 'RS256', typ, kid, b64: false }, claims, () => signature),
    randomUUID(),
    'x'.repeat(17_000),
  ];
  for (const token of wrong) await expectRefused(token);
  await expectNothingEnded(victim);
});

test.each([
  { what: 'an ID token of the user', change: { nonce: 'n' }, header: { typ: 'JWT' } },
  { what: 'one without a nonce', change: {}, header: { typ: undefined } },
  { what: 'one that says it is a logout token', change: {}, header: { typ: 'logout+jwt' } },
  { what: 'an access token', change: { scope: 'openid' }, header: { typ: 'at+jwt' } },
  { what: 'an access token without typ', change: { scope: 'openid' }, header: {} },
])('§13.4 logout token: $what is none', async ({ change, header }) => {
  const victim = await own.logIn(SESSION);
  const claims = logoutTokens().claims({ events: undefined, ...change });
  await expectRefused(await own.provider.issuer.sign(claims, { header }));
  await expectNothingEnded(victim);
});

test('§13.4 logout token: nor is a logout token an ID token, or an access token', async () => {
  const client = await own.steps.register();
  const { cookie, asked } = await own.steps.approve(client);
  const nonce = asked.searchParams.get('nonce');
  const claims = logoutTokens().claims({ nonce });
  const back = await own.steps.callback(own.provider.logIn(asked, claims), cookie);
  expect(new URL(back.headers.location ?? '').searchParams.get('error')).toBe('server_error');
  expect((await own.call(await logoutTokens().sign())).status).toBe(401);
});

const RIGHT: readonly { readonly what: string; readonly change: Change; readonly typ?: string }[] =
  [
    { what: 'without typ', change: () => ({}), typ: '' },
    { what: 'with typ in capitals', change: () => ({}), typ: 'Logout+JWT' },
    { what: 'with an audience in a list', change: () => ({ aud: [CLIENT_ID] }) },
    { what: 'with two audiences', change: () => ({ aud: ['another', CLIENT_ID] }) },
    { what: 'with a sid alone', change: () => ({ sub: undefined }) },
    { what: 'with a sub alone', change: () => ({ sid: undefined }) },
    {
      what: 'with more events, and claims',
      change: () => ({ events: { [EVENT]: { a: 1 }, 'urn:x': {} }, typ: 'Logout', trace: 'x' }),
    },
    { what: 'that has just expired', change: (now) => ({ exp: now - 5 }) },
    { what: 'of a clock that is ahead', change: (now) => ({ iat: now + 5 }) },
    { what: 'that was issued minutes ago', change: (now) => ({ iat: now - 500 }) },
  ];

test.each(RIGHT)('§13.4 logout token: one $what is accepted', async ({ change, typ }) => {
  const victim = await own.logIn(SESSION);
  const header = typ === undefined ? {} : { typ: typ || undefined };
  const token = await logoutTokens().sign(change(seconds()), { header });
  const { status, headers, text } = await sendLogout(own.gateway, token);
  expect([status, headers['cache-control'], text]).toEqual([200, 'no-store', '']);
  expect((await own.call(victim.access)).status).toBe(401);
});

test.each(['ES256', 'PS384', 'EdDSA'])(
  '§13.4 logout token: one that the provider signed with %s is accepted',
  async (alg) => {
    const victim = await own.logIn(SESSION);
    const token = await logoutTokens().sign({}, { alg });
    expect((await send(token)).status).toBe(200);
    expect((await own.call(victim.access)).status).toBe(401);
  },
);

test('§13.4 logout token: one is accepted once, of many at the same moment, too, and refused for as long as it would be good', async () => {
  const token = await logoutTokens().sign();
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => sendLogout(own.gateway, token)),
  );
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  // Those that came in the middle are told to come again, as the first one may fail.
  for (const { status } of answers) expect([200, 400, 503]).toContain(status);
  // No time passes while one is judged, or it would no longer be good where it is noted.
  const sendAtOnce = (text: string) => sendLogout(own.gateway, text);
  const victim = await own.logIn(SESSION);
  await expectRefused(token, sendAtOnce);
  own.clock.advance(100_000);
  await expectRefused(token, sendAtOnce);
  own.clock.advance(600_000);
  await expectRefused(token, sendAtOnce);
  const fresh = await own.logIn(SESSION);
  await expectNothingEnded(fresh);
  expect((await own.refresh(victim)).status).toBe(200);
});

test.each<{ what: string; body?: unknown; path?: string; method?: string; status?: number }>([
  { what: 'no form', body: undefined },
  { what: 'an empty form', body: new URLSearchParams() },
  { what: 'an empty token', body: new URLSearchParams({ logout_token: '' }) },
  { what: 'two tokens', body: 'twice' },
  { what: 'the token as JSON', body: 'json' },
  { what: 'the token in the address', body: new URLSearchParams(), path: 'query' },
  { what: 'a GET', method: 'GET', path: 'query', status: 405 },
])('§13.4 logout token: $what is refused, and nothing ends', async (row) => {
  const { body, path, method = 'POST', status: expected = 400 } = row;
  const victim = await own.logIn(SESSION);
  const token = await logoutTokens().sign();
  const form = new URLSearchParams({ logout_token: token });
  if (body === 'twice') form.append('logout_token', token);
  const sent = body === 'twice' ? form : body === 'json' ? { logout_token: token } : body;
  const { status } = await own.gateway.request({
    method,
    path: path === 'query' ? `${LOGOUT_PATH}?${form}` : LOGOUT_PATH,
    ...(method === 'POST' && { body: sent ?? '' }),
  });
  expect(status).toBe(expected);
  await expectNothingEnded(victim);
});

test('§13.4 logout token: the log says what was found and what is expected, and never the token', async () => {
  const token = await logoutTokens().sign({ aud: 'another-client' });
  await expectRefused(token);
  const line = own.gateway.log.findLast(({ error }) => error === 'invalid_logout_token');
  expect(line).toMatchObject({
    level: 'warn',
    member: 'aud',
    found: 'another-client',
    expected: CLIENT_ID,
    problem: expect.stringContaining('OAUTH_CLIENT_ID'),
  });
  expect(JSON.stringify(own.gateway.log)).not.toContain(token.split('.')[2]);
});
