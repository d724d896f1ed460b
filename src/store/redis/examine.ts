// The description that Redis gives of itself, for operators and for `postern doctor`.
import { Redis } from 'ioredis';
import { type Clock, pause } from '../../platform/clock.ts';
import { type ClockAndLog, describeCause } from '../../platform/log.ts';
import { buildGrantKey, buildListedGrantKey, buildOAuthKey, GRANT_LIST_KEY } from '../keys.ts';
import { SEAL_ENDING_LENGTH } from '../seal/seal.ts';
import type { RedisServerFacts } from '../store.ts';
import { type CommandRunner, createCommandRunner, readSetPage } from './command-runner.ts';
import { connectToRedis } from './connect.ts';
import { idleBackoff, type RedisClient } from './connection.ts';
import { openTrackingPair } from './tracking.ts';

interface ExaminedUse {
  /** True of what an older secret sealed that ends so; undefined where there is none. */
  readonly isSealedBefore: ((ending: string) => boolean) | undefined;
  /** True where it is to tell of changes (`STORE_READS=tracked`). */
  readonly isTracked: boolean;
}

const ATTEMPTS = 6;
const PAUSE_MS = 250;

/** @throws StoreUnavailable with its cause. */
export async function examineRedis(
  url: string,
  { isSealedBefore, isTracked }: ExaminedUse,
  watch: ClockAndLog,
) {
  const connection = connectToRedis(url, idleBackoff, watch);
  // Its own attempts to connect do: one more beside them would go on after the end.
  const patient = { ...connection, reconnect() {} };
  const commands = createCommandRunner(patient, watch);
  const ping = () => commands.run((client) => client.ping());

  /** Sentinels, TLS and far networks take longer to connect than a command may take. */
  async function waitUntilUp() {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await ping();
        return;
      } catch (error) {
        if (attempt === ATTEMPTS) throw error;
        await pause(watch.clock, PAUSE_MS);
      }
    }
  }

  try {
    await waitUntilUp();
    const servers = listServers(connection.client);
    return {
      /** Each of its servers that takes writes; never empty. */
      servers: await Promise.all(servers.map(readServerFacts)),
      /** Milliseconds of the median PING. */
      latencyMs: await measureLatency(ping, watch.clock),
      /** Some records of logins, as they are stored: sealed. */
      sealedRecords: (await Promise.all(servers.map(readSealedRecords))).flat(),
      /** Undefined where nobody asked for it, or the user may not ask. */
      olderGrants: isSealedBefore && (await ifAllowed(countOlderGrants(commands, isSealedBefore))),
      /** Its reason not to tell of changes; undefined where it does tell, or nobody asked for it. */
      trackingFailure: isTracked ? await tryTracking(connection.client) : undefined,
    };
  } finally {
    commands.close();
  }
}

async function tryTracking(client: RedisClient) {
  if (!(client instanceof Redis)) return undefined;
  const pair = openTrackingPair(client, { onChange() {}, onError() {}, onEnd() {} });
  const failure = await pair.prepare().then(() => undefined, describeCause);
  pair.close();
  return failure;
}

const PINGS = 9;

async function measureLatency(ping: () => Promise<unknown>, clock: Clock) {
  const times: number[] = [];
  for (let sent = 0; sent < PINGS; sent += 1) {
    const start = clock.monotonic();
    await ping();
    times.push(clock.monotonic() - start);
  }
  return times.sort((one, other) => one - other)[Math.floor(PINGS / 2)] ?? 0;
}

/** Few logins are under way at a time; a large store is not read as a whole. */
const MAX_SCANS = 50;
const KEYS_PER_SCAN = 1000;
const MAX_RECORDS = 50;
const SEALED = new Set(['question', 'login', 'code'].map((kind) => buildOAuthKey(kind, '')));

async function readSealedRecords(server: Redis): Promise<readonly string[]> {
  const keys: string[] = [];
  let cursor = '0';
  for (let scans = 0; scans < MAX_SCANS && keys.length < MAX_RECORDS; scans += 1) {
    const pattern = buildOAuthKey('*', '*');
    const scanned = await ifAllowed(server.scan(cursor, 'MATCH', pattern, 'COUNT', KEYS_PER_SCAN));
    if (scanned === undefined) break;
    const [next, found] = scanned;
    keys.push(...found.filter((key) => [...SEALED].some((prefix) => key.startsWith(prefix))));
    cursor = next;
    if (cursor === '0') break;
  }
  const records = await Promise.all(
    keys.slice(0, MAX_RECORDS).map((key) => ifAllowed(server.get(key))),
  );
  return records.filter((record) => typeof record === 'string');
}

// Facts about each server.

/** Each that takes writes; never empty. */
export const listServers = (client: RedisClient): readonly Redis[] =>
  'nodes' in client ? client.nodes('master') : [client];

const MODES = new Set(['standalone', 'cluster', 'sentinel'] as const);

export async function readServerFacts(server: Redis): Promise<RedisServerFacts> {
  const info = parseInfo(await ifAllowed(server.info()));
  const [policy, save, appendOnly] = await Promise.all(
    ['maxmemory-policy', 'save', 'appendonly'].map(async (name) => {
      // Not allowed on managed services.
      const answer: unknown = await ifAllowed(server.config('GET', name));
      const value: unknown = Array.isArray(answer) ? answer[1] : undefined;
      return typeof value === 'string' ? value : undefined;
    }),
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

function describePersistence(appendOnly: string | undefined, save: string | undefined) {
  if (appendOnly === 'yes') return 'append-only file';
  if (save === undefined) return undefined;
  return save === '' ? 'none' : 'snapshots';
}

const ifAllowed = <Result>(asked: Promise<Result>) => asked.catch(() => undefined);

/** The lines `name:value` of INFO. */
const parseInfo = (text: string | undefined): ReadonlyMap<string, string> =>
  new Map(
    (text ?? '').split('\r\n').flatMap((line) => {
      const at = line.indexOf(':');
      return at < 0 ? [] : [[line.slice(0, at), line.slice(at + 1)] as const];
    }),
  );

// The number of grants that an older secret sealed, for `postern doctor`: the secret may go once there is none.

export interface GrantCount {
  readonly all: number;
  readonly older: number;
}

const PAGE = 500;
const LISTED = buildListedGrantKey('all', '');

/**
 * Only the last characters of each grant are read: they name the secret, and a grant may have 20 KB.
 *
 * @throws StoreUnavailable
 */
async function countOlderGrants(
  commands: CommandRunner,
  isOlder: (ending: string) => boolean,
): Promise<GrantCount> {
  let all = 0;
  let older = 0;
  let from: Awaited<ReturnType<typeof readSetPage>>['next'];
  do {
    const { entries, next } = await readSetPage(commands, GRANT_LIST_KEY, { from, limit: PAGE });
    const keys = entries.map(({ id }) => buildGrantKey(id.slice(LISTED.length)));
    const endings = await commands.run((client) =>
      Promise.all(keys.map((key) => client.getrange(key, -SEAL_ENDING_LENGTH, -1))),
    );
    // The list may name what has ended.
    const standing = endings.filter((ending) => ending !== '');
    all += standing.length;
    older += standing.filter(isOlder).length;
    from = next;
  } while (from !== undefined);
  return { all, older };
}
