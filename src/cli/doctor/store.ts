// Checks the store: Redis (REDIS_URL), or the folder of the embedded store.

import { constants, existsSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { RedisStoreConfig, StoreOf } from '../../config/groups/store.ts';
import { describeCode } from '../../platform/error-code.ts';
import { describeCause } from '../../platform/log.ts';
import { toSentence } from '../../platform/text.ts';
import type { GrantCount } from '../../store/redis/examine.ts';
import type { Seal } from '../../store/seal/seal.ts';
import { createLoginSeal, HOW_TO_CHANGE_SECRET } from '../../store/seal/secrets.ts';
import type { RedisServerFacts } from '../../store/store.ts';
import { defineCheck, failure, ok, unknown, warning } from './finding.ts';
import { findBrokerConfig, type SettingsAtHand } from './settings-at-hand.ts';

export const storeCheck = defineCheck({
  section: 'Store',
  async run(settings: SettingsAtHand) {
    const { store } = settings.config;
    // Checked without opening it.
    return store.kind === 'embedded' ? checkFolder(store) : checkRedis(settings, store);
  },
});

async function checkFolder({ dataDir }: StoreOf<'embedded'>) {
  try {
    // The first start creates the folder. Until then, its closest existing parent has to be writable.
    await access(findExisting(resolve(dataDir)), constants.R_OK | constants.W_OK | constants.X_OK);
    return ok('store', `The embedded store is in ${dataDir}: one process can use it.`);
  } catch (error) {
    return failure('store', `The folder ${dataDir} cannot be used (${describeCode(error)}).`, {
      setting: 'DATA_DIR',
      remedy: 'set it to a folder that the user of the gateway can write.',
    });
  }
}

const findExisting = (path: string): string =>
  existsSync(path) || dirname(path) === path ? path : findExisting(dirname(path));

async function checkRedis(
  { config, clock, log }: SettingsAtHand,
  { url, reads }: RedisStoreConfig,
) {
  // Loading the driver takes as long as loading everything else.
  const { examineRedis } = await import('../../store/redis/examine.ts');
  const { stateSecret } = config.oauth;
  const seal = await createLoginSeal(stateSecret);
  const hasOlder = stateSecret?.kind === 'given' && stateSecret.secrets.length > 1;
  const isTracked = reads === 'tracked';
  const isSealedBefore =
    hasOlder && seal ? (ending: string) => !seal.isSealedByFirst(ending) : undefined;
  const use = { isTracked, isSealedBefore };
  const examination = await examineRedis(url, use, { clock, log }).catch((error: unknown) =>
    explainUnreachable(describeCause(error), url),
  );
  if ('status' in examination) return examination;
  const { servers, latencyMs, sealedRecords, olderGrants, trackingFailure } = examination;
  const [first] = servers;
  const latency = `${latencyMs < 10 ? latencyMs.toFixed(1) : Math.round(latencyMs)} ms`;
  return [
    ...(first === undefined
      ? []
      : [
          judgeKind(first, servers.length, url),
          first.role === 'replica' &&
            failure('store.role', 'This Redis is a replica, which accepts no writes.', {
              setting: 'REDIS_URL',
              remedy: 'use the primary, or the sentinels, which know it.',
            }),
          judgeEviction(servers),
          judgePersistence(first),
        ]),
    latencyMs <= SLOW_MS
      ? ok('store.latency', `Redis answers within ${latency}.`)
      : warning('store.latency', `Redis takes ${latency} to answer.`, {
          why: 'Every call waits for one such round trip, and a command that takes over 250 ms fails.',
          remedy: 'run Redis close to the gateway.',
        }),
    isTracked && judgeTracking(trackingFailure),
    seal && judgeLogins(sealedRecords, seal),
    hasOlder && findBrokerConfig(config) !== undefined && judgeGrants(olderGrants),
  ];
}

const judgeTracking = (refusal: string | undefined) =>
  refusal === undefined
    ? ok('store.tracking', 'Redis reports changes, as STORE_READS=tracked requires.')
    : warning(
        'store.tracking',
        'Redis does not report changes, so STORE_READS=tracked has no effect.',
        {
          why: `Sessions and logins are read for each call, as with STORE_READS=direct. Redis says: ${toSentence(refusal)}`,
          setting: 'STORE_READS',
          remedy:
            'allow the user of REDIS_URL the commands CLIENT ID and CLIENT TRACKING and the channel __redis__:invalidate (Redis 6 or later; there +client|id +client|tracking are not in +@all -@dangerous), or set STORE_READS=direct.',
        },
      );

/** Messages of Redis or the system, and their meaning. */
const REASONS: readonly (readonly [sign: RegExp, what: string, remedy: string])[] = [
  [
    /NOAUTH/,
    'Redis requires a password.',
    'set REDIS_URL=redis://:password@host:6379 (percent-encode special characters).',
  ],
  [
    /WRONGPASS|invalid password|invalid username/i,
    'Redis does not accept the user or the password.',
    'set REDIS_URL=redis://user:password@host:6379, or redis://:password@host:6379 without a user (percent-encode special characters).',
  ],
  [
    /NOPERM/,
    'The Redis user lacks permissions that the gateway needs.',
    'give the user in REDIS_URL the commands and keys that docs/operations/store.md lists.',
  ],
  [
    /DB index is out of range/,
    'Redis does not have the database that the address names at its end.',
    'write one of 0 to 15, as in redis://host:6379/0; Redis has 16 unless its setting databases says otherwise.',
  ],
  [
    /ENOTFOUND|EAI_AGAIN/,
    'The host name of Redis cannot be resolved here (DNS).',
    'correct the host name.',
  ],
  [
    /ECONNREFUSED/,
    'Nothing listens at the address of Redis.',
    'start Redis, or correct the host and port.',
  ],
  [
    /CERT|certificate|SELF_SIGNED|UNABLE_TO_/,
    'The TLS certificate of Redis is not accepted.',
    'start the gateway with NODE_EXTRA_CA_CERTS=/path/to/ca.pem if the certificate authority is your own (in the environment, not in .env).',
  ],
  [
    /SSL|EPROTO|wrong version/i,
    'Redis does not speak TLS there.',
    'write redis:// instead of rediss://.',
  ],
  [
    /cluster support disabled|Failed to refresh slots/i,
    'Redis does not answer as a cluster.',
    'remove ?cluster=true if it is no Redis Cluster; otherwise check that its nodes can be reached.',
  ],
  [
    /sentinel/i,
    'The sentinels name no primary.',
    'check the sentinels and the name of the primary: REDIS_URL=redis+sentinel://host:26379,host:26379/name',
  ],
];

function explainUnreachable(said: string, url: string) {
  // A server with TLS does not respond to plain connections, and vice versa.
  const silence = /^rediss/.test(url)
    ? 'check that Redis runs and can be reached from here. If it has no TLS, write redis:// instead of rediss://.'
    : 'check that Redis runs and can be reached from here. If it has TLS, write rediss:// instead of redis://.';
  const [, what = 'Redis does not answer.', remedy = silence] =
    REASONS.find(([sign]) => sign.test(said)) ?? [];
  return failure('store', what, {
    why: `Without it no session, login or registration works. It says: ${toSentence(said.replace(/^Redis does not answer: /, ''))}`,
    setting: 'REDIS_URL',
    remedy,
  });
}

function judgeKind({ mode, version }: RedisServerFacts, primaries: number, url: string) {
  const isCluster = /[?&]cluster=true/.test(url);
  const kind = isCluster ? 'Cluster' : /^rediss?\+sentinel:/.test(url) ? 'Sentinel' : 'one server';
  if (mode === 'sentinel')
    return failure('store', 'REDIS_URL leads to a sentinel, not to Redis.', {
      setting: 'REDIS_URL',
      remedy:
        'set REDIS_URL=redis+sentinel://host:26379,host:26379/name, with the name of the primary.',
    });
  if (mode === 'cluster' && !isCluster)
    return failure('store', 'REDIS_URL leads to a node of a Redis Cluster.', {
      why: 'Keys of other nodes are refused (MOVED).',
      setting: 'REDIS_URL',
      remedy: 'add ?cluster=true.',
    });
  const count = primaries > 1 ? `, ${primaries} primaries` : '';
  return ok('store', `${version ?? 'Redis'} answers (${kind}${count}).`);
}

function judgeEviction(servers: readonly RedisServerFacts[]) {
  const policies = [...new Set(servers.map(({ evictionPolicy }) => evictionPolicy))];
  const wrong = policies.find((policy) => policy !== undefined && policy !== 'noeviction');
  if (wrong !== undefined)
    return warning('store.eviction', `Redis may evict sessions: maxmemory-policy is ${wrong}.`, {
      why: 'Every evicted session forces a user to connect again, and an evicted client has to register again.',
      remedy:
        'put maxmemory-policy noeviction into redis.conf, or type: redis-cli config set maxmemory-policy noeviction',
    });
  return policies.includes(undefined)
    ? unknown(
        'store.eviction',
        'what Redis does when its memory is full: its user has no permission to ask.',
        {
          remedy: 'make sure that maxmemory-policy is noeviction.',
        },
      )
    : ok('store.eviction', 'Redis evicts nothing when its memory is full (noeviction).');
}

function judgePersistence({ persistence }: RedisServerFacts) {
  switch (persistence) {
    case 'none':
      return warning('store.persistence', 'Redis keeps nothing on disk.', {
        why: 'After a restart of Redis, clients have to register again and users to log in again.',
        remedy: 'put appendonly yes into redis.conf, or type: redis-cli config set appendonly yes',
      });
    case undefined:
      return unknown(
        'store.persistence',
        'whether Redis keeps its data on disk: its user has no permission to ask.',
        {
          remedy: 'make sure that appendonly is yes.',
        },
      );
    default:
      return ok('store.persistence', `Redis keeps its data on disk (${persistence}).`);
  }
}

/** A call waits for one round trip, and no command may take longer than 250 ms. */
const SLOW_MS = 20;

// Determines which of the secrets in OAUTH_STATE_SECRET sealed a record, which is visible without opening the record.

/** A sample of records of unfinished logins. Without any, other replicas remain unknown; a single process has none. */
function judgeLogins(records: readonly string[], seal: Seal) {
  if (records.length === 0) return undefined;
  const foreign = records.filter((record) => seal.namesForeignSecret(record));
  return foreign.length > 0
    ? failure(
        'replicas.secret',
        `${foreign.length} of ${records.length} logins in progress were encrypted with a secret that is not configured here.`,
        {
          why: 'Another replica has another OAUTH_STATE_SECRET (or another service uses this Redis): logins fail occasionally.',
          setting: 'OAUTH_STATE_SECRET',
          remedy: `set the same list of secrets on all replicas. ${HOW_TO_CHANGE_SECRET}`,
        },
      )
    : ok(
        'replicas.secret',
        'Logins in progress were encrypted with the OAUTH_STATE_SECRET configured here.',
      );
}

const GRANTS_CHECK = 'store.secrets';

/** With several secrets: whether the older ones can be removed. */
function judgeGrants(count: GrantCount | undefined) {
  if (count === undefined)
    return unknown(
      GRANTS_CHECK,
      'how many logins are still encrypted with an older OAUTH_STATE_SECRET: the Redis user has no permission to ask.',
      {
        setting: 'OAUTH_STATE_SECRET',
        remedy:
          'keep the older secrets for OAUTH_REFRESH_TTL_SECONDS after you put the new one first.',
      },
    );
  const { all, older } = count;
  return older > 0
    ? ok(
        GRANTS_CHECK,
        `${older} of ${all} logins are still encrypted with an older OAUTH_STATE_SECRET.`,
        {
          why: 'Each is encrypted again when its client refreshes. Until then keep the older secrets: without them these users have to log in again.',
        },
      )
    : ok(
        GRANTS_CHECK,
        `No login needs an older OAUTH_STATE_SECRET (${all} are encrypted with the first). You can remove the others a day after you put the first one first.`,
      );
}
