// Stores records: values that replicas read, change together, take, and use once. They are sealed if they must not be read or
// forged by others.
import { generateSecret, hashSha256 } from '../platform/ids.ts';
import type { TraceContext, Tracing } from '../telemetry/tracing/tracing.ts';
import { buildOAuthKey } from './keys.ts';
import type { Seal } from './seal/seal.ts';
import type { KeyValue } from './store.ts';

/**
 * The decision of `update`, which resolves to `result`. A value is written with a new time to live; without one nothing is written.
 */
export type Change<Value, Result> =
  | { readonly result: Result }
  | { readonly value: Value; readonly ttlSeconds: number; readonly result: Result };

type Decide<Value, Result> = (
  value: Value | undefined,
) => Change<Value, Result> | Promise<Change<Value, Result>>;

/** The form of a value in the store. */
export interface RecordFormat<Value> {
  write(value: Value): string;
  /** Undefined for any other value. @throws Error for a record of a later version. */
  read(text: string): Value | undefined;
}

/** Without a seal records are plain. A record that no secret opens counts as absent. All methods may throw StoreUnavailable. */
export function createRecords<Value>(
  store: Omit<KeyValue, `${string}Listed` | `${string}Recent`>,
  format: RecordFormat<Value>,
  seal?: Seal | (() => Promise<Seal>),
) {
  async function open(key: string, text: string | undefined) {
    if (text === undefined) return undefined;
    const opened = seal === undefined ? text : (await getSeal(seal)).open(key, text);
    return opened === undefined ? undefined : format.read(opened);
  }

  async function write(key: string, value: Value) {
    const text = format.write(value);
    return seal === undefined ? text : (await getSeal(seal)).seal(key, text);
  }

  return {
    get: async (key: string) => open(key, await store.get(key)),
    put: async (key: string, value: Value, ttlSeconds: number) =>
      store.set(key, await write(key, value), ttlSeconds),
    /** Writes a record unless there is one. Resolves to the stored one: another replica may have written it first. */
    async create(key: string, value: Value, ttlSeconds: number): Promise<Value> {
      const text = await write(key, value);
      for (;;) {
        const standing = await store.getOrSet(key, text, ttlSeconds);
        if (standing === text) return value;
        const opened = await open(key, standing);
        if (opened !== undefined) return opened;
        if (await store.compareAndSet(key, standing, text, ttlSeconds)) return value;
      }
    },
    /** Reads and deletes a record atomically; with `isWanted` only if that returns true. */
    async take(key: string, isWanted?: (value: Value) => boolean) {
      if (isWanted === undefined) return open(key, await store.getAndDelete(key));
      const standing = await store.get(key);
      const value = await open(key, standing);
      if (standing === undefined || value === undefined || !isWanted(value)) return undefined;
      return (await store.compareAndDelete(key, standing)) ? value : undefined;
    },
    /** Writes the decision of `change`, which is called again if another replica has changed the record in the meantime. */
    async update<Result>(key: string, change: Decide<Value, Result>): Promise<Result> {
      for (;;) {
        const standing = await store.get(key);
        const changed = await change(await open(key, standing));
        if (!('value' in changed)) return changed.result;
        const text = await write(key, changed.value);
        if (await store.compareAndSet(key, standing, text, changed.ttlSeconds))
          return changed.result;
      }
    },
  };
}

const getSeal = (seal: Seal | (() => Promise<Seal>)) =>
  typeof seal === 'function' ? seal() : seal;

/** Marks something as used, on all replicas: of concurrent callers, exactly one gets true. */
export const claimOnce = (
  store: Pick<KeyValue, 'compareAndSet'>,
  key: string,
  ttlSeconds: number,
): Promise<boolean> => store.compareAndSet(key, undefined, '1', ttlSeconds);

export const textFormat: RecordFormat<string> = { write: (text) => text, read: (text) => text };

/** A text that is not a number reads as 0. */
export const numberFormat: RecordFormat<number> = {
  write: String,
  read: (text) => Number(text) || 0,
};

/** JSON with a version. `name` is the subject of errors. */
export const jsonFormat = <Value extends object>(name: string): RecordFormat<Value> => ({
  write: writeVersioned,
  read: (text) => readVersioned(text, name),
});

/**
 * Version of the shape of records, so that replicas of two minor versions work side by side (§16). Members that older replicas may
 * ignore do not change it.
 */
export const RECORD_VERSION = 1;

export const writeVersioned = (
  value: object,
  writeJson: (value: object) => string = JSON.stringify,
): string => writeJson({ ...value, version: RECORD_VERSION });

/**
 * Returns the value without its version. A sealed record was written by this code: no other check of its shape is needed.
 *
 * @throws Error as `checkRecordVersion`.
 */
export function readVersioned<Value extends object>(text: string, name: string): Value {
  const { version, ...value }: { readonly version?: unknown } = JSON.parse(text);
  if (version !== RECORD_VERSION) checkRecordVersion(version, name);
  return value as Value;
}

/** @throws Error for a record of a later version, or without one. */
export function checkRecordVersion(version: unknown, record: string): void {
  const number = Number(version);
  if (number >= 1 && number <= RECORD_VERSION) return;
  throw new Error(
    number > RECORD_VERSION
      ? `${record} was written by a later version of this service (${version})`
      : `${record} has no version that this service knows`,
  );
}

// Records of a login in progress, found by a secret that only its bearer knows.

export type SecretRecords<Value extends object> = ReturnType<typeof createSecretRecords<Value>>;

/** A store, and the seal of its records. */
export interface SealedStore {
  readonly store: KeyValue;
  readonly seal: Seal;
  /** §21.2: links the requests of one login. Undefined without tracing. */
  readonly tracing?: Pick<Tracing, 'getActiveSpan'> | undefined;
}

/** `name` is the key's second part; records live for `ttlSeconds`. */
export function createSecretRecords<Value extends object>(
  { store, seal, tracing }: SealedStore,
  name: string,
  ttlSeconds: number,
) {
  /** Adds the trace of the request that wrote the record. */
  const format: RecordFormat<Value> = {
    write: (value) => writeVersioned({ trace: tracing?.getActiveSpan()?.getContext(), ...value }),
    read(text) {
      const record = readVersioned<Value & { readonly trace?: TraceContext }>(
        text,
        'A record of a login',
      );
      if (record.trace !== undefined) tracing?.getActiveSpan()?.link(record.trace);
      return record;
    },
  };
  const records = createRecords(store, format, seal);
  const buildKey = (secret: string) => buildOAuthKey(name, hashSha256(secret));

  return {
    /** Stores a value, and returns the new secret that finds it. */
    async put(value: Value) {
      const secret = generateSecret();
      await records.put(buildKey(secret), value, ttlSeconds);
      return secret;
    },
    get: (secret: string) => records.get(buildKey(secret)),
    /** Takes a record: of concurrent callers, exactly one gets it. */
    take: (secret: string) => records.take(buildKey(secret)),
    update: <Result>(secret: string, change: Decide<Value, Result>) =>
      records.update(buildKey(secret), change),
  };
}
