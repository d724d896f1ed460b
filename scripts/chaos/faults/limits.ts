// Many requests at once against a limit.
import type { Env } from '../../../test/support/gateway/process.ts';
import type { Issuer } from '../../../test/support/oauth/issuer.ts';
import { startRedis } from '../../../test/support/stores/redis.ts';
import { createTally } from '../client/tally.ts';
import { SHARE_OF_LIMIT } from '../counting.ts';
import { checkFact, type Fault } from '../fault.ts';
import type { Stage } from '../stage.ts';

const LIMIT = 100;
const AT_ONCE = 200;

interface LimitRow {
  readonly name: string;
  readonly title: string;
  /** URLs of the replicas. */
  start(stage: Stage, issuer: Issuer): Promise<readonly string[]>;
}

const ENV: Env = { MCP_RATE_LIMIT_MAX: String(LIMIT), TRUST_PROXY: 'all' };

const startReplicas = async (stage: Stage, issuer: Issuer, count: number) => {
  const redis = stage.closeAtEnd(await startRedis());
  const env = { ...ENV, REDIS_URL: redis.url };
  const replicas = await Promise.all(
    Array.from({ length: count }, () => stage.startGateway(issuer, env)),
  );
  return replicas.map(({ url }) => url);
};

const ROWS: readonly LimitRow[] = [
  {
    name: 'limit-embedded',
    title: '200 requests at once against a limit of 100: embedded store.',
    start: async (stage, issuer) => [(await stage.startGateway(issuer, ENV)).url],
  },
  {
    name: 'limit-one-replica',
    title: '200 requests at once against a limit of 100: one replica.',
    start: (stage, issuer) => startReplicas(stage, issuer, 1),
  },
  {
    name: 'limit-two-replicas',
    title: '200 requests at once against a limit of 100: two replicas, 100 each.',
    start: (stage, issuer) => startReplicas(stage, issuer, 2),
  },
];

export const limitFaults: readonly Fault[] = ROWS.map(({ name, title, start }) => ({
  name,
  title,
  figure:
    'Exactly 100 are admitted, each time (leased: one share of each other replica less at most).',
  async run(stage) {
    const issuer = await stage.startIssuer();
    const urls = await start(stage, issuer);
    const whole = createTally();
    const admitted: number[] = [];
    for (let round = 0; round < stage.choose({ full: 50, short: 2 }); round += 1) {
      const before = whole.count('good');
      const each = AT_ONCE / urls.length;
      // Each round comes from a different address.
      const headers = { 'x-forwarded-for': `10.0.${round >> 8}.${round & 255}` };
      const clients = await Promise.all(
        urls.map((url) =>
          stage.startClient(url, issuer, { sessions: 0, connections: each, tally: whole, headers }),
        ),
      );
      for (const client of clients) client.allow('limit');
      await Promise.all(
        clients.flatMap((client) => Array.from({ length: each }, client.callStateless)),
      );
      admitted.push(whole.count('good') - before);
    }
    const unused = (urls.length - 1) * SHARE_OF_LIMIT[stage.counting] * LIMIT;
    const least = LIMIT - unused;
    return {
      tally: whole,
      checks: [
        checkFact(
          unused === 0
            ? `exactly ${LIMIT} admitted each time`
            : `${least} to ${LIMIT} admitted each time`,
          admitted.every((count) => count >= least && count <= LIMIT),
          [...new Set(admitted)].join(', '),
        ),
      ],
    };
  },
}));
