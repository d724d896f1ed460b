// Every wrong way to say which client one is, made of a right one: none gets a token, and none is told why.
import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { manualClock } from '../../support/gateway/clock.ts';
import { useShared } from '../../support/lifetimes.ts';
import {
  ASSERTION_TYPE,
  askForToken,
  assertionOf,
  basic,
  claimsOf,
  encodePart,
  fileOf,
  hashHex,
  headerOf,
  type Members,
  newKey,
  SECRET,
  signJwt,
  type TokenRequest,
  withSecret,
} from '../../support/oauth/machine-clients.ts';
import { BASE, startOwnTokens } from '../../support/oauth/own-tokens.ts';

const KEY = newKey('ES256', 'one');
const RSA = newKey('RS256', 'two');
const STRANGE = newKey('ES256', 'one');
const OTHERS = newKey('ES256', 'one');
const OTHER_SECRET = 'the-secret-of-the-other-client-here';

const own = useShared(async () =>
  startOwnTokens({
    env: { OAUTH_CLIENT_CREDENTIALS_RATE_LIMIT_MAX: '1000000' },
    deps: {
      file: await fileOf([
        withSecret('ci'),
        withSecret('other', {}, OTHER_SECRET),
        { id: 'signs', jwks: { keys: [KEY.jwk, RSA.jwk] } },
        { id: 'signs-too', jwks: { keys: [OTHERS.jwk] } },
      ]),
    },
  }),
);

/** Of the gateway's manual clock, which nothing here moves. */
const NOW = manualClock(1_800_000_000_000).now();
const SECONDS = NOW / 1000;

type Row = readonly [what: string, request: TokenRequest];

const byAssertion = (
  assertion: string,
  more: Readonly<Record<string, string>> = {},
): TokenRequest => ({
  form: { client_assertion: assertion, client_assertion_type: ASSERTION_TYPE, ...more },
});

const byClaims = (claims: Members, key = KEY): TokenRequest =>
  byAssertion(assertionOf('signs', key, NOW, { claims }));

const byHeader = (header: Members, key = KEY): TokenRequest =>
  byAssertion(assertionOf('signs', key, NOW, { header }));

/** What no member of an assertion may be. */
const ODD_VALUES = [undefined, null, true, '', ' ', 0, {}, [], ['x'], '\u0000'];

const rightTexts: Readonly<Record<string, string>> = { iss: 'signs', sub: 'signs', aud: BASE };

/** Like the right one, and another. */
const listSimilar = (right: string): readonly unknown[] => [
  `${right}/`,
  `${right} `,
  ` ${right}`,
  right.toUpperCase(),
  right.slice(0, -1),
  `${right}x`,
  `${right}\u0000`,
  [right],
  [right, right],
  [right, 'https://elsewhere.example'],
  { value: right },
];

const claimRows: readonly Row[] = [
  ...Object.entries(rightTexts).flatMap(([name, right]) =>
    [...ODD_VALUES, ...listSimilar(right)].map(
      (value): Row => [`${name} ${JSON.stringify(value)}`, byClaims({ [name]: value })],
    ),
  ),
  ...['ci', 'other', 'signs-too', 'nobody', 'postern-playground', BASE].flatMap((other): Row[] => [
    [`iss ${other}`, byClaims({ iss: other })],
    [`sub ${other}`, byClaims({ sub: other })],
    [`iss and sub ${other}`, byClaims({ iss: other, sub: other })],
  ]),
  ...[
    `${BASE}/oauth/token`,
    `${BASE}/mcp`,
    `${BASE}:443`,
    BASE.replace('https', 'http'),
    'https://issuer.example',
  ].map((aud): Row => [`aud ${aud}`, byClaims({ aud })]),
  ...[...ODD_VALUES.slice(0, -1), '1800000060', Number.MAX_SAFE_INTEGER, -1].map(
    (exp): Row => [`exp ${JSON.stringify(exp)}`, byClaims({ exp })],
  ),
  ...[-86_400, -60, -5, 306, 600, 3600, 86_400].map(
    (seconds): Row => [`exp in ${seconds} s`, byClaims({ exp: SECONDS + seconds })],
  ),
  ...(['iat', 'nbf'] as const).flatMap((name) =>
    [...ODD_VALUES.slice(1), '1800000000', SECONDS + 6, SECONDS + 60, SECONDS + 86_400]
      // 0 is long ago, which only iat may not be.
      .filter((value) => name === 'iat' || value !== 0)
      .map((value): Row => [`${name} ${JSON.stringify(value)}`, byClaims({ [name]: value })]),
  ),
  ['iat of an hour ago', byClaims({ iat: SECONDS - 3600 })],
  ...[undefined, null, true, '', 0, 1, {}, [], ['x'], 'x'.repeat(257)].map(
    (jti): Row => [`jti ${JSON.stringify(jti)}`, byClaims({ jti })],
  ),
];

const withAlgorithm = (alg: string, signature: string): TokenRequest => {
  const input = `${encodePart(headerOf(KEY, { alg }))}.${encodePart(claimsOf('signs', NOW))}`;
  return byAssertion(`${input}.${signature}`);
};

function signByHmac(alg: string, secret: string | Buffer): TokenRequest {
  const input = `${encodePart(headerOf(KEY, { alg }))}.${encodePart(claimsOf('signs', NOW))}`;
  const hmac = createHmac(`sha${alg.slice(2)}`, secret)
    .update(input)
    .digest('base64url');
  return byAssertion(`${input}.${hmac}`);
}

const headerRows: readonly Row[] = [
  ...[
    'none',
    'None',
    'NONE',
    '',
    'HS256',
    'ES256K',
    'ES384',
    'RS256',
    'RS1',
    'EdDSA',
    'es256',
    1,
    null,
  ].map((alg): Row => [`alg ${JSON.stringify(alg)}`, byHeader({ alg })]),
  ...['none', 'None', 'nOnE', 'HS256'].map(
    (alg): Row => [`alg ${alg} without a signature`, withAlgorithm(alg, '')],
  ),
  ...['HS256', 'HS384', 'HS512'].flatMap((alg): Row[] => [
    [
      `${alg} by the public key`,
      signByHmac(alg, String(KEY.publicKey.export({ type: 'spki', format: 'pem' }))),
    ],
    [`${alg} by the public JWK`, signByHmac(alg, JSON.stringify(KEY.jwk))],
    [`${alg} by nothing`, signByHmac(alg, '')],
  ]),
  ...[
    'at+jwt',
    'oauth-id-jag+jwt',
    'logout+jwt',
    'dpop+jwt',
    'JWE',
    '',
    'secevent+jwt',
    1,
    null,
  ].map((typ): Row => [`typ ${JSON.stringify(typ)}`, byHeader({ typ })]),
  ...['two', 'three', '', 'ONE', 1, null, ['one']].map(
    (kid): Row => [`kid ${JSON.stringify(kid)}`, byHeader({ kid })],
  ),
  ['crit', byHeader({ crit: ['exp'] })],
  ['crit that is empty', byHeader({ crit: [] })],
  ['b64', byHeader({ b64: true })],
  [
    'a key of its own',
    byAssertion(
      assertionOf('signs', STRANGE, NOW, { header: { jwk: STRANGE.jwk, kid: undefined } }),
    ),
  ],
  [
    'an address of keys',
    byAssertion(
      assertionOf('signs', STRANGE, NOW, { header: { jku: 'https://evil.example/jwks' } }),
    ),
  ],
  ['by a stranger', byAssertion(assertionOf('signs', STRANGE, NOW))],
  ["by another client's key", byAssertion(assertionOf('signs', OTHERS, NOW))],
  ["another client by one's own key", byAssertion(assertionOf('signs-too', KEY, NOW))],
  ['a client that has a secret', byAssertion(assertionOf('ci', KEY, NOW))],
];

const RIGHT = assertionOf('signs', KEY, NOW);
const [HEADER = '', PAYLOAD = '', SIGNATURE = ''] = RIGHT.split('.');
const flip = (text: string, at: number): string =>
  text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1);

const formRows: readonly Row[] = [
  ...[
    `${HEADER}.${PAYLOAD}.`,
    `${HEADER}.${PAYLOAD}`,
    `${HEADER}..${SIGNATURE}`,
    `.${PAYLOAD}.${SIGNATURE}`,
    `${RIGHT}.`,
    `${RIGHT}.${SIGNATURE}`,
    `${RIGHT}=`,
    `${RIGHT} `,
    ` ${RIGHT}`,
    `${HEADER}.${PAYLOAD}.${SIGNATURE.slice(0, -2)}`,
    `${HEADER}.${PAYLOAD}.${SIGNATURE}AA`,
    ...[0, 20, 40, 60].map((at) => `${HEADER}.${PAYLOAD}.${flip(SIGNATURE, at)}`),
    ...[0, 10, 30].map((at) => `${HEADER}.${flip(PAYLOAD, at)}.${SIGNATURE}`),
    `${flip(HEADER, 4)}.${PAYLOAD}.${SIGNATURE}`,
    `${HEADER}.${encodePart('signs')}.${SIGNATURE}`,
    `${HEADER}.${encodePart([claimsOf('signs', NOW)])}.${SIGNATURE}`,
    signJwt(headerOf(KEY), 'signs', KEY),
    signJwt(headerOf(KEY), [claimsOf('signs', NOW)], KEY),
    signJwt(headerOf(KEY), null, KEY),
    'signs',
    '{}',
    'x'.repeat(9000),
  ].map((assertion, at): Row => [`assertion ${at}`, byAssertion(assertion)]),
  ...[
    '',
    'urn:ietf:params:oauth:client-assertion-type:saml2-bearer',
    'jwt-bearer',
    ASSERTION_TYPE.toUpperCase(),
    `${ASSERTION_TYPE} `,
  ].map(
    (type): Row => [
      `type ${type}`,
      byAssertion(assertionOf('signs', KEY, NOW), { client_assertion_type: type }),
    ],
  ),
  ['a type alone', { form: { client_assertion_type: ASSERTION_TYPE, client_id: 'signs' } }],
  ...['ci', 'signs-too', 'SIGNS', 'signs ', 'nobody'].map(
    (client_id): Row => [
      `client_id ${client_id}`,
      byAssertion(assertionOf('signs', KEY, NOW), { client_id }),
    ],
  ),
];

const WRONG_SECRETS = [
  '',
  ' ',
  SECRET.slice(0, -1),
  SECRET.slice(1),
  `${SECRET}x`,
  `${SECRET} `,
  ` ${SECRET}`,
  `${SECRET}\u0000`,
  SECRET.toUpperCase(),
  OTHER_SECRET,
  hashHex(SECRET),
  Buffer.from(hashHex(SECRET), 'hex').toString('base64url'),
  'undefined',
  'null',
  SECRET.repeat(100),
];
const WRONG_IDS = [
  '',
  ' ',
  'CI',
  'ci ',
  ' ci',
  'c',
  'cii',
  'ci\u0000',
  'other',
  'signs',
  'client:ci',
  'nobody',
  '__proto__',
  'constructor',
  'svc-ABCDEFGHIJKL',
  'postern-playground',
  'https://client.example/document',
];

const toBase64 = (text: string): string => Buffer.from(text).toString('base64');

const secretRows: readonly Row[] = [
  ...WRONG_SECRETS.flatMap((secret): Row[] => [
    [
      `secret in the header ${JSON.stringify(secret.slice(0, 50))}`,
      { authorization: basic('ci', secret) },
    ],
    [
      `secret in the body ${JSON.stringify(secret.slice(0, 50))}`,
      { form: { client_id: 'ci', client_secret: secret } },
    ],
  ]),
  ...WRONG_IDS.flatMap((id): Row[] => [
    [`ID in the header ${JSON.stringify(id)}`, { authorization: basic(id, SECRET) }],
    [`ID in the body ${JSON.stringify(id)}`, { form: { client_id: id, client_secret: SECRET } }],
  ]),
  ...[
    'Basic',
    'Basic ',
    `Basic ${toBase64('ci')}`,
    `Basic ${toBase64(`ci;${SECRET}`)}`,
    `Basic ${toBase64(`:${SECRET}`)}`,
    `Basic ${toBase64(`ci:${SECRET}:`)}`,
    `Basic ${toBase64(`ci:%zz${SECRET}`)}`,
    `Basic ci:${SECRET}`,
    `Basic ${toBase64(`ci:${SECRET}`)}, Basic ${toBase64(`ci:${SECRET}`)}`,
    `Basic ${toBase64(`ci:${SECRET}`)} x`,
    `Bearer ${toBase64(`ci:${SECRET}`)}`,
    `Bearer ${SECRET}`,
    toBase64(`ci:${SECRET}`),
  ].map((authorization): Row => [`header ${authorization.slice(0, 40)}`, { authorization }]),
  ['nothing', {}],
  ['an ID alone', { form: { client_id: 'ci' } }],
  ['a secret alone', { form: { client_secret: SECRET } }],
  ['another ID in the body', { authorization: basic('ci', SECRET), form: { client_id: 'other' } }],
  [
    'header and body',
    { authorization: basic('ci', SECRET), form: { client_id: 'ci', client_secret: SECRET } },
  ],
  [
    'header and assertion',
    { ...byAssertion(assertionOf('signs', KEY, NOW)), authorization: basic('ci', SECRET) },
  ],
  [
    'secret and assertion',
    byAssertion(assertionOf('signs', KEY, NOW), { client_id: 'ci', client_secret: SECRET }),
  ],
  [
    'a number as the secret',
    { body: { grant_type: 'client_credentials', client_id: 'ci', client_secret: 1 } },
  ],
  [
    'a list as the secret',
    { body: { grant_type: 'client_credentials', client_id: 'ci', client_secret: [SECRET] } },
  ],
];

const ROWS = [...claimRows, ...headerRows, ...formRows, ...secretRows];

test('§5.11 machine clients: there are enough ways to be wrong', () => {
  expect(ROWS.length).toBeGreaterThan(250);
});

test.each(ROWS)('§5.11 machine clients: refused: %s', async (_what, request) => {
  const { status, json, headers } = await askForToken(own.gateway, request);
  expect(json).not.toHaveProperty('access_token');
  expect([400, 401]).toContain(status);
  expect(json.error).toBe(status === 401 ? 'invalid_client' : 'invalid_request');
  const isBasic = /^Basic/.test(request.authorization ?? '');
  expect(headers['www-authenticate']).toBe(
    isBasic && status === 401 ? 'Basic realm="oauth", charset="UTF-8"' : undefined,
  );
});

test('§5.11 machine clients: after all of them a right one is right, and it is told the same whether a client exists or not', async () => {
  const rights: readonly TokenRequest[] = [
    { authorization: basic('ci', SECRET) },
    { form: { client_id: 'other', client_secret: OTHER_SECRET } },
    byAssertion(RIGHT),
    byClaims({ exp: SECONDS + 300, iat: SECONDS, nbf: SECONDS }, RSA),
    byHeader({ typ: 'client-authentication+jwt' }),
    byHeader({ typ: undefined, kid: undefined }),
  ];
  for (const right of rights) expect((await askForToken(own.gateway, right)).status).toBe(200);
  const answers = [
    await askForToken(own.gateway, { authorization: basic('ci', 'wrong') }),
    await askForToken(own.gateway, { authorization: basic('signs', 'wrong') }),
    await askForToken(own.gateway, { authorization: basic('nobody', 'wrong') }),
    await askForToken(own.gateway, byAssertion(assertionOf('nobody', KEY, NOW))),
    await askForToken(own.gateway, byAssertion(assertionOf('signs', STRANGE, NOW))),
  ];
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  expect(own.gateway.log.map((line) => JSON.stringify(line)).join()).not.toContain(SECRET);
});
