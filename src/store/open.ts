import type { Config } from '../config/config.ts';
import type { ClockAndLog } from '../platform/log.ts';
import type { Store } from './store.ts';

/**
 * The store that the settings ask for: Redis with `REDIS_URL`, else the embedded one.
 *
 * @throws DataDirError when the folder of the embedded store cannot be used.
 */
export async function openStore(
  { store, mcp, limits }: Pick<Config, 'store' | 'mcp' | 'limits'>,
  { clock, log }: ClockAndLog,
): Promise<Store> {
  const { keyPrefix: sessionKeyPrefix } = mcp.sessions;
  // Each driver is loaded where it is used: its package takes as long as all our own modules.
  switch (store.kind) {
    case 'embedded': {
      const { openEmbeddedStore } = await import('./embedded/open.ts');
      return openEmbeddedStore({ dataDir: store.dataDir, sessionKeyPrefix, clock, log });
    }
    case 'redis': {
      const { openRedisStore } = await import('./redis/open.ts');
      const counting = limits.enabled ? limits.counting : 'log';
      return openRedisStore({
        url: store.url,
        counting,
        reads: store.reads,
        sessionKeyPrefix,
        clock,
        log,
      });
    }
  }
}
