// The two checks of the gateway that a token passes, over a given key set.
import type { JsonWebKey } from 'node:crypto';
import { GatewayError } from '../../src/errors/gateway-error.ts';
import { createChallenge } from '../../src/http/endpoint/bearer.ts';
import { ACCESS_TOKEN, createTokenParser, verifySignature } from '../../src/logins/auth/jws.ts';
import { createKeySet } from '../../src/logins/auth/key-set.ts';
import { createAuthenticate, createTokenVerifier } from '../../src/logins/auth/token-verifier.ts';
import { type Clock, systemClock } from '../../src/platform/clock.ts';
import type { Log } from '../../src/platform/log.ts';
import { noMetrics } from '../../src/telemetry/metrics/metrics.ts';
import { AUDIENCE, ISSUER } from './signer.ts';

/** The result of a check: `accepted`, or where the token failed. Anything else is a fault. */
export type Verdict = 'accepted' | 'signature' | 'claims' | `fault: ${string}`;

export interface TokenChecks {
  /** Form and signature alone. */
  signature(jws: string): Promise<Verdict>;
  /** As a bearer token: the claims count, too. */
  bearer(token: string): Promise<Verdict>;
}

const MAX_TOKEN_BYTES = 16_384;

export function createTokenChecks(keys: readonly JsonWebKey[]): TokenChecks {
  const clock = createSkippingClock();
  const keySet = createKeySet(
    { fetch: async () => Response.json({ keys }), clock, log: noLog, metrics: noMetrics },
    {
      url: `${ISSUER}/jwks`,
      metadata: { issuer: ISSUER, get: () => Promise.reject(new Error('not needed')) },
    },
  );
  const rules = {
    issuer: ISSUER,
    baseUrl: AUDIENCE,
    audience: [AUDIENCE],
    audienceClaim: 'aud' as const,
    foreignClaims: [],
    isServerAudience: () => false,
    maxTokenBytes: MAX_TOKEN_BYTES,
    signatureMemory: 0,
    clockToleranceSeconds: 0,
  };
  const { verify } = createTokenVerifier(clock, keySet, rules);
  const authenticate = createAuthenticate(verify, createChallenge(AUDIENCE, 'proxy'));
  const parseToken = createTokenParser(MAX_TOKEN_BYTES, ACCESS_TOKEN);

  return {
    signature: (jws) => getVerdict(async () => verifySignature(parseToken(jws), keySet)),
    bearer: (token) =>
      getVerdict(async () =>
        authenticate({
          path: '/mcp',
          headers: { authorization: `Bearer ${token}`.trim() },
          clientIp: 'unknown',
        }),
      ),
  };
}

async function getVerdict(ask: () => Promise<unknown>): Promise<Verdict> {
  try {
    await ask();
    return 'accepted';
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) return `fault: ${thrown}`;
    if (thrown.row.status !== 401) return `fault: ${thrown.row.status} ${thrown.key}`;
    const aboutForm = thrown.key === 'invalid_token' || thrown.key === 'invalid_format';
    return aboutForm && !/payload|claim|valid yet/.test(thrown.message) ? 'signature' : 'claims';
  }
}

/** Moves on by ten seconds whenever it is read, so that no unknown kid has to wait for a refresh. */
function createSkippingClock(): Clock {
  let elapsed = 0;
  return {
    now: systemClock.now,
    monotonic: () => {
      elapsed += 10_000;
      return elapsed;
    },
    after(delay, task) {
      if (delay === 0) setImmediate(task);
      return () => {};
    },
  };
}

const noLog: Log = { error() {}, warn() {}, info() {}, debug() {}, isWritten: () => false };
