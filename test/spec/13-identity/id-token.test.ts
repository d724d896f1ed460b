import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { GatewayError } from '../../../src/errors/gateway-error.ts';
import { createProviderMetadata } from '../../../src/http/oauth-client/provider-metadata.ts';
import { createIdTokenVerifier, type ExpectedIdToken } from '../../../src/logins/auth/id-token.ts';
import { createKeySet } from '../../../src/logins/auth/key-set.ts';
import { noMetrics } from '../../../src/telemetry/metrics/metrics.ts';
import { type ManualClock, manualClock } from '../../support/gateway/clock.ts';
import { collectLog } from '../../support/gateway/log.ts';
import { useShared } from '../../support/lifetimes.ts';
import { startIssuer } from '../../support/oauth/issuer.ts';
import { chooseCount } from '../../support/tools/long-run.ts';

type Claims = Readonly<Record<string, unknown>>;

const NOW = 1_800_000_000;
const CLIENT = 'gateway-client';
const BASE_URL = 'https://gw.example.com';
const ACCESS_TOKEN = 'ya29.opaque-access-token';
const NONCE = 'n-0S6_WzA2Mj';
const TOLERANCE = 5;

let clock: ManualClock;
const issuer = useShared(async () => {
  clock = manualClock(NOW * 1000);
  return startIssuer({ clock });
});

const open = () => {
  const { log } = collectLog();
  const deps = { fetch, clock, log, metrics: noMetrics };
  const metadata = createProviderMetadata(deps, issuer.url);
  const keySet = createKeySet(deps, { url: undefined, metadata });
  keySet.start();
  return createIdTokenVerifier(clock, keySet, {
    issuer: issuer.url,
    clientId: CLIENT,
    baseUrl: BASE_URL,
    clockToleranceSeconds: TOLERANCE,
  });
};

let verifier: ReturnType<typeof open>;
beforeAll(() => {
  verifier = open();
});

const LOGIN: ExpectedIdToken = { nonce: NONCE, accessToken: ACCESS_TOKEN, earlier: undefined };

const halfHash = (name: string, options?: { outputLength: number }): string => {
  const hash = createHash(name, options).update(ACCESS_TOKEN).digest();
  return hash.subarray(0, hash.length / 2).toString('base64url');
};

/** As a good provider makes it; undefined leaves a claim out. */
const claimsOf = (over: Claims = {}): Claims => ({
  iss: issuer.url,
  aud: CLIENT,
  azp: CLIENT,
  sub: 'user-1',
  exp: NOW + 300,
  iat: NOW,
  nonce: NONCE,
  at_hash: halfHash('sha256'),
  ...over,
});

const signWith = (over: Claims, options = {}) => issuer.sign(claimsOf(over), options);

interface Refusal {
  readonly key: string;
  readonly message: string;
  readonly member?: unknown;
}

/** Undefined where the token is accepted; moves the time on for whoever waits for a key. */
async function refusalOf(
  token: string,
  expected = LOGIN,
  by = verifier,
): Promise<Refusal | undefined> {
  let isSettled = false;
  const outcome = by.verify(token, expected).then(
    () => undefined,
    (thrown: unknown) => ({ thrown }),
  );
  void outcome.then(() => {
    isSettled = true;
  });
  while (!isSettled) {
    await new Promise(setImmediate);
    if (!isSettled) clock.advance(1);
  }
  const failed = await outcome;
  if (failed === undefined) return undefined;
  if (!(failed.thrown instanceof GatewayError)) throw failed.thrown;
  const { key, message, failure } = failed.thrown;
  return { key, message, ...failure.facts };
}

describe('the ID token of a login', () => {
  test('§13.1 an ID token as a good provider makes it is accepted with all its claims', async () => {
    const claims = claimsOf({ email: 'ada@example.com', custom: { deep: [1] } });
    expect(await verifier.verify(await issuer.sign(claims), LOGIN)).toEqual(claims);
  });

  const CHANGES: Readonly<Record<string, unknown>> = {
    missing: undefined,
    null: null,
    'a number': 7,
    true: true,
    'another text': 'other',
    'an empty text': '',
    'an empty list': [],
    'a list of another': ['other'],
    'an object': { value: CLIENT },
  };
  /** Those that are no mistake: the claim is optional, or may have that value. */
  const GOOD: ReadonlySet<string> = new Set([
    'azp missing',
    'nbf missing',
    'nbf a number',
    'iat a number',
    'at_hash missing',
    'sub another text',
  ]);
  const MEMBERS = ['iss', 'aud', 'azp', 'sub', 'exp', 'iat', 'nbf', 'nonce', 'at_hash'];
  const rows = MEMBERS.flatMap((member) =>
    Object.entries(CHANGES).map(([change, value]) => ({ member, change, value })),
  );

  test.each(rows)('§13.1 the claim $member, $change', async ({ member, change, value }) => {
    const refusal = await refusalOf(await signWith({ [member]: value }));
    if (GOOD.has(`${member} ${change}`)) return expect(refusal).toBeUndefined();
    const isNonce = member === 'nonce';
    expect(refusal).toMatchObject({
      key: isNonce ? 'invalid_grant' : 'unusable_id_token',
      member,
      expected: expect.anything(),
    });
    expect(refusal).toHaveProperty('found', value);
    const start = isNonce
      ? 'The ID token belongs to another login.'
      : "The gateway is misconfigured; this is not the user's fault. The gateway would not accept the identity provider's ID token. The ";
    expect(refusal?.message.startsWith(start)).toBe(true);
  });

  test.each([
    ['several audiences with azp', { aud: [CLIENT, 'api'] }, undefined],
    ['several audiences without azp', { aud: [CLIENT, 'api'], azp: undefined }, 'azp'],
    ['one audience in a list', { aud: [CLIENT], azp: undefined }, undefined],
    ['an audience that is no text beside ours', { aud: [CLIENT, 7] }, 'aud'],
    ['an audience in another case', { aud: CLIENT.toUpperCase() }, 'aud'],
    ['an issuer with a slash more', { iss: 'SLASH' }, 'iss'],
    ['a machine client of the gateway', { sub: 'client:ci' }, 'sub'],
    ['the gateway itself', { sub: `${BASE_URL.toUpperCase()}/` }, 'sub'],
    ['half a character', { sub: 'user-\ud800' }, 'sub'],
    ['one that expired within the tolerance', { exp: NOW - TOLERANCE + 1 }, undefined],
    ['one that expired before it', { exp: NOW - TOLERANCE }, 'exp'],
    ['one of the near future', { iat: NOW + TOLERANCE }, undefined],
    ['one of the future', { iat: NOW + TOLERANCE + 1 }, 'iat'],
    ['one that is valid later', { nbf: NOW + TOLERANCE + 1 }, 'nbf'],
    ['a logout token', { events: {} }, 'events'],
    ["Keycloak's ID token", { typ: 'ID' }, undefined],
    ["Keycloak's access token", { typ: 'Bearer' }, 'typ'],
    ["Keycloak's refresh token", { typ: 'Refresh' }, 'typ'],
    ["Cognito's access token", { token_use: 'access' }, 'token_use'],
  ] as const)('§13.1 %s', async (_what, over, member) => {
    clock.sleep(NOW * 1000 - clock.now());
    const iss = 'iss' in over ? { iss: `${issuer.url}/` } : {};
    const refusal = await refusalOf(await signWith({ ...over, ...iss }));
    expect(refusal?.member).toBe(member);
  });

  test.each([
    [undefined, true],
    ['JWT', true],
    ['jwt', true],
    ['application/jwt', true],
    ['at+jwt', false],
    ['logout+jwt', false],
    ['oauth-id-jag+jwt', false],
    ['', false],
    [null, false],
  ])('§13.1 the typ header %s: accepted is %s', async (typ, isAccepted) => {
    const refusal = await refusalOf(await signWith({}, { header: { typ } }));
    expect(refusal?.member).toBe(isAccepted ? undefined : 'form');
  });

  test.each([
    ['RS256', 'sha256'],
    ['RS384', 'sha384'],
    ['PS512', 'sha512'],
    ['ES256', 'sha256'],
    ['ES384', 'sha384'],
    ['ES512', 'sha512'],
    ['EdDSA', 'sha512'],
  ])('§13.1 %s: at_hash is half of %s', async (alg, hash) => {
    const right = await signWith({ at_hash: halfHash(hash) }, { alg });
    const fresh = open();
    expect(await refusalOf(right, LOGIN, fresh)).toBeUndefined();
    const wrong = await signWith({ at_hash: halfHash(hash).slice(1) }, { alg });
    expect((await refusalOf(wrong, LOGIN, fresh))?.member).toBe('at_hash');
    // The whole hash, and half of another one.
    const whole = createHash(hash).update(ACCESS_TOKEN).digest('base64url');
    const longer = await signWith({ at_hash: whole }, { alg });
    expect((await refusalOf(longer, LOGIN, fresh))?.member).toBe('at_hash');
  });

  test('§13.1 Ed448: at_hash is half of SHAKE256 with 114 bytes', async () => {
    const { publicKey, privateKey } = generateKeyPairSync('ed448');
    const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'ed448' };
    issuer.keys = [...issuer.keys, jwk as never];
    const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const signByHand = (atHash: string) => {
      const text = `${encode({ alg: 'EdDSA', kid: 'ed448' })}.${encode(claimsOf({ at_hash: atHash }))}`;
      return `${text}.${sign(null, Buffer.from(text), privateKey).toString('base64url')}`;
    };
    const fresh = open();
    const good = signByHand(halfHash('shake256', { outputLength: 114 }));
    expect(await refusalOf(good, LOGIN, fresh)).toBeUndefined();
    const bad = signByHand(halfHash('sha512'));
    expect((await refusalOf(bad, LOGIN, fresh))?.member).toBe('at_hash');
  });

  test('§13.1 without an access token there is no at_hash to compare', async () => {
    const token = await signWith({ at_hash: 'other' });
    expect(await refusalOf(token, { ...LOGIN, accessToken: undefined })).toBeUndefined();
  });
});

describe('the signature of an ID token', () => {
  const HMAC = { alg: 'HS256' };

  test('§13.1 a changed payload, a key of somebody else, no signature and a shared secret are refused', async () => {
    const token = await signWith({});
    const [header = '', , signature = ''] = token.split('.');
    const payload = Buffer.from(JSON.stringify(claimsOf({ sub: 'admin' }))).toString('base64url');
    const encodeHeader = (value: object) =>
      Buffer.from(JSON.stringify(value)).toString('base64url');
    const forged = [
      [`${header}.${payload}.${signature}`, 'signature'],
      [`${header}.${payload}.`, 'signature'],
      [`${encodeHeader({ alg: 'none' })}.${payload}.`, 'form'],
      [`${encodeHeader(HMAC)}.${payload}.${signature}`, 'form'],
      [`${encodeHeader({ alg: 'RS256', crit: ['exp'] })}.${payload}.${signature}`, 'form'],
      [`${token}=`, 'form'],
      [` ${token}`, 'form'],
      ['opaque', 'form'],
      ['a.b.c.d.e', 'form'],
      ['', 'form'],
    ] as const;
    for (const [text, member] of forged) {
      expect(await refusalOf(text), text).toMatchObject({ key: 'unusable_id_token', member });
    }
  });

  test('§13.1 what is said of ID tokens does not speak of access tokens', async () => {
    const encodeHeader = Buffer.from(JSON.stringify(HMAC)).toString('base64url');
    expect((await refusalOf(`${encodeHeader}.e30.AAAA`))?.message).toContain(
      "Choose another signature algorithm for the ID tokens of the gateway's client",
    );
    expect((await refusalOf('a.b.c.d.e'))?.message).toContain('encryption of ID tokens');
    expect((await refusalOf('opaque'))?.message).not.toContain('access token');
  });

  test('§13.1 an unknown key is looked for once in a key set that is fetched anew', async () => {
    const fresh = open();
    expect(await refusalOf(await signWith({}), LOGIN, fresh)).toBeUndefined();
    const before = issuer.fetches.keys;
    await issuer.rotate();
    expect(await refusalOf(await signWith({}), LOGIN, fresh)).toBeUndefined();
    expect(issuer.fetches.keys).toBe(before + 1);
    const unknown = await signWith({}, { kid: 'nobody' });
    expect((await refusalOf(unknown, LOGIN, fresh))?.member).toBe('signature');
    expect(issuer.fetches.keys).toBe(before + 2);
  });

  test('§13.1 a key set that cannot be fetched is not the fault of the token', async () => {
    issuer.behave('down');
    const fresh = open();
    const refusal = await refusalOf(await signWith({}), LOGIN, fresh);
    issuer.behave('ok');
    expect(refusal?.key).toBe('key_set_unavailable');
  });
});

describe('the ID token of a renewal', () => {
  const renewalOf = (user: { issuer: string; sub: string }): ExpectedIdToken => ({
    nonce: undefined,
    accessToken: ACCESS_TOKEN,
    earlier: user,
  });

  test('§13.1 it is of the same user, and needs no nonce', async () => {
    const user = { issuer: issuer.url, sub: 'user-1' };
    const without = await signWith({ nonce: undefined });
    expect(await refusalOf(without, renewalOf(user))).toBeUndefined();
    expect(await refusalOf(await signWith({ nonce: 'old' }), renewalOf(user))).toBeUndefined();
  });

  test('§13.1 one of somebody else, or of the same name at another provider, is refused', async () => {
    const token = await signWith({ nonce: undefined });
    const other = renewalOf({ issuer: issuer.url, sub: 'user-2' });
    expect(await refusalOf(token, other)).toMatchObject({
      key: 'unusable_id_token',
      member: 'sub',
      found: 'user-1',
      expected: 'user-2',
    });
    const elsewhere = renewalOf({ issuer: 'https://old.example', sub: 'user-1' });
    expect(await refusalOf(token, elsewhere)).toMatchObject({ member: 'iss' });
  });
});

describe('any ID token', () => {
  const isTime = (value: unknown): value is number => typeof value === 'number';

  /** OpenID Connect Core §3.1.3.7, written down once more. */
  function isAcceptable({ iss, aud, azp, sub, exp, iat, nonce, at_hash: hash }: Claims): boolean {
    const names: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
    return (
      iss === issuer.url &&
      names.includes(CLIENT) &&
      names.every((name) => typeof name === 'string') &&
      (azp === CLIENT || (azp === undefined && names.length < 2)) &&
      typeof sub === 'string' &&
      sub !== '' &&
      !sub.startsWith('client:') &&
      isTime(exp) &&
      exp + TOLERANCE > NOW &&
      isTime(iat) &&
      iat - TOLERANCE <= NOW &&
      nonce === NONCE &&
      (hash === undefined || hash === halfHash('sha256'))
    );
  }

  const odd = fc.oneof(
    fc.constantFrom(undefined, null, '', 0, NOW, [], {}, true, CLIENT, 'client:x'),
    fc.constantFrom([CLIENT], [CLIENT, 'api'], ['api'], [CLIENT, CLIENT], [[CLIENT]]),
    fc.integer({ min: NOW - 10, max: NOW + 10 }),
    fc.string(),
    fc.jsonValue({ maxDepth: 2 }),
  );
  const members = ['iss', 'aud', 'azp', 'sub', 'exp', 'iat', 'nonce', 'at_hash'];
  const changes = fc
    .uniqueArray(fc.tuple(fc.constantFrom(...members), odd), {
      maxLength: 3,
      selector: ([name]) => name,
    })
    .map((pairs) => Object.fromEntries(pairs));

  test('§13.1 one is accepted if and only if each of its claims is as it must be', async () => {
    clock.sleep(NOW * 1000 - clock.now());
    await fc.assert(
      fc.asyncProperty(changes, async (over) => {
        const token = await signWith(over, { alg: 'ES256' });
        const refusal = await refusalOf(token);
        expect(refusal === undefined).toBe(isAcceptable(claimsOf(over)));
      }),
      { numRuns: chooseCount(60, 1500) },
    );
  });
});
