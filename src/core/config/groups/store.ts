// Where the state of the service lies.
import { anyText, redisUrl } from '../rules.ts';
import { fixed, none, type Read, setting } from '../setting.ts';

/** `dataDir`: the folder of what this process keeps itself; with Redis, nothing but keys of `postern dev`. */
export type StoreConfig =
  | { readonly kind: 'embedded'; readonly dataDir: string }
  /** The URL may hold a password. */
  | { readonly kind: 'redis'; readonly url: string; readonly dataDir: string };

export const storeSettings = {
  redisUrl: setting({
    variable: 'REDIS_URL',
    rule: redisUrl,
    default: none,
    help: 'Redis or Valkey shared by all replicas: redis:// or rediss:// (TLS); ?cluster=true for Redis Cluster. Unset: the embedded store in DATA_DIR.',
    secret: true,
  }),
  dataDir: setting({
    variable: 'DATA_DIR',
    rule: anyText,
    default: fixed('./data'),
    help: 'Folder of the embedded store; one process at a time.',
  }),
};

export function readStoreConfig(read: Read): StoreConfig {
  const url = read(storeSettings.redisUrl);
  const dataDir = read(storeSettings.dataDir);
  return url === undefined ? { kind: 'embedded', dataDir } : { kind: 'redis', url, dataDir };
}
