// What Redis says of itself.
import type { Redis } from 'ioredis';
import type { RedisServerFacts } from '../store.ts';
import type { RedisClient } from './connection.ts';

/** Each that takes writes; never empty. */
export const listServers = (client: RedisClient): readonly Redis[] =>
  'nodes' in client ? client.nodes('master') : [client];

const MODES = new Set(['standalone', 'cluster', 'sentinel'] as const);

export async function readServerFacts(server: Redis): Promise<RedisServerFacts> {
  const info = parseInfo(await ifAllowed(server.info()));
  const [policy, save, appendOnly] = await Promise.all(
    ['maxmemory-policy', 'save', 'appendonly'].map((name) => readSetting(server, name)),
  );
  const valkey = info.get('valkey_version');
  const redis = info.get('redis_version');
  const version = valkey === undefined ? redis && `Redis ${redis}` : `Valkey ${valkey}`;
  const role = info.get('role');
  return {
    version,
    mode: [...MODES].find((mode) => mode === info.get('redis_mode')),
    role: role === undefined ? undefined : role === 'master' ? 'primary' : 'replica',
    evictionPolicy: policy ?? info.get('maxmemory_policy'),
    persistence: describePersistence(appendOnly, save),
  };
}

function describePersistence(
  appendOnly: string | undefined,
  save: string | undefined,
): RedisServerFacts['persistence'] {
  if (appendOnly === 'yes') return 'append-only file';
  if (save === undefined) return undefined;
  return save === '' ? 'none' : 'snapshots';
}

/** Undefined where CONFIG is not allowed, as on managed services. */
async function readSetting(server: Redis, name: string): Promise<string | undefined> {
  const answer: unknown = await ifAllowed(server.config('GET', name));
  const value: unknown = Array.isArray(answer) ? answer[1] : undefined;
  return typeof value === 'string' ? value : undefined;
}

export const ifAllowed = <Result>(asked: Promise<Result>): Promise<Result | undefined> =>
  asked.catch(() => undefined);

/** The lines `name:value` of INFO. */
const parseInfo = (text: string | undefined): ReadonlyMap<string, string> =>
  new Map(
    (text ?? '').split('\r\n').flatMap((line) => {
      const at = line.indexOf(':');
      return at < 0 ? [] : [[line.slice(0, at), line.slice(at + 1)] as const];
    }),
  );
