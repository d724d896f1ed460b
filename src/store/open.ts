// Opens the store by the driver of its kind: a kind of `StoreConfig` without a row here does not compile.
import type { Config } from '../config/config.ts';
import type { ChosenStore, StoreConfig, StoreOf } from '../config/groups/store.ts';
import type { ClockAndLog } from '../platform/log.ts';
import type { Store } from './store.ts';

/** `Chosen` is its part of the settings (`STORE_KINDS` of src/config/groups/store.ts). */
export interface StoreDriver<Chosen extends ChosenStore = ChosenStore> {
  readonly kind: Chosen['kind'];
  /**
   * Loads its folder on demand: the package takes as long as all other modules. The database does not have to be reachable.
   *
   * @throws DataDirError if the folder of the embedded store cannot be used.
   */
  open(store: Chosen, settings: StoreSettings, surroundings: ClockAndLog): Promise<Store>;
}

/** Other settings that the store needs. */
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
 * Opens the configured store: Redis with `REDIS_URL`, else the embedded one.
 *
 * @throws DataDirError if the folder of the embedded store cannot be used.
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
