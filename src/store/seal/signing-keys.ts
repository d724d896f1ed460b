// §18.6, §24: signing keys for the gateway's statements to others: about a caller, to servers, and about itself, to authorization
// servers. All replicas share the keys in the store.
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  type KeyObject,
  sign,
} from 'node:crypto';
import { promisify } from 'node:util';
import { hashSha256 } from '../../platform/ids.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { ClockAndLog } from '../../platform/log.ts';
import type { KeyValue } from '../store.ts';
import type { Seal } from './seal.ts';

export type SigningKeys = ReturnType<typeof createSigningKeys>;

interface SigningKey {
  /** RFC 7638: the thumbprint of the public key. */
  readonly kid: string;
  readonly privateKey: KeyObject;
  readonly publicJwk: JsonObject;
}

const DAY_MS = 86_400_000;
/** Each key signs for one month; all replicas count months the same way. */
const MONTH_MS = 30 * DAY_MS;
/**
 * A key is published this long before and after its signing period: longer than tokens live, servers cache the key set, and
 * clocks of replicas differ.
 */
const OVERLAP_MS = DAY_MS;
/** A store that lost its data has other keys, or none: replicas must not keep their own for longer. */
const KEPT_MS = 60_000;

/** `buildKeyName` returns the store's key for a month's signing key: keys for different purposes differ. */
export function createSigningKeys(
  {
    store,
    clock,
    log,
  }: ClockAndLog & { readonly store: Pick<KeyValue, 'get' | 'getOrSet' | 'compareAndSet'> },
  getSeal: () => Promise<Seal>,
  buildKeyName: (month: number) => string,
) {
  const kept = new Map<number, { readonly loading: Promise<SigningKey>; readonly at: number }>();

  /** The key of a month. Single flight: concurrent callers share one request to the store. */
  function getKey(month: number) {
    const known = kept.get(month);
    if (known !== undefined && clock.monotonic() - known.at < KEPT_MS) return known.loading;
    const loading = reloadKey(month, known?.loading);
    kept.set(month, { loading, at: clock.monotonic() });
    return loading;
  }

  async function reloadKey(month: number, known: Promise<SigningKey> | undefined) {
    const former = await known?.catch(() => undefined);
    try {
      return await loadOrCreateKey(month, former);
    } catch (error) {
      // The cached key is still the best one available.
      if (former !== undefined) return former;
      kept.delete(month);
      throw error;
    }
  }

  async function loadOrCreateKey(
    month: number,
    former: SigningKey | undefined,
  ): Promise<SigningKey> {
    const name = buildKeyName(month);
    const seal = await getSeal();
    const ttlSeconds = Math.ceil(((month + 1) * MONTH_MS + 2 * OVERLAP_MS - clock.now()) / 1000);
    const write = ({ privateKey }: SigningKey) =>
      seal.seal(name, privateKey.export({ format: 'pem', type: 'pkcs8' }).toString());
    const stored =
      (await store.get(name)) ??
      (await store.getOrSet(name, write(former ?? (await generateKey())), ttlSeconds));
    const text = seal.open(name, stored);
    if (text === undefined) {
      // Another secret sealed the stored key: either a newer one, which another replica already has, or one that was removed.
      if (former !== undefined) return former;
      log.warn(
        'A signing key in the store was sealed with another OAUTH_STATE_SECRET: a new key takes its place. Set the same list of secrets on all replicas.',
      );
      return replaceKey(await generateKey());
    }
    const key = describeKey(createPrivateKey(text));
    // An older secret may be removed an hour after the new one was added.
    return seal.isSealedByFirst(stored) ? key : replaceKey(key);

    /** If another replica was faster, all replicas use its key. */
    async function replaceKey(one: SigningKey) {
      const isReplaced = await store.compareAndSet(name, stored, write(one), ttlSeconds);
      return isReplaced ? one : loadOrCreateKey(month, former);
    }
  }

  return {
    /** The key of this month. @throws StoreUnavailable if it was never read and cannot be read now. */
    getSigningKey: () => getKey(findMonth(clock.now())),
    /** The keys whose tokens may be valid now or tomorrow, as JWKs (RFC 7517). */
    async listPublicKeys() {
      const now = clock.now();
      const months = new Set([now - OVERLAP_MS, now, now + OVERLAP_MS].map(findMonth));
      for (const month of kept.keys()) if (!months.has(month)) kept.delete(month);
      const keys = await Promise.all([...months].map(getKey));
      return keys.map(({ publicJwk }) => publicJwk);
    },
  };
}

const findMonth = (now: number) => Math.floor(now / MONTH_MS);

const generatePair = promisify(generateKeyPair);

async function generateKey(): Promise<SigningKey> {
  const { privateKey } = await generatePair('ec', { namedCurve: 'P-256' });
  return describeKey(privateKey);
}

function describeKey(privateKey: KeyObject): SigningKey {
  const { kty, crv, x, y } = createPublicKey(privateKey).export({ format: 'jwk' });
  const kid = hashSha256(JSON.stringify({ crv, kty, x, y }));
  return { kid, privateKey, publicJwk: { kty, crv, x, y, kid, alg: 'ES256', use: 'sig' } };
}

/** RFC 7519, ES256. */
export function signJwt(claims: JsonObject, { kid, privateKey }: SigningKey): string {
  const text = `${encode({ alg: 'ES256', typ: 'JWT', kid })}.${encode(claims)}`;
  // RFC 7518 §3.4: R and S are concatenated, not DER-encoded.
  const signature = sign('sha256', Buffer.from(text), {
    key: privateKey,
    dsaEncoding: 'ieee-p1363',
  });
  return `${text}.${signature.toString('base64url')}`;
}

const encode = (value: JsonObject) => Buffer.from(JSON.stringify(value)).toString('base64url');
