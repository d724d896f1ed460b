import {
  checkPrimeSync,
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  randomInt,
  sign,
} from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Fetch } from '../../../src/platform/fetch-with-limits.ts';
import { type ManualClock, manualClock } from '../../support/gateway/clock.ts';
import {
  INITIALIZE_REQUEST,
  startGateway,
  type TestResponse,
} from '../../support/gateway/gateway.ts';
import { flushLoopback } from '../../support/gateway/manual-connection.ts';
import { useFreshGateway } from '../../support/gateway/use-gateway.ts';
import { AUDIENCE } from '../../support/oauth/issuer.ts';
import { wrapStore } from '../../support/stores/wrapped-store.ts';

let clock: ManualClock;
/** The provider's key set waits for it. */
let gate: Promise<void>;

const fetchThroughGate: Fetch = async (url, init) => {
  const answer = await fetch(url, init);
  if (String(url).endsWith('/jwks')) await gate;
  return answer;
};

const gateway = useFreshGateway(() => {
  gate = Promise.resolve();
  clock = manualClock(1_800_000_000_000);
  return { deps: { clock, fetch: fetchThroughGate } };
});
beforeEach(async () => void (await gateway.open()));

const newKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });

const jwkOf = (key: KeyObject, members: object = {}): never =>
  ({ ...key.export({ format: 'jwk' }), ...members }) as never;

const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

function tokenOf(key: KeyObject, header: object = {}): string {
  const claims = { iss: gateway.issuer.url, aud: AUDIENCE, sub: 'user-1', exp: 1_900_000_000 };
  const alg = key.asymmetricKeyType === 'rsa' ? 'RS256' : 'ES256';
  const text = `${encoded({ alg, ...header })}.${encoded(claims)}`;
  const signature = sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' });
  return `${text}.${signature.toString('base64url')}`;
}

const send = (token: string) => gateway.rpc(INITIALIZE_REQUEST, { token });

/** Moves the time on in small steps until the answer is there. */
async function inTime(pending: Promise<TestResponse>): Promise<TestResponse> {
  let answer: TestResponse | undefined;
  void pending.then((given) => {
    answer = given;
  });
  await expect
    .poll(
      () => {
        if (answer === undefined) clock.advance(100);
        return answer;
      },
      { interval: 5, timeout: 15_000 },
    )
    .toBeDefined();
  return pending;
}

/** What the provider shows from now on, fetched by the gateway in its own time. */
async function publish(...keys: readonly never[]): Promise<void> {
  const before = gateway.issuer.fetches.keys;
  gateway.issuer.keys = [...gateway.issuer.keys, ...keys];
  clock.advance(600_000);
  await expect.poll(() => gateway.issuer.fetches.keys, { interval: 5 }).toBe(before + 1);
  await gateway.open();
}

test('§5 keys that come while the first caller is counted: it waits no longer', async () => {
  const steps = new EventEmitter();
  gate = once(steps, 'keys').then(() => {});
  let isHeld = false;
  const wrapped = await wrapStore((store) => ({
    async admitRequest(...args) {
      if (!isHeld) {
        isHeld = true;
        await once(steps, 'count');
      }
      return store.admitRequest(...args);
    },
  }));
  const early = await startGateway({
    deps: { clock: manualClock(), fetch: fetchThroughGate, store: wrapped.store },
  });
  try {
    const answering = early.rpc(INITIALIZE_REQUEST);
    await expect.poll(() => isHeld).toBe(true);
    steps.emit('keys');
    const isReady = async () => (await early.request({ path: '/health/ready' })).status;
    await expect.poll(isReady).toBe(200);
    steps.emit('count');
    expect((await answering).status).toBe(200);
  } finally {
    await early.close();
    await wrapped.remove();
  }
});

test('§5 a key set that cannot be fetched: a token of an unknown key waits for one fetch, not for two', async () => {
  let failFetch = (_error: Error) => {};
  gate = new Promise((_resolve, reject) => {
    failFetch = reject;
  });
  const before = gateway.issuer.fetches.keys;
  clock.advance(600_000);
  await expect.poll(() => gateway.issuer.fetches.keys, { interval: 5 }).toBe(before + 1);
  const answer = send(tokenOf(newKey().privateKey, { kid: 'unknown' }));
  await flushLoopback();
  clock.advance(5000);
  failFetch(new Error('too late'));
  // The clock stands still: no further fetch is due.
  expect((await answer).status).toBe(503);
});

describe('tokens and keys without a kid', () => {
  test('§5 a key without kid that gives way to one with kid: its token is accepted', async () => {
    const old = newKey();
    await publish(jwkOf(old.publicKey));
    expect((await send(tokenOf(old.privateKey))).status).toBe(200);
    expect((await send(tokenOf(old.privateKey, { kid: 'any' }))).status).toBe(200);

    const next = newKey();
    gateway.issuer.keys = [jwkOf(next.publicKey, { kid: 'next' })];
    const answer = await inTime(send(tokenOf(next.privateKey, { kid: 'next' })));
    expect(answer.status).toBe(200);
  });

  test('§5 a key without kid that gives way to another: its token is accepted', async () => {
    await publish(jwkOf(newKey().publicKey));
    const next = newKey();
    gateway.issuer.keys = [jwkOf(next.publicKey)];
    expect((await inTime(send(tokenOf(next.privateKey)))).status).toBe(200);
  });

  test('§5 a key published while a refresh was under way is found by the next one', async () => {
    await publish(jwkOf(newKey().publicKey));
    const before = gateway.issuer.fetches.keys;
    let open = () => {};
    gate = new Promise((resolve) => {
      open = resolve;
    });
    clock.advance(600_000);
    await expect.poll(() => gateway.issuer.fetches.keys, { interval: 5 }).toBe(before + 1);

    const next = newKey();
    gateway.issuer.keys = [jwkOf(next.publicKey)];
    const answer = send(tokenOf(next.privateKey));
    open();
    expect((await inTime(answer)).status).toBe(200);
    expect(gateway.issuer.fetches.keys).toBe(before + 2);
  });
});

describe('which keys are used', () => {
  const rsa = (options: object = {}) =>
    generateKeyPairSync('rsa', { modulusLength: 2048, ...options });

  test.each([
    { what: 'a key for signatures', members: { use: 'sig' }, status: 200 },
    { what: 'a key to verify with', members: { key_ops: ['verify'] }, status: 200 },
    { what: 'a key that says nothing', members: {}, status: 200 },
    { what: 'a key for encryption', members: { use: 'enc' }, status: 401 },
    { what: 'a key to encrypt with', members: { key_ops: ['encrypt'] }, status: 401 },
    { what: 'a key of another alg', members: { alg: 'ES384' }, status: 401 },
    { what: 'a key of another curve', members: { crv: 'P-384' }, status: 401 },
    { what: 'a key of another type', members: { kty: 'RSA' }, status: 401 },
    { what: 'a point off the curve', members: { x: 'A'.repeat(43) }, status: 401 },
  ])('§5 $what: $status', async ({ members, status }) => {
    const { publicKey, privateKey } = newKey();
    await publish(jwkOf(publicKey, { kid: 'k', ...members }));
    expect((await inTime(send(tokenOf(privateKey, { kid: 'k' })))).status).toBe(status);
  });

  test('§5 a private key shown by mistake is used as a public one', async () => {
    const { privateKey } = newKey();
    await publish(jwkOf(privateKey, { kid: 'k' }));
    expect((await send(tokenOf(privateKey, { kid: 'k' }))).status).toBe(200);
  });

  test('§5 two keys of one kid are both tried', async () => {
    const { publicKey, privateKey } = newKey();
    const named = { kid: 'k' };
    await publish(jwkOf(newKey().publicKey, named), jwkOf(publicKey, named));
    expect((await send(tokenOf(privateKey, named))).status).toBe(200);
  });

  test('§5 entries of a key set that are no keys do not spoil the others', async () => {
    const { publicKey, privateKey } = newKey();
    const nonsense = [null, 5, 'x', [], {}, { kty: 'oct', k: 'AAAA' }, { kty: 'EC', x: 5 }];
    await publish(...(nonsense as never[]), jwkOf(publicKey, { kid: 'k' }));
    expect((await send(tokenOf(privateKey, { kid: 'k' }))).status).toBe(200);
  });

  test('§5 an RSA key of 2048 bits is used; of 1024 bits, or of a broken generator, it is not', async () => {
    const sound = rsa();
    const short = rsa({ modulusLength: 1024 });
    const broken = brokenKey();
    await publish(
      jwkOf(sound.publicKey, { kid: 'sound' }),
      jwkOf(short.publicKey, { kid: 'short' }),
      jwkOf(broken, { kid: 'broken', use: 'sig' }),
    );
    expect((await send(tokenOf(sound.privateKey, { kid: 'sound' }))).status).toBe(200);
    for (const [kid, key] of Object.entries({ short: short.privateKey, broken })) {
      expect((await inTime(send(tokenOf(key, { kid })))).status).toBe(401);
    }
  });

  test('§7.1 b64:false without crit, over an encoded payload: invalid_token', async () => {
    const { publicKey, privateKey } = newKey();
    await publish(jwkOf(publicKey, { kid: 'k' }));
    const answer = await send(tokenOf(privateKey, { kid: 'k', b64: false }));
    expect(answer.json.error.data.reason).toBe('invalid_token');
  });

  /** CVE-2017-15361: both primes are powers of 65537 modulo the product of all small primes. */
  function brokenKey(): KeyObject {
    const primes = Array.from({ length: 166 }, (_, at) => BigInt(at + 2)).filter((n) =>
      checkPrimeSync(n),
    );
    const product = primes.reduce((all, one) => all * one, 1n);
    const prime = (): bigint => {
      let candidate = 0n;
      while (!checkPrimeSync(candidate)) {
        const high = (1n << 1023n) + (1n << 1022n) + BigInt(randomInt(2 ** 47)) * (1n << 900n);
        const power = 65_537n ** BigInt(randomInt(1, 1000)) % product;
        candidate = high - (high % product) + power;
      }
      return candidate;
    };
    const [p, q] = [prime(), prime()];
    const e = 65_537n;
    const d = inverse(e, (p - 1n) * (q - 1n));
    const numbers = { n: p * q, e, d, p, q, dp: d % (p - 1n), dq: d % (q - 1n), qi: inverse(q, p) };
    const members = Object.entries(numbers).map(([name, value]) => [name, base64url(value)]);
    return createPrivateKey({ key: { kty: 'RSA', ...Object.fromEntries(members) }, format: 'jwk' });
  }

  const base64url = (value: bigint): string => {
    const hex = value.toString(16);
    return Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex').toString(
      'base64url',
    );
  };

  function inverse(value: bigint, modulus: bigint): bigint {
    let [a, b, x, y] = [value % modulus, modulus, 1n, 0n];
    while (a !== 0n) {
      const quotient = b / a;
      [a, b, x, y] = [b - quotient * a, a, y - quotient * x, x];
    }
    return ((y % modulus) + modulus) % modulus;
  }
});
