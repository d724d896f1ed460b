import type { Clock } from '../clock.ts';
import type { Config } from '../config/config.ts';
import type { Log } from '../log.ts';
import { openEmbeddedStore } from './embedded/open.ts';
import { openRedisStore } from './redis/open.ts';
import type { Store } from './store.ts';

/**
 * The store that the settings ask for: Redis with `REDIS_URL`, else the embedded one.
 *
 * @throws DataDirError when the folder of the embedded store cannot be used.
 */
export async function openStore(
  { redisUrl: url, dataDir, sessionKeyPrefix }: Config,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): Promise<Store> {
  return url === undefined
    ? openEmbeddedStore({ dataDir, sessionKeyPrefix, clock, log })
    : openRedisStore({ url, sessionKeyPrefix, clock, log });
}
