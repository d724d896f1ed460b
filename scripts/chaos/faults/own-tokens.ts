// Logins end while they are in use, over two replicas: at one by `/oauth/revoke`, while both are called.
import { createHttpRequest } from '../../../test/support/gateway/http-request.ts';
import { createOwnTokenLogins, type Tokens } from '../../../test/support/oauth/own-tokens.ts';
import { startOpaqueProvider } from '../../../test/support/providers/opaque-provider.ts';
import { startRedis } from '../../../test/support/stores/redis.ts';
import { createStatelessPing, createUnauthorizedCall } from '../client/calls.ts';
import { parseObject, readObject } from '../client/refusals.ts';
import { createRequester, type Requester, type Response } from '../client/requester.ts';
import { createTally, type Tally } from '../client/tally.ts';
import { checkCount, checkFact, type Fault } from '../fault.ts';
import type { Stage } from '../stage.ts';

/** A login, and what is known of it: between the two moments either answer to a call is right. */
interface KnownLogin {
  readonly tokens: Tokens;
  isEnding: boolean;
  /** By performance.now(). */
  endedAt: number;
}

interface Replica {
  readonly requester: Requester;
  readonly endsHoldAfterMs: number;
}

const UNLIMITED = '1000000';
const OWN_TOKENS = {
  OIDC_AUDIENCE: '',
  OAUTH_STATE_SECRET: 'one-secret-for-all-of-the-replicas',
  DCR_RATE_LIMIT_MAX: UNLIMITED,
  DCR_GLOBAL_RATE_LIMIT_MAX: UNLIMITED,
  OAUTH_AUTHORIZE_RATE_LIMIT_MAX: UNLIMITED,
  OAUTH_CONSENT_RATE_LIMIT_MAX: UNLIMITED,
  OAUTH_CALLBACK_RATE_LIMIT_MAX: UNLIMITED,
  OAUTH_TOKEN_RATE_LIMIT_MAX: UNLIMITED,
  OAUTH_REVOKE_RATE_LIMIT_MAX: UNLIMITED,
};
/** Between two revocations. */
const PAUSE_MS = 20;

async function startReplicas(stage: Stage) {
  const redis = stage.closeAtEnd(await startRedis());
  const provider = stage.closeAtEnd(await startOpaqueProvider());
  // One address for both, as behind a load balancer: tokens are of a gateway, not of a replica.
  const env = {
    REDIS_URL: redis.url,
    BASE_URL: 'http://127.0.0.1:9',
    ...OWN_TOKENS,
    ...provider.env,
  };
  const replicas = await Promise.all([
    stage.startGateway(provider.issuer, env),
    stage.startGateway(provider.issuer, env),
  ]);
  const logins = createOwnTokenLogins(
    { request: createHttpRequest(replicas[0]?.url ?? '') },
    provider,
  );
  const called = replicas.map(({ url }, at) => ({
    requester: stage.closeAtEnd(createRequester(url, { connections: 64 })),
    // Logins are ended at the first.
    endsHoldAfterMs: at === 0 ? 0 : stage.endsHoldAfterMs,
  }));
  return { replicas, logins, called };
}

/** Records an answer, by what was known before the call and after it. */
async function call(
  { requester, endsHoldAfterMs }: Replica,
  login: KnownLogin,
  tally: Tally,
): Promise<void> {
  const wasOver = performance.now() - login.endedAt >= endsHoldAfterMs;
  const ping = createStatelessPing(login.tokens.access);
  const start = performance.now();
  const response = await requester.send(ping.request);
  const ms = performance.now() - start;
  const isLetIn = response.kind === 'answer' && ping.findFault(response) === undefined;
  if (isLetIn && !wasOver) return tally.record('good', ms);
  if (isRevoked(response) && (wasOver || login.isEnding)) return tally.record('refused', ms);
  if (isOverloaded(response)) return tally.record('refused', ms);
  const story = wasOver ? 'after the answer of the revocation' : 'a login that stands';
  tally.recordWrong(`${story}: ${JSON.stringify(response).slice(0, 300)}`, ms);
}

/** Its reason, too: any other 401 would throw somebody out wrongly. */
const isRevoked = (response: Response): boolean =>
  response.kind === 'answer' &&
  createUnauthorizedCall('token_revoked', undefined).findFault(response) === undefined;

const isOverloaded = (response: Response): boolean =>
  response.kind === 'answer' &&
  response.status === 503 &&
  readObject(parseObject(response.text) ?? {}, 'error') !== undefined;

const revoked: Fault = {
  name: 'tokens-revoked',
  title:
    'Logins are revoked at one replica, one after the other, while both are called with all of them.',
  figure:
    'No call is let in after the answer of the revocation (leased: 200 ms later at the other replica); no other login is refused.',
  async run(stage) {
    const { replicas, logins, called } = await startReplicas(stage);
    const count = stage.choose({ full: 200, short: 30 });
    const known: KnownLogin[] = [];
    for (let n = 0; n < 2 * count; n += 1) {
      const tokens = await logins.logIn({ sub: `user-${n}` });
      known.push({ tokens, isEnding: false, endedAt: Number.POSITIVE_INFINITY });
    }
    const tally = createTally();
    const pick = () => known[Math.floor(Math.random() * known.length)];
    let turn = 0;
    const load = stage.startLoad(stage.choose({ full: 400, short: 100 }), async () => {
      const login = pick();
      turn += 1;
      const replica = called[turn % called.length];
      if (login && replica) await call(replica, login, tally);
    });

    let answered = 0;
    for (const login of known.slice(0, count)) {
      await stage.pause(PAUSE_MS);
      const { client, access, refresh } = login.tokens;
      login.isEnding = true;
      const { status } = await logins.steps.post('/oauth/revoke', {
        token: answered % 2 === 0 ? refresh : access,
        client_id: client.id,
      });
      if (status === 200) {
        answered += 1;
        login.endedAt = performance.now();
      }
      // The very next call, at every replica.
      await Promise.all(called.map((replica) => call(replica, login, tally)));
    }
    await load.stop();
    for (const login of known) {
      for (const replica of called) await call(replica, login, tally);
    }
    return {
      tally,
      checks: [
        checkCount('revocations answered', answered, count),
        checkFact(
          'the processes still run',
          replicas.every(({ hasEnded }) => !hasEnded),
        ),
      ],
    };
  },
};

export const ownTokenFaults: readonly Fault[] = [revoked];
