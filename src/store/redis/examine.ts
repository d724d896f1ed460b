// Examines Redis for operators and for `postern doctor`.
import { Redis } from 'ioredis';
import { type Clock, pause } from '../../platform/clock.ts';
import { type ClockAndLog, describeCause } from '../../platform/log.ts';
import { buildGrantKey, buildListedGrantKey, buildOAuthKey, GRANT_LIST_KEY } from '../keys.ts';
import { type PageRequest, readPages } from '../page.ts';
import { SEAL_ENDING_LENGTH } from '../seal/seal.ts';
import type { RedisServerFacts } from '../store.ts';
import { type CommandRunner, createCommandRunner, readSetPage } from './command-runner.ts';
import { connectToRedis } from './connect.ts';
import { idleBackoff, type RedisClient } from './connection.ts';
import { openTrackingPair } from './tracking.ts';

interface ExaminedUse {
  /** Returns true if an older secret sealed the record with this ending; undefined if there is no older secret. */
  readonly isSealedBefore: ((ending: string) => boolean) | undefined;
  /** True if Redis should report changes (`STORE_READS=tracked`). */
  readonly isTracked: boolean;
}

const ATTEMPTS = 6;
const PAUSE_MS = 250;

/** @throws StoreUnavailable with a cause. */
export async function examineRedis(
  url: string,
  { isSealedBefore, isTracked }: ExaminedUse,
  watch: ClockAndLog,
) {
  const connection = connectToRedis(url, idleBackoff, watch);
  // The client's own reconnection attempts suffice: an additional one would outlive the examination.
  const patient = { ...connection, reconnect() {} };
  const commands = createCommandRunner(patient, watch);
  const ping = () => commands.run((client) => client.ping());

  /** Sentinels, TLS and distant networks take longer to connect than a command's deadline. */
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
      /** All servers that take writes; never empty. */
      servers: await Promise.all(servers.map(readServerFacts)),
      /** Milliseconds of the median PING. */
      latencyMs: await measureLatency(ping, watch.clock),
      /** A sample of records of logins, sealed as they are stored. */
      sealedRecords: (await Promise.all(servers.map(readSealedRecords))).flat(),
      /** Undefined if it was not requested, or the Redis user lacks the permission. */
      olderGrants: isSealedBefore && (await ifAllowed(countOlderGrants(commands, isSealedBefore))),
      /** The reason why Redis does not report changes; undefined if it does, or if that was not requested. */
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

/** Few logins are in progress at a time; a large store is not scanned as a whole. */
const MAX_SCANS = 50;
const KEYS_PER_SCAN = 1000;
const MAX_RECORDS = 50;
const SEALED = ['question', 'login', 'grant-code'].map((kind) => buildOAuthKey(kind, ''));

async function readSealedRecords(server: Redis): Promise<readonly string[]> {
  const keys: string[] = [];
  let cursor = '0';
  for (let scans = 0; scans < MAX_SCANS && keys.length < MAX_RECORDS; scans += 1) {
    const pattern = buildOAuthKey('*', '*');
    const scanned = await ifAllowed(server.scan(cursor, 'MATCH', pattern, 'COUNT', KEYS_PER_SCAN));
    if (scanned === undefined) break;
    const [next, found] = scanned;
    keys.push(...found.filter((key) => SEALED.some((prefix) => key.startsWith(prefix))));
    cursor = next;
    if (cursor === '0') break;
  }
  const records = await Promise.all(
    keys.slice(0, MAX_RECORDS).map((key) => ifAllowed(server.get(key))),
  );
  return records.filter((record) => typeof record === 'string');
}

// Facts about each server.

/** All servers that take writes; never empty. */
export const listServers = (client: RedisClient): readonly Redis[] =>
  'nodes' in client ? client.nodes('master') : [client];

const MODES = ['standalone', 'cluster', 'sentinel'] as const;

export async function readServerFacts(server: Redis): Promise<RedisServerFacts> {
  const info = parseInfo(await ifAllowed(server.info()));
  const [policy, save, appendOnly] = await Promise.all(
    ['maxmemory-policy', 'save', 'appendonly'].map(async (name) => {
      // Managed services do not allow CONFIG.
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
    mode: MODES.find((mode) => mode === info.get('redis_mode')),
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

/** Parses the `name:value` lines of INFO. */
const parseInfo = (text: string | undefined): ReadonlyMap<string, string> =>
  new Map(
    (text ?? '').split('\r\n').flatMap((line) => {
      const at = line.indexOf(':');
      return at < 0 ? [] : [[line.slice(0, at), line.slice(at + 1)] as const];
    }),
  );

// Counts the grants that an older secret sealed, for `postern doctor`: without any, the secret can be removed.

export interface GrantCount {
  readonly all: number;
  readonly older: number;
}

const PAGE = 500;
const LISTED = buildListedGrantKey('all', '');

/**
 * Reads only the last characters of each grant: they identify the secret, and a grant may have 20 KB.
 *
 * @throws StoreUnavailable
 */
async function countOlderGrants(
  commands: CommandRunner,
  isOlder: (ending: string) => boolean,
): Promise<GrantCount> {
  let all = 0;
  let older = 0;
  const readPage = (request: PageRequest) => readSetPage(commands, GRANT_LIST_KEY, request);
  for await (const entries of readPages(readPage, PAGE)) {
    const keys = entries.map(({ id }) => buildGrantKey(id.slice(LISTED.length)));
    const endings = await commands.run((client) =>
      Promise.all(keys.map((key) => client.getrange(key, -SEAL_ENDING_LENGTH, -1))),
    );
    // The list may contain expired grants.
    const standing = endings.filter((ending) => ending !== '');
    all += standing.length;
    older += standing.filter(isOlder).length;
  }
  return { all, older };
}
