// REDIS_URL, or the folder of the embedded store.
import { constants, existsSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { getErrorCode } from '../../../core/errors/error-code.ts';
import { describeCause } from '../../../core/log.ts';
import { createLoginSeal } from '../../../core/seal/login-seal.ts';
import type { RedisExamination } from '../../../core/store/redis/examine.ts';
import type { RedisServerFacts } from '../../../core/store/store.ts';
import { toSentence } from '../../../core/text.ts';
import { type Finding, failure, ok, unknown, warning } from '../finding.ts';
import type { SettingsAtHand } from './settings-at-hand.ts';

export async function checkStore(settings: SettingsAtHand): Promise<readonly Finding[]> {
  const { store } = settings.config;
  return store.kind === 'embedded'
    ? [await checkFolder(store.dataDir)]
    : checkRedis(settings, store.url);
}

/** The first start makes it: what matters then is the folder around it. */
async function checkFolder(dataDir: string): Promise<Finding> {
  try {
    await access(findExisting(resolve(dataDir)), constants.R_OK | constants.W_OK | constants.X_OK);
    return ok('store', `The embedded store lies in ${dataDir}: one process can use it.`);
  } catch (error) {
    return failure(
      'store',
      `The folder ${dataDir} cannot be used (${getErrorCode(error) ?? String(error)}).`,
      {
        setting: 'DATA_DIR',
        remedy: 'set it to a folder that the user of the gateway can write.',
      },
    );
  }
}

const findExisting = (path: string): string =>
  existsSync(path) || dirname(path) === path ? path : findExisting(dirname(path));

async function checkRedis(
  { config, clock, log }: SettingsAtHand,
  url: string,
): Promise<readonly Finding[]> {
  // The driver takes as long to load as all the rest.
  const { examineRedis } = await import('../../../core/store/redis/examine.ts');
  let examination: RedisExamination;
  try {
    examination = await examineRedis(url, { clock, log });
  } catch (error) {
    return [explainUnreachable(describeCause(error))];
  }
  const { servers, latencyMs, sealedRecords } = examination;
  return [
    ...judgeServers(servers, url),
    judgeLatency(latencyMs),
    ...(await judgeSecrets(sealedRecords, config.oauth.stateSecret)),
  ];
}

/** What Redis or the system says, and what it means. */
const REASONS: readonly (readonly [sign: RegExp, remedy: string])[] = [
  [
    /WRONGPASS|NOAUTH|invalid password|invalid username/i,
    'correct the user and the password in REDIS_URL (percent-encode special characters).',
  ],
  [/NOPERM/, 'give the user in REDIS_URL the commands and keys that docs/operations.md lists.'],
  [/ENOTFOUND|EAI_AGAIN/, 'correct the host name.'],
  [/ECONNREFUSED/, 'start Redis, or correct the host and port.'],
  [
    /CERT|certificate|SELF_SIGNED|UNABLE_TO_/,
    'put the certificate authority into NODE_EXTRA_CA_CERTS.',
  ],
  [/SSL|EPROTO|wrong version/i, 'write redis:// for a server without TLS.'],
  [
    /cluster support disabled|Failed to refresh slots/i,
    'remove ?cluster=true if it is no Redis Cluster; otherwise check that its nodes can be reached.',
  ],
  [/sentinel/i, 'check the sentinels and the name of the primary in REDIS_URL.'],
];

function explainUnreachable(said: string): Finding {
  const [, remedy] = REASONS.find(([sign]) => sign.test(said)) ?? [];
  return failure('store', `Redis cannot be used: ${toSentence(said)}`, {
    why: 'Without it no session, login or registration works.',
    setting: 'REDIS_URL',
    remedy:
      remedy ??
      'check that Redis runs and can be reached from here; a server with TLS needs rediss://.',
  });
}

function judgeServers(servers: readonly RedisServerFacts[], url: string): readonly Finding[] {
  const [first] = servers;
  if (first === undefined) return [];
  return [
    judgeKind(servers, url),
    ...judgeRole(first),
    judgeEviction(servers),
    judgePersistence(first),
  ];
}

function judgeKind(servers: readonly RedisServerFacts[], url: string): Finding {
  const [first] = servers;
  const isCluster = /[?&]cluster=true/.test(url);
  const kind = isCluster ? 'Cluster' : /^rediss?\+sentinel:/.test(url) ? 'Sentinel' : 'one server';
  if (first?.mode === 'sentinel')
    return failure('store', 'REDIS_URL leads to a sentinel, not to Redis.', {
      setting: 'REDIS_URL',
      remedy: 'write redis+sentinel://<sentinels>/<name of the primary>.',
    });
  if (first?.mode === 'cluster' && !isCluster)
    return failure('store', 'REDIS_URL leads to a node of a Redis Cluster.', {
      why: 'Keys of other nodes are refused (MOVED).',
      setting: 'REDIS_URL',
      remedy: 'add ?cluster=true.',
    });
  const count = servers.length > 1 ? `, ${servers.length} primaries` : '';
  return ok('store', `${first?.version ?? 'Redis'} answers (${kind}${count}).`);
}

const judgeRole = ({ role }: RedisServerFacts): readonly Finding[] =>
  role === 'replica'
    ? [
        failure('store.role', 'This Redis is a replica, which takes no writes.', {
          setting: 'REDIS_URL',
          remedy: 'name the primary, or the sentinels, which know it.',
        }),
      ]
    : [];

function judgeEviction(servers: readonly RedisServerFacts[]): Finding {
  const policies = [...new Set(servers.map(({ evictionPolicy }) => evictionPolicy))];
  const wrong = policies.find((policy) => policy !== undefined && policy !== 'noeviction');
  if (wrong !== undefined)
    return warning(
      'store.eviction',
      `Redis may throw sessions away: maxmemory-policy is ${wrong}.`,
      {
        why: 'Each evicted session is a user who has to connect again; an evicted client has to register again.',
        remedy: 'in Redis, set maxmemory-policy noeviction.',
      },
    );
  return policies.includes(undefined)
    ? unknown('store.eviction', 'what Redis does when its memory is full: its user may not ask.', {
        remedy: 'see to it that maxmemory-policy is noeviction.',
      })
    : ok('store.eviction', 'Redis throws nothing away when its memory is full (noeviction).');
}

function judgePersistence({ persistence }: RedisServerFacts): Finding {
  switch (persistence) {
    case 'none':
      return warning('store.persistence', 'Redis keeps nothing on disk.', {
        why: 'After a restart of Redis, clients have to register again and users to log in again.',
        remedy: 'in Redis, set appendonly yes, or save.',
      });
    case undefined:
      return unknown(
        'store.persistence',
        'whether Redis keeps its data on disk: its user may not ask.',
      );
    default:
      return ok('store.persistence', `Redis keeps its data on disk (${persistence}).`);
  }
}

/** A call waits for one round trip, and no command may take longer than 250 ms. */
const SLOW_MS = 20;

function judgeLatency(latencyMs: number): Finding {
  const text = `${latencyMs < 10 ? latencyMs.toFixed(1) : Math.round(latencyMs)} ms`;
  return latencyMs <= SLOW_MS
    ? ok('store.latency', `Redis answers within ${text}.`)
    : warning('store.latency', `Redis takes ${text} to answer.`, {
        why: 'Every call waits for one such round trip, and a command that takes over 250 ms fails.',
        remedy: 'run Redis close to the gateway.',
      });
}

/** Which secret sealed a record can be seen without opening it. */
async function judgeSecrets(
  records: readonly string[],
  secret: Parameters<typeof createLoginSeal>[0],
): Promise<readonly Finding[]> {
  const seal = await createLoginSeal(secret);
  if (seal === undefined) return [];
  const foreign = records.filter((record) => seal.namesForeignSecret(record));
  if (foreign.length > 0)
    return [
      failure(
        'replicas.secret',
        `${foreign.length} of ${records.length} logins under way were sealed with a secret that is not here.`,
        {
          why: 'Another replica has another OAUTH_STATE_SECRET (or another service uses this Redis): logins fail now and then.',
          setting: 'OAUTH_STATE_SECRET',
          remedy:
            'set the same list of secrets on all replicas. To change the secret, put the new one first and keep the old one for an hour.',
        },
      ),
    ];
  return records.length > 0
    ? [
        ok(
          'replicas.secret',
          'Logins under way were sealed with the OAUTH_STATE_SECRET that is here.',
        ),
      ]
    : [
        unknown(
          'replicas.secret',
          'whether other replicas have the same OAUTH_STATE_SECRET: no login is under way.',
          { remedy: 'begin a login at the running gateway, and run this again within 10 minutes.' },
        ),
      ];
}
