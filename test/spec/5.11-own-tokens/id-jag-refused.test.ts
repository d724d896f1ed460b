// Every wrong assertion (ID-JAG), made of a right one by changing one member of it: none gets a token, and none is told why.
import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { manualClock } from '../../support/gateway/clock.ts';
import { useShared } from '../../support/lifetimes.ts';
import {
  assertUser,
  bringAssertion,
  type Change,
  claimsOfUser,
  ID_JAG_ENV,
  ID_JAG_TYPE,
} from '../../support/oauth/id-jag.ts';
import { startIssuer } from '../../support/oauth/issuer.ts';
import {
  basic,
  encodePart,
  fileOf,
  type Members,
  newKey,
  SECRET,
  signJwt,
  withSecret,
} from '../../support/oauth/machine-clients.ts';
import { BASE, MCP, startOwnTokens } from '../../support/oauth/own-tokens.ts';

/** Of the gateway's manual clock, which nothing here moves. */
const NOW = manualClock(1_800_000_000_000).now();
const SECONDS = NOW / 1000;
const CLIENT = { scopes: ['read', 'write'] };

const own = useShared(async () => {
  const stranger = await startIssuer();
  const setup = await startOwnTokens({
    env: {
      ...ID_JAG_ENV,
      OAUTH_CLIENT_CREDENTIALS_RATE_LIMIT_MAX: '1000000',
      OAUTH_CLIENT_CREDENTIALS_GRANT_RATE_LIMIT_MAX: '1000000',
    },
    deps: { file: await fileOf([withSecret('agent', CLIENT), withSecret('other', CLIENT)]) },
  });
  return {
    ...setup,
    stranger,
    async close() {
      await setup.close();
      await stranger.close();
    },
  };
});

type Row = readonly [what: string, make: () => Promise<string>];

const make = (change: Change): Promise<string> => assertUser(own.provider.issuer, NOW, change);

const byClaims = (claims: Members): Row => [
  Object.entries(claims)
    .map(([name, value]) => `${name} ${JSON.stringify(value)?.slice(0, 60)}`)
    .join(', '),
  () => make({ claims }),
];

const byHeader = (header: Members): Row => [
  `header ${JSON.stringify(header)}`,
  () => make({ header }),
];

/** What no member may be. */
const ODD_VALUES = [null, true, '', 0, {}, [], [[]], ['x'], '\u0000', ' '];

/** Like the right one, and another. */
const listSimilar = (right: string): readonly unknown[] => [
  `${right}/`,
  `${right} `,
  ` ${right}`,
  right.toUpperCase(),
  right.slice(0, -1),
  `${right}x`,
  `${right}\u0000`,
  [right, right],
  [right, 'https://elsewhere.example'],
  ['https://elsewhere.example', right],
  { value: right },
];

const TIMES = [undefined, null, true, '', `${SECONDS}`, {}, [], [SECONDS], 'tomorrow'];

const claimRows: readonly Row[] = [
  ...[undefined, ...ODD_VALUES, ...listSimilar(BASE)].map((aud) => byClaims({ aud })),
  ...[
    `${BASE}/oauth/token`,
    MCP,
    `${BASE}:443`,
    BASE.replace('https', 'http'),
    'gateway-at-provider',
    'agent',
    '*',
  ].map((aud) => byClaims({ aud })),
  ...[undefined, ...ODD_VALUES, ...listSimilar('agent'), 'other', 'client:agent', BASE, '*'].map(
    (client_id) => byClaims({ client_id }),
  ),
  ...[undefined, ...ODD_VALUES, 'https://issuer.example', BASE, 'https://accounts.google.com'].map(
    (iss) => byClaims({ iss }),
  ),
  ...[undefined, null, true, '', 0, 1, {}, [], ['user-1'], '\ud800', BASE, `${BASE}/`].map((sub) =>
    byClaims({ sub }),
  ),
  ...['client:agent', 'client:', 'client:user-1'].map((sub) => byClaims({ sub })),
  ...TIMES.map((exp) => byClaims({ exp })),
  ...[-86_400, -300, -5, 0].map((seconds) => byClaims({ exp: SECONDS + seconds - 5 })),
  ...[3601, 7200, 86_400].map((seconds) => byClaims({ exp: SECONDS + seconds })),
  byClaims({ exp: Number.MAX_SAFE_INTEGER }),
  ...TIMES.map((iat) => byClaims({ iat })),
  ...[6, 60, 86_400].map((seconds) => byClaims({ iat: SECONDS + seconds, exp: SECONDS + 90_000 })),
  byClaims({ iat: SECONDS + 4, exp: SECONDS + 3 }),
  byClaims({ iat: SECONDS - 86_400 }),
  ...TIMES.slice(1).map((nbf) => byClaims({ nbf })),
  ...[6, 60, 86_400].map((seconds) => byClaims({ nbf: SECONDS + seconds })),
  ...[undefined, null, true, '', 0, 1, {}, [], ['x'], 'x'.repeat(257)].map((jti) =>
    byClaims({ jti }),
  ),
  ...[
    null,
    true,
    '',
    0,
    {},
    [],
    [1],
    'https://elsewhere.example/mcp',
    [MCP, 'https://elsewhere.example/mcp'],
    `${BASE}/admin`,
    `${MCP}/nothing`,
    MCP.toUpperCase(),
    `${MCP}?x`,
    `${MCP}#x`,
    `${BASE}.evil.example`,
    Array.from({ length: 21 }, () => MCP),
  ].map((resource) => byClaims({ resource })),
  ...[null, true, 0, {}, ['read'], 'read  write', ' read', 'read\twrite', 'r"ead'].map((scope) =>
    byClaims({ scope }),
  ),
  ...[null, '', 1, {}, 'x'.repeat(257)].map((sid) => byClaims({ sid })),
  ...[{ jkt: 'x' }, null, {}].map((cnf) => byClaims({ cnf })),
  ...['tenant-1', null].map((tenant) => byClaims({ tenant })),
  byClaims({ fill: 'x'.repeat(20_000) }),
  byClaims({ deep: JSON.parse(`${'['.repeat(40)}${']'.repeat(40)}`) }),
];

const TYPES = [
  undefined,
  null,
  1,
  '',
  'JWT',
  'jwt',
  'at+jwt',
  'id-jag+jwt',
  'OAUTH-ID-JAG+JWT',
  `application/${ID_JAG_TYPE}`,
  `${ID_JAG_TYPE} `,
  `x${ID_JAG_TYPE}`,
  'oauth-id-jag',
  'logout+jwt',
  'client-authentication+jwt',
];

const signAsStranger = (kid: string | null): Promise<string> =>
  own.stranger.sign(claimsOfUser(own.provider.issuer.url, NOW), {
    header: { typ: ID_JAG_TYPE },
    kid,
  });

/** For these the keys are fetched anew, which is done every two seconds at most. */
const lateRows: readonly Row[] = [
  ['a kid that nobody has', () => signAsStranger('unknown')],
  ['a kid that is empty', () => signAsStranger('')],
  ['no kid', () => signAsStranger(null)],
];

const headerRows: readonly Row[] = [
  ...TYPES.map((typ) => byHeader({ typ })),
  ['a stranger, by a kid that is known', () => signAsStranger('RS256-1')],
];

const STRANGE = newKey('RS256', 'RS256-1');

/** Made by hand: jose would refuse. */
const byHand = (what: string, header: Members, signature?: (input: string) => string): Row => [
  what,
  async () => {
    const claims = claimsOfUser(own.provider.issuer.url, NOW);
    if (signature === undefined) return signJwt(header, claims, STRANGE);
    const input = `${encodePart(header)}.${encodePart(claims)}`;
    return `${input}.${signature(input)}`;
  },
];

const publicKey = () => JSON.stringify(own.provider.issuer.keys[0]);
const flip = (text: string, at: number) =>
  text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1);
const RIGHT_HEADER = { typ: ID_JAG_TYPE, kid: 'RS256-1' };

const byText = (what: string, change: (parts: readonly string[]) => string): Row => [
  what,
  async () => change((await make({})).split('.')),
];

const signatureRows: readonly Row[] = [
  ...['none', 'None', 'nOnE', 'HS256', 'RS1', ''].map((alg) =>
    byHand(`alg ${alg} without a signature`, { ...RIGHT_HEADER, alg }, () => ''),
  ),
  ...['HS256', 'HS384', 'HS512'].map((alg) =>
    byHand(`${alg} by the public key`, { ...RIGHT_HEADER, alg }, (input) =>
      createHmac(`sha${alg.slice(2)}`, publicKey())
        .update(input)
        .digest('base64url'),
    ),
  ),
  byHand('a critical extension', { ...RIGHT_HEADER, alg: 'RS256', crit: ['jwk'], jwk: {} }),
  byHand('b64', { ...RIGHT_HEADER, alg: 'RS256', b64: true }),
  byHand("a stranger's key", { ...RIGHT_HEADER, alg: 'RS256' }),
  byHand('a key of its own', { ...RIGHT_HEADER, alg: 'RS256', jwk: STRANGE.jwk }),
  byText('no signature', ([header, payload]) => `${header}.${payload}.`),
  byText('two parts', ([header, payload]) => `${header}.${payload}`),
  byText('four parts', (parts) => `${parts.join('.')}.x`),
  byText('no payload', ([header, , signature]) => `${header}..${signature}`),
  byText('another payload', ([header, , signature]) =>
    [header, encodePart(claimsOfUser(own.provider.issuer.url, NOW)), signature].join('.'),
  ),
  ...[0, 40, 200].map((at) =>
    byText(`signature changed at ${at}`, ([header, payload, signature = '']) =>
      [header, payload, flip(signature, at)].join('.'),
    ),
  ),
  byText('padding', (parts) => `${parts.join('.')}=`),
  byText('white space', (parts) => ` ${parts.join('.')}`),
  ['an opaque token', async () => 'opaque'],
  [
    'an ID token of the provider',
    () => own.provider.issuer.sign({ aud: 'gateway-at-provider', iat: SECONDS }),
  ],
  ['a token of the gateway', async () => (await own.logIn()).access],
  ['an issuer that is not named', () => assertUser(own.stranger, NOW)],
  [
    'the name of the issuer with a slash',
    () => make({ claims: { iss: `${own.provider.issuer.url}/` } }),
  ],
];

const ROWS = [...claimRows, ...headerRows, ...signatureRows];

test('§13.7 ID-JAG: there are enough ways to be wrong', () => {
  expect(ROWS.length).toBeGreaterThan(200);
});

test('§13.7 ID-JAG: none of them gets a token, all get the same answer, and the log says of each what was found and expected', async () => {
  const texts = new Set<string>();
  const accepted: string[] = [];
  const unexplained: string[] = [];
  for (const [what, makeRow] of ROWS) {
    const assertion = await makeRow();
    const logged = own.gateway.log.length;
    const { status, text } = await bringAssertion(own.gateway, assertion);
    if (status !== 400) accepted.push(`${what}: ${status}`);
    texts.add(text);
    const lines = own.gateway.log.slice(logged).map((line) => JSON.stringify(line));
    const explains = lines.some((line) => line.includes('"member"') && line.includes('"expected"'));
    if (!explains) unexplained.push(what);
    if (lines.some((line) => line.includes(assertion.slice(-40))))
      unexplained.push(`told: ${what}`);
  }
  expect(accepted).toEqual([]);
  expect(unexplained).toEqual([]);
  expect(texts.size).toBe(1);
  expect(JSON.parse([...texts].join()).error).toBe('invalid_grant');
}, 60_000);

test('§13.7 ID-JAG: right ones are right after all of them: members that may differ', async () => {
  const rights: readonly Change[] = [
    {},
    { claims: { aud: [BASE] } },
    { claims: { exp: SECONDS + 3600 } },
    { claims: { iat: SECONDS - 3000, exp: SECONDS + 1 } },
    { claims: { exp: SECONDS - 4, iat: SECONDS - 300 } },
    { claims: { iat: SECONDS + 4, nbf: SECONDS + 4 } },
    { claims: { scope: undefined, resource: undefined, sid: 'session' } },
    { claims: { sub: 'Client:1', act: { sub: 'agent' }, auth_time: SECONDS } },
    { header: { jku: 'https://evil.example' } },
    { sign: { kid: null } },
  ];
  for (const right of rights) {
    const { status, text } = await bringAssertion(own.gateway, await make(right));
    expect([status, text]).toEqual([200, expect.stringContaining('pst_')]);
  }
});

test('§13.7 ID-JAG: what a client was given is worth nothing to another client', async () => {
  const assertion = await make({});
  const stolen = await bringAssertion(own.gateway, assertion, {
    authorization: basic('other', SECRET),
  });
  expect([stolen.status, stolen.json.error]).toEqual([400, 'invalid_grant']);
  expect((await bringAssertion(own.gateway, assertion)).status).toBe(200);
  const without = await bringAssertion(own.gateway, '');
  expect([without.status, without.json.error]).toEqual([400, 'invalid_request']);
});

test('§13.7 ID-JAG: keys that nobody knows are looked for, and are still nobody’s', async () => {
  for (const [, makeRow] of lateRows) {
    let found: unknown;
    void bringAssertion(own.gateway, await makeRow()).then(({ status, json }) => {
      found = [status, json.error];
    });
    await expect
      .poll(() => {
        own.clock.advance(2000);
        return found;
      })
      .toEqual([400, 'invalid_grant']);
  }
});
