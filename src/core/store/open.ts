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
  { store, mcp }: Pick<Config, 'store' | 'mcp'>,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): Promise<Store> {
  const shared = { sessionKeyPrefix: mcp.sessions.keyPrefix, clock, log };
  return store.kind === 'embedded'
    ? openEmbeddedStore({ dataDir: store.dataDir, ...shared })
    : openRedisStore({ url: store.url, ...shared });
}
