// What lies in the store sealed: values that replicas change together, and records of a login under way, which are found
// by a secret that only its bearer knows.
import { generateSecret, hashSha256 } from '../../platform/ids.ts';
import type { TraceParent, Tracing } from '../../telemetry/tracing/tracing.ts';
import { buildOAuthKey, checkRecordVersion, RECORD_VERSION } from '../keys.ts';
import type { KeyValue } from '../store.ts';
import type { Seal } from './seal.ts';

/** Values that any replica reads and changes, sealed for their keys. One that no secret opens counts as none. */
export interface SealedValues {
  get(key: string): Promise<string | undefined>;
  /** The value that stands there then: another replica may have been faster. */
  getOrSet(key: string, text: string, ttlSeconds: number): Promise<string>;
  getAndDelete(key: string): Promise<string | undefined>;
  /**
   * Writes what `change` makes of the value, and begins its time anew; nothing where it makes nothing. It is called again
   * where another replica has changed the value meanwhile. Resolves to what it made last.
   */
  update(
    key: string,
    ttlSeconds: number,
    change: (text: string | undefined) => string | undefined,
  ): Promise<string | undefined>;
}

export interface SealedValuesDeps {
  readonly store: Pick<KeyValue, 'get' | 'getOrSet' | 'getAndDelete' | 'compareAndSet'>;
  readonly getSeal: () => Promise<Seal>;
}

export function createSealedValues({ store, getSeal }: SealedValuesDeps): SealedValues {
  const open = async (key: string, sealed: string | undefined): Promise<string | undefined> =>
    sealed === undefined ? undefined : (await getSeal()).open(key, sealed);

  const seal = async (key: string, text: string): Promise<string> =>
    (await getSeal()).seal(key, text);

  return {
    get: async (key) => open(key, await store.get(key)),
    async getOrSet(key, text, ttlSeconds) {
      const sealed = await seal(key, text);
      for (;;) {
        const standing = await store.getOrSet(key, sealed, ttlSeconds);
        if (standing === sealed) return text;
        const opened = await open(key, standing);
        if (opened !== undefined) return opened;
        if (await store.compareAndSet(key, standing, sealed, ttlSeconds)) return text;
      }
    },
    getAndDelete: async (key) => open(key, await store.getAndDelete(key)),
    async update(key, ttlSeconds, change) {
      for (;;) {
        const standing = await store.get(key);
        const text = change(await open(key, standing));
        if (text === undefined) return undefined;
        const sealed = await seal(key, text);
        if (await store.compareAndSet(key, standing, sealed, ttlSeconds)) return text;
      }
    },
  };
}

export interface SealedRecords<Value> {
  /** Stores a value; returns the new secret by which it is found. */
  put(value: Value): Promise<string>;
  get(secret: string): Promise<Value | undefined>;
  /** For one of many at the same moment; undefined for all others and ever after. */
  take(secret: string): Promise<Value | undefined>;
  /**
   * Writes what `change` makes of the value, for `keptSeconds` from then on; nothing where it makes nothing. It is called
   * again where another replica has changed the value meanwhile.
   */
  update(
    secret: string,
    keptSeconds: number,
    change: (value: Value | undefined) => Value | undefined,
  ): Promise<void>;
}

export interface RecordsDeps {
  readonly store: KeyValue;
  readonly seal: Seal;
  /** §21.2: the requests of one login are told as such. Undefined where nothing is traced. */
  readonly tracing?: Pick<Tracing, 'getActiveSpan'> | undefined;
}

/** What each record has beside its value. */
interface Envelope {
  readonly version: number;
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

  const write = (key: string, value: Value): string =>
    seal.seal(key, JSON.stringify({ ...createEnvelope(), ...value }));

  return {
    async put(value) {
      const secret = generateSecret();
      const key = buildKey(secret);
      await store.set(key, write(key, value), ttlSeconds);
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
    async update(secret, keptSeconds, change) {
      const key = buildKey(secret);
      for (;;) {
        const standing = await store.get(key);
        const changed = change(read(key, standing));
        if (changed === undefined) return;
        if (await store.compareAndSet(key, standing, write(key, changed), keptSeconds)) return;
      }
    },
  };
}
