// Records of a login under way: found by a secret that only its bearer knows, and sealed.
import { generateSecret } from '../../platform/ids.ts';
import { hashSha256 } from '../../platform/sha256.ts';
import type { TraceParent, Tracing } from '../../telemetry/tracing/tracing.ts';
import { buildOAuthKey } from '../keys.ts';
import { checkRecordVersion, RECORD_VERSION } from '../record-version.ts';
import type { Store } from '../store.ts';
import type { Seal } from './seal.ts';

export interface SealedRecords<Value> {
  /** Stores a value; returns the new secret by which it is found. */
  put(value: Value): Promise<string>;
  get(secret: string): Promise<Value | undefined>;
  /** For one of many at the same moment; undefined for all others and ever after. */
  take(secret: string): Promise<Value | undefined>;
}

export interface RecordsDeps {
  readonly store: Store;
  readonly seal: Seal;
  /** §21.2: the requests of one login are told as such. Undefined where nothing is traced. */
  readonly tracing?: Pick<Tracing, 'getActiveSpan'> | undefined;
}

/** What each record has beside its value. */
interface Envelope {
  readonly version?: number;
  /** Of the request that wrote it. */
  readonly trace?: TraceParent | undefined;
}

/** `name` is the key's second part; records live for `ttlSeconds`. */
export function createSealedRecords<Value extends object>(
  { store, seal, tracing }: RecordsDeps,
  name: string,
  ttlSeconds: number,
): SealedRecords<Value> {
  const buildKey = (secret: string) => buildOAuthKey(name, hashSha256(secret));

  const createEnvelope = (): Envelope => ({
    version: RECORD_VERSION,
    trace: tracing?.getActiveSpan()?.getContext(),
  });

  function read(key: string, sealed: string | undefined): Value | undefined {
    const text = sealed === undefined ? undefined : seal.open(key, sealed);
    if (text === undefined) return undefined;
    // What opens was written by this code: no other check of its shape is needed.
    const record = JSON.parse(text) as Value & Envelope;
    checkRecordVersion(record.version, 'A record of a login');
    if (record.trace !== undefined) tracing?.getActiveSpan()?.link(record.trace);
    return record;
  }

  return {
    async put(value) {
      const secret = generateSecret();
      const key = buildKey(secret);
      await store.set(
        key,
        seal.seal(key, JSON.stringify({ ...createEnvelope(), ...value })),
        ttlSeconds,
      );
      return secret;
    },
    async get(secret) {
      const key = buildKey(secret);
      return read(key, await store.get(key));
    },
    async take(secret) {
      const key = buildKey(secret);
      return read(key, await store.getAndDelete(key));
    },
  };
}
