// Settings of the store for the service's state.
import { anyText, listOf, oneOf, redisUrl, textWith } from '../rules.ts';
import { formatAddress, isSentinelUrl, requireSentinelUrl } from '../sentinel-url.ts';
import { defineSetting, type Read } from '../setting.ts';
import { consentSettings } from './clients.ts';
import { mode, type OAuthMode } from './provider.ts';

/** The kind of store: each has a row in `STORE_KINDS`, and one in `STORE_DRIVERS` in src/store/open.ts. */
export type StoreConfig = EmbeddedStoreConfig | RedisStoreConfig;

export interface ChosenStore {
  readonly kind: string;
  /** Folder for files of this process; with Redis, only for the keys of `postern dev`. */
  readonly dataDir: string;
}

interface EmbeddedStoreConfig extends ChosenStore {
  readonly kind: 'embedded';
}

export interface RedisStoreConfig extends ChosenStore {
  readonly kind: 'redis';
  /** The URL, which may contain a password. */
  readonly url: string;
  readonly reads: StoreReads;
}

/** Sessions and logins are read from Redis every time, or from a cache that Redis invalidates. */
export type StoreReads = 'direct' | 'tracked';

/** True if a `REDIS_URL` addresses a Redis Cluster. */
export const isClusterUrl = (url: string): boolean =>
  !isSentinelUrl(url) && new URL(url).searchParams.get('cluster') === 'true';

export const storeSettings = {
  redisUrl: defineSetting('REDIS_URL', redisUrl, {
    summary: 'Redis or Valkey, shared by all replicas.',
    details:
      '`rediss://` uses TLS; `?cluster=true` is for Redis Cluster. `redis+sentinel://` and `rediss+sentinel://` (TLS) name the sentinels of Redis Sentinel (port 26379 if none is given), the primary, and if needed the number of the database: `redis+sentinel://user:password@sentinel-1,sentinel-2,sentinel-3/mymaster/0`. User and password are those of Redis; `?sentinelPassword=…` is the password of the sentinels. If unset, one process keeps its state in DATA_DIR (the embedded store).',
    isSecret: true,
  }),
  reads: defineSetting('STORE_READS', oneOf('direct', 'tracked'), {
    default: 'direct',
    summary: 'How sessions and logins are read from Redis: `direct` reads them for each call.',
    details:
      '`tracked` needs a single Redis, or Sentinel: a process caches them until Redis reports a change, and only while it is sure to be notified. The end of a session or login takes effect everywhere within 200 ms instead of at the next call. An ACL has to allow the channel `__redis__:invalidate`. See [Store](operations/store.md#reads-that-are-remembered).',
  }),
  dataDir: defineSetting('DATA_DIR', anyText, {
    default: './data',
    summary: 'The folder of the embedded store.',
    details:
      'Only one process at a time can use it. The generated OAUTH_STATE_SECRET is also kept there, if you set none.',
  }),
};

/** Selects a kind of store from the settings, and describes its properties before it is open. */
export interface StoreKind<Chosen extends ChosenStore = ChosenStore> {
  /** Undefined if the settings do not select this kind of store. */
  read(read: Read): Chosen | undefined;
  /** True if other replicas may use the same store (`Store.isShared`). */
  readonly isShared: boolean;
  /** The location of the store's data, for operators. Contains no secrets: only the hosts of a URL. */
  describe(chosen: Chosen): string;
  /** Like `describe`, in a few words for the terminal. */
  describeBriefly(chosen: Chosen): string;
  /** An example configuration, from which the types of members are known. */
  readonly model: Chosen;
}

/** One entry per kind. */
export type StoreKinds<Chosen extends ChosenStore> = {
  readonly [Kind in Chosen['kind']]: StoreKind<Extract<Chosen, { readonly kind: Kind }>>;
};

/** The configuration of a store of that kind. */
export type StoreOf<Kind extends StoreConfig['kind']> = Extract<
  StoreConfig,
  { readonly kind: Kind }
>;

/** Checked in this order; the last one needs no setting. */
const STORE_KINDS: StoreKinds<StoreConfig> = {
  redis: {
    read(read) {
      const url = read(storeSettings.redisUrl);
      const dataDir = read(storeSettings.dataDir);
      return url === undefined
        ? undefined
        : { kind: 'redis', url, reads: read(storeSettings.reads), dataDir };
    },
    isShared: true,
    describe({ url }) {
      if (!isSentinelUrl(url)) return `Redis at ${new URL(url).host}`;
      const { sentinels, primaryName } = requireSentinelUrl(url);
      return `Redis primary ${primaryName}, named by the sentinels ${sentinels.map(formatAddress).join(', ')}`;
    },
    describeBriefly: () => 'in Redis',
    model: { kind: 'redis', url: '', reads: 'direct', dataDir: '' },
  },
  embedded: {
    read: (read) => ({ kind: 'embedded', dataDir: read(storeSettings.dataDir) }),
    isShared: false,
    describe: ({ dataDir }) => `embedded in ${dataDir}`,
    describeBriefly: ({ dataDir }) => dataDir,
    model: { kind: 'embedded', dataDir: '' },
  },
};

export const findStoreKind = ({ kind }: Pick<StoreConfig, 'kind'>): StoreKind<StoreConfig> =>
  STORE_KINDS[kind];

export const isSharedStore = (store: Pick<StoreConfig, 'kind'>): boolean =>
  findStoreKind(store).isShared;

const listKinds = (): readonly StoreKind<StoreConfig>[] => Object.values(STORE_KINDS);

export const readStoreConfig = (read: Read): StoreConfig => chooseStore(listKinds(), read);

/** The first of `kinds` that the settings select. */
export function chooseStore<Chosen extends ChosenStore>(
  kinds: readonly StoreKind<Chosen>[],
  read: Read,
): Chosen {
  for (const kind of kinds) {
    const chosen = kind.read(read);
    if (chosen !== undefined) return chosen;
  }
  throw new Error('The settings name no store');
}

/** A hand-written Config may name an unknown kind: the result is then the model of the store that needs no setting. */
export const findStoreModel = (kind: string | undefined): ChosenStore =>
  listKinds().find(({ model }) => model.kind === kind)?.model ?? STORE_KINDS.embedded.model;

// OAUTH_STATE_SECRET: seals the records of a login.

export type StateSecret =
  /** `OAUTH_STATE_SECRET`: the first secret seals, and all of them open. Never empty. */
  | { readonly kind: 'given'; readonly secrets: readonly string[] }
  /** Generated at the first start and kept in a file; for a single process. */
  | { readonly kind: 'kept'; readonly dataDir: string };

export const MIN_SECRET_BYTES = 32;

export const isLongEnough = (secretText: string): boolean =>
  Buffer.byteLength(secretText) >= MIN_SECRET_BYTES;

const secretList = listOf(
  textWith((text) => isLongEnough(text), 'a secret'),
  `at least ${MIN_SECRET_BYTES} bytes, for example the output of \`openssl rand -base64 48\`; separate several with commas`,
);

export const stateSecrets = defineSetting('OAUTH_STATE_SECRET', secretList, {
  computed: { text: 'kept in DATA_DIR', compute: () => undefined },
  summary: 'Encrypts the data that logins keep in the store.',
  details:
    'It also encrypts `requestState` and messages between replicas. All replicas need the same value: it is required with REDIS_URL if OAUTH_MODE=broker or OAUTH_CONSENT=page, or if a server in the configuration file has `identity`. With the embedded store, it is generated at the first start and kept in DATA_DIR. If you give several, the first encrypts and all decrypt: [Deploy](deploy.md#change-a-secret) has the steps to change it.',
  isSecret: true,
});

/** True if a login leaves records in the store that must be confidential and tamper-proof. */
export const needsStateSecret = (oauthMode: OAuthMode, consent: 'page' | 'off'): boolean =>
  oauthMode === 'broker' || consent === 'page';

export function readStateSecret(read: Read, store: StoreConfig): StateSecret | undefined {
  const secrets = read(stateSecrets);
  if (secrets !== undefined) return { kind: 'given', secrets };
  // Each replica would generate its own secret.
  if (!needsStateSecret(read(mode), read(consentSettings.kind)) || isSharedStore(store))
    return undefined;
  return { kind: 'kept', dataDir: store.dataDir };
}
