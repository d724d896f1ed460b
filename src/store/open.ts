// The drivers of the store, by their kind: another kind of `StoreConfig` without a row here does not compile.
import type { Config } from '../config/config.ts';
import type { ChosenStore, StoreConfig, StoreOf } from '../config/groups/store.ts';
import type { ClockAndLog } from '../platform/log.ts';
import type { Store } from './store.ts';

/** `Chosen` is what the settings say of it (`STORE_KINDS` of src/config/groups/store.ts). */
export interface StoreDriver<Chosen extends ChosenStore = ChosenStore> {
  readonly kind: Chosen['kind'];
  /**
   * Loads its folder only now: the package takes as long as all our own modules. The database does not have to be reachable.
   *
   * @throws DataDirError when the folder of the embedded store cannot be used.
   */
  open(store: Chosen, settings: StoreSettings, surroundings: ClockAndLog): Promise<Store>;
}

/** What concerns the store in settings that are not its own. */
type StoreSettings = Pick<Config, 'mcp' | 'limits'>;

export const defineStore = <Chosen extends ChosenStore>(driver: StoreDriver<Chosen>) => driver;

const STORE_DRIVERS: StoreDrivers<StoreConfig> = {
  embedded: defineStore<StoreOf<'embedded'>>({
    kind: 'embedded',
    async open({ dataDir }, { mcp }, watch) {
      const { openEmbeddedStore } = await import('./embedded/open.ts');
      return openEmbeddedStore({ ...watch, dataDir, sessionKeyPrefix: mcp.sessions.keyPrefix });
    },
  }),
  redis: defineStore<StoreOf<'redis'>>({
    kind: 'redis',
    async open({ url, reads }, { mcp, limits }, watch) {
      const { openRedisStore } = await import('./redis/open.ts');
      const counting = limits.enabled ? limits.counting : 'log';
      const sessionKeyPrefix = mcp.sessions.keyPrefix;
      return openRedisStore({ ...watch, url, counting, reads, sessionKeyPrefix });
    },
  }),
};

export type StoreDrivers<Chosen extends ChosenStore> = {
  readonly [Kind in Chosen['kind']]: StoreDriver<Extract<Chosen, { readonly kind: Kind }>>;
};

/**
 * The store that the settings ask for: Redis with `REDIS_URL`, else the embedded one.
 *
 * @throws DataDirError when the folder of the embedded store cannot be used.
 */
export const openStore = (
  config: StoreSettings & Pick<Config, 'store'>,
  surroundings: ClockAndLog,
): Promise<Store> => openByKind(STORE_DRIVERS, config.store, config, surroundings);

export const openByKind = <Kind extends string>(
  drivers: Readonly<Record<Kind, StoreDriver>>,
  store: ChosenStore & { readonly kind: Kind },
  settings: StoreSettings,
  surroundings: ClockAndLog,
): Promise<Store> => drivers[store.kind].open(store, settings, surroundings);
