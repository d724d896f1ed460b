import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { algorithms, parseKeySet } from '../../../src/logins/auth/jwk.ts';
import { NO_KEYS } from '../../../src/logins/auth/key-set.ts';
import { createTokenVerifier } from '../../../src/logins/auth/token-verifier.ts';
import { type ManualClock, manualClock } from '../../support/gateway/clock.ts';
import { INITIALIZE_REQUEST } from '../../support/gateway/gateway.ts';
import { seriesOf } from '../../support/gateway/metrics.ts';
import { useFreshGateway } from '../../support/gateway/use-gateway.ts';
import { AUDIENCE } from '../../support/oauth/issuer.ts';

const NOW_SECONDS = 1_800_000_000;
const DAY_SECONDS = 86_400;

const newKey = () => generateKeyPairSync('rsa', { modulusLength: 2048 });
const ours = newKey();
const theirs = newKey();
const OURS = ours.publicKey.export({ format: 'jwk' });
const THEIRS = theirs.publicKey.export({ format: 'jwk' });

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

function signToken(claims: object, header: object = {}, key: KeyObject = ours.privateKey): string {
  const text = `${encode({ alg: 'RS256', kid: 'a', ...header })}.${encode(claims)}`;
  return `${text}.${sign('sha256', Buffer.from(text), key).toString('base64url')}`;
}

/** Each character of the token replaced by another one of base64url, one at a time. */
const changeEachCharacter = (token: string): readonly string[] =>
  [...token].map((character, at) => {
    const replacement = character === 'A' ? 'B' : 'A';
    return `${token.slice(0, at)}${replacement}${token.slice(at + 1)}`;
  });

/** The same bytes: an RSA signature of 2048 bits leaves four bits of its last character over, which must be zero. */
function addStrayBit(token: string): string {
  const last = token.charCodeAt(token.length - 1);
  return token.slice(0, -1) + String.fromCharCode(last + 1);
}

/** Whatever is remembered, callers see the same. */
describe.each(['4096', '1', '0'])('with TOKEN_SIGNATURE_MEMORY=%s', (entries) => {
  let clock: ManualClock;
  const gateway = useFreshGateway(() => {
    clock = manualClock(NOW_SECONDS * 1000);
    return { env: { TOKEN_SIGNATURE_MEMORY: entries }, deps: { clock } };
  });
  beforeEach(() => publish({ ...OURS, kid: 'a' }));

  /** What the provider shows from now on, fetched by the gateway in its own time. */
  async function publish(...keys: readonly object[]): Promise<void> {
    const countRefreshes = () => seriesOf(gateway, 'jwks_refresh_total', { status: 'success' });
    await expect.poll(countRefreshes, { interval: 5 }).toBeGreaterThan(0);
    const before = (await countRefreshes()) ?? 0;
    gateway.issuer.keys = keys as never;
    clock.advance(600_000);
    await expect.poll(countRefreshes, { interval: 5 }).toBe(before + 1);
  }

  const claimsOf = (sub: string, over: object = {}) => ({
    iss: gateway.issuer.url,
    aud: AUDIENCE,
    sub,
    exp: NOW_SECONDS + DAY_SECONDS,
    ...over,
  });

  const send = async (token: string): Promise<unknown> => {
    const { status, json } = await gateway.rpc(INITIALIZE_REQUEST, { token });
    return status === 200 ? 200 : json.error.data.reason;
  };

  /** 200, or the reason of the refusal. A key that is not at hand is awaited, by the test's clock. */
  async function judge(token: string): Promise<unknown> {
    let verdict: unknown;
    void send(token).then((given) => {
      verdict = given;
    });
    await expect
      .poll(
        () => {
          if (verdict === undefined) clock.advance(100);
          return verdict;
        },
        { interval: 5 },
      )
      .toBeDefined();
    return verdict;
  }

  /** A token that was accepted twice: with a memory, the second time by it. */
  async function acceptTwice(token: string): Promise<string> {
    expect([await send(token), await send(token)]).toEqual([200, 200]);
    return token;
  }

  test.each([
    { what: 'its key was removed', keys: [{ ...THEIRS, kid: 'b' }] },
    { what: 'another key has its kid', keys: [{ ...THEIRS, kid: 'a' }] },
    { what: 'its key has another kid', keys: [{ ...OURS, kid: 'b' }] },
    { what: 'its key has another alg', keys: [{ ...OURS, kid: 'a', alg: 'RS512' }] },
    { what: 'its key is for encryption', keys: [{ ...OURS, kid: 'a', use: 'enc' }, { ...THEIRS }] },
  ])(
    '§5.2 a token that was accepted is refused once $what; a key that comes back counts again',
    async ({ keys }) => {
      const token = await acceptTwice(signToken(claimsOf('user-1')));
      await publish(...keys);
      expect(await judge(token)).toBe('invalid_token');
      await publish({ ...OURS, kid: 'a' });
      expect(await judge(token)).toBe(200);
    },
  );

  test.each([
    {
      what: 'beside another',
      keys: [
        { ...THEIRS, kid: 'b' },
        { ...OURS, kid: 'a' },
      ],
    },
    { what: 'with its alg named', keys: [{ ...OURS, kid: 'a', alg: 'RS256' }] },
    { what: 'without kid', keys: [OURS] },
  ])('§5.2 a token that was accepted still is while its key is there, $what', async ({ keys }) => {
    const token = await acceptTwice(signToken(claimsOf('user-1')));
    await publish(...keys);
    expect(await send(token)).toBe(200);
  });

  test('§5.2 a token whose kid then names another key is refused, though its own key is still there', async () => {
    await publish(OURS);
    const token = await acceptTwice(signToken(claimsOf('user-1')));
    await publish(OURS, { ...THEIRS, kid: 'a' });
    expect(await judge(token)).toBe('invalid_token');
  });

  test('§5.4 a token that was accepted is refused once it has expired, and before its nbf', async () => {
    const lasting = await acceptTwice(signToken(claimsOf('user-1')));
    const times = { nbf: NOW_SECONDS, exp: NOW_SECONDS + 3600 };
    const brief = await acceptTwice(signToken(claimsOf('user-1', times)));
    clock.advance(3600_000);
    expect([await send(brief), await send(lasting)]).toEqual(['expired_token', 200]);
    clock.advance(-2 * 3600_000);
    expect([await send(brief), await send(lasting)]).toEqual(['invalid_token', 200]);
  });

  test('§5.2 a token that was accepted is refused with any of its characters changed', async () => {
    const token = await acceptTwice(signToken(claimsOf('user-1')));
    const verdicts = await Promise.all(changeEachCharacter(token).map(judge));
    expect(verdicts).toEqual(token.split('').map(() => 'invalid_token'));
    expect(await send(token)).toBe(200);
  });

  test.each([
    { what: 'with padding', spell: (token: string) => `${token}=` },
    { what: 'with bits that stand for nothing', spell: addStrayBit },
  ])('§5.2 a token that was accepted is refused when it is spelled $what', async ({ spell }) => {
    const token = await acceptTwice(signToken(claimsOf('user-1')));
    expect([await judge(spell(token)), await judge(spell(token))]).toEqual([
      'invalid_token',
      'invalid_token',
    ]);
    expect(await send(token)).toBe(200);
  });

  test('§5.2 the signature of an accepted token does not serve for another user', async () => {
    const token = await acceptTwice(signToken(claimsOf('user-1')));
    const [header, , signature] = token.split('.');
    expect(await send(`${header}.${encode(claimsOf('user-2'))}.${signature}`)).toBe(
      'invalid_token',
    );
  });

  test('§5.2 a token that was refused is judged anew, not by what was said before', async () => {
    const token = signToken(claimsOf('user-1'), { kid: 'b' }, theirs.privateKey);
    expect(await judge(token)).toBe('invalid_token');
    await publish({ ...THEIRS, kid: 'b' });
    expect(await judge(token)).toBe(200);
  });

  test('§5.3 of two tokens of one user each has its own claims', async () => {
    const tokens = ['one@example.com', 'two@example.com'].map((email) =>
      signToken(claimsOf('user-1', { email })),
    );
    for (const token of [...tokens, ...tokens]) await acceptTwice(token);
    const read = async (token = '') => {
      const session = await gateway.open({ token });
      const params = { uri: 'user://profile' };
      const message = { jsonrpc: '2.0', id: 1, method: 'resources/read', params };
      return (await gateway.rpc(message, { token, session })).text;
    };
    expect(await read(tokens[0])).toContain('one@example.com');
    expect(await read(tokens[1])).toContain('two@example.com');
  });

  test('§4.11 each token counts as one look-up in the key set, remembered or not', async () => {
    const countHits = () => seriesOf(gateway, 'jwks_cache_hits_total');
    const before = (await countHits()) ?? 0;
    const token = await acceptTwice(signToken(claimsOf('user-1')));
    await acceptTwice(token);
    expect(await countHits()).toBe(before + 4);
  });
});

describe('which signatures are remembered', () => {
  const CLAIMS = { iss: 'https://login.example', aud: AUDIENCE, exp: NOW_SECONDS + 60 };
  const tokenOf = (sub: string) => signToken({ ...CLAIMS, sub });
  const forgedOf = (sub: string) => signToken({ ...CLAIMS, sub }, {}, theirs.privateKey);
  const readKeys = (...jwks: readonly object[]) =>
    parseKeySet(Buffer.from(JSON.stringify({ keys: jwks }))).usable;
  const keys = readKeys({ ...OURS, kid: 'a' });

  /** A verifier that remembers so many tokens, with the keys that `find` returns, and no others to fetch. */
  const createVerifier = (signatureMemory: number, find = () => keys) =>
    createTokenVerifier(
      manualClock(NOW_SECONDS * 1000),
      { ...NO_KEYS, find, findAfterRefresh: async () => find() },
      {
        issuer: CLAIMS.iss,
        baseUrl: 'https://gateway.example',
        audience: [AUDIENCE],
        audienceClaim: 'aud',
        foreignClaims: [],
        isServerAudience: () => false,
        clockToleranceSeconds: 0,
        maxTokenBytes: 16_384,
        signatureMemory,
      },
    );

  /** Says of a token whether it is accepted, and whether its signature was checked for that. */
  function createMemory(maxEntries: number) {
    const checking = vi.spyOn(algorithms.get('RS256') ?? expect.fail(), 'verify');
    let current = keys;
    const { verify } = createVerifier(maxEntries, () => current);
    return async (token: string, set = keys) => {
      current = set;
      checking.mockClear();
      const verdict = await (async () => verify(token))().then(
        () => 'accepted',
        () => 'refused',
      );
      return `${verdict}${checking.mock.calls.length > 0 ? ', checked' : ''}`;
    };
  }

  test('§5.2 one that was found good is not checked again', async () => {
    const judge = createMemory(4);
    expect(await judge(tokenOf('one'))).toBe('accepted, checked');
    expect(await judge(tokenOf('one'))).toBe('accepted');
    expect(await judge(tokenOf('one'))).toBe('accepted');
  });

  test('§5.2 one that was found bad is checked each time', async () => {
    const judge = createMemory(4);
    const forged = forgedOf('one');
    expect(await judge(forged)).toBe('refused, checked');
    expect(await judge(forged)).toBe('refused, checked');
  });

  test('§5.2 the least recently used one is forgotten first', async () => {
    const judge = createMemory(2);
    const [one, two, three] = [tokenOf('one'), tokenOf('two'), tokenOf('three')];
    await judge(one);
    await judge(two);
    expect(await judge(one)).toBe('accepted');
    expect(await judge(three)).toBe('accepted, checked');
    expect(await judge(one)).toBe('accepted');
    expect(await judge(three)).toBe('accepted');
    expect(await judge(two)).toBe('accepted, checked');
    expect(await judge(three)).toBe('accepted');
    expect(await judge(two)).toBe('accepted');
    expect(await judge(one)).toBe('accepted, checked');
  });

  test('§5.2 a memory that is full holds as many as it may', async () => {
    const judge = createMemory(3);
    const tokens = ['one', 'two', 'three', 'four', 'five'].map(tokenOf);
    for (const token of tokens) await judge(token);
    for (const token of tokens.slice(2)) expect(await judge(token)).toBe('accepted');
  });

  test('§5.2 it counts while a key of the same thumbprint, kid and alg is in the set, read anew or not', async () => {
    const judge = createMemory(4);
    const token = tokenOf('one');
    await judge(token);
    expect(await judge(token, readKeys({ ...OURS, kid: 'a', use: 'sig' }))).toBe('accepted');
    expect(await judge(token, readKeys({ ...THEIRS, kid: 'a' }, { ...OURS, kid: 'a' }))).toBe(
      'accepted',
    );
    expect(await judge(token, readKeys({ ...THEIRS, kid: 'a' }))).toBe('refused, checked');
    // It comes back.
    expect(await judge(token, keys)).toBe('accepted');
  });

  test.each([
    { what: 'kid', jwk: { ...OURS, kid: 'b' } },
    { what: 'alg', jwk: { ...OURS, kid: 'a', alg: 'RS256' } },
  ])('§5.2 the same key with another $what is another key: it is checked anew', async ({ jwk }) => {
    const judge = createMemory(4);
    const token = tokenOf('one');
    await judge(token);
    expect(await judge(token, readKeys(jwk))).toBe('accepted, checked');
    expect(await judge(token, readKeys(jwk))).toBe('accepted');
  });

  test('§5.2 a token that was only inspected is not remembered', () => {
    const { inspect, verify } = createVerifier(4);
    expect(verify(tokenOf('good'))).toMatchObject({ sub: 'good' });
    const forged = forgedOf('forged');
    expect(inspect(forged)).toEqual({ sub: 'forged', problem: undefined });
    expect(() => verify(forged)).toThrow('The signature of the token is not valid.');
  });
});
