// §5: authentication, put together: key set → token verifier → bearer token check.

import type { Config } from '../config/config.ts';
import type { ProviderConfig, RequiredAuthConfig } from '../config/groups/provider.ts';
import type { UserContext } from '../endpoint/message.ts';
import type { Clock } from '../platform/clock.ts';
import type { Fetch } from '../platform/fetch-with-limits.ts';
import type { Log } from '../platform/log.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import {
  type AuthRequest,
  type BearerDeps,
  createAuthenticate,
  createChallenge,
  type GetChallenge,
  instrumentAuthenticate,
} from './bearer.ts';
import { listForeignClaims } from './claims.ts';
import { createKeySet, type KeySet, type KeySetFacts } from './key-set.ts';
import { createProviderMetadata, type ProviderMetadata } from './provider-metadata.ts';
import { createTokenVerifier, type TokenInspection } from './token-verifier.ts';

export interface Auth {
  /**
   * A promise only where a key has to be fetched first.
   *
   * @throws GatewayError with a reason of §7.1, or `key_set_unavailable`, at once or by the promise.
   */
  readonly authenticate: (
    request: AuthRequest,
    beforeFetch?: () => Promise<void>,
  ) => UserContext | undefined | Promise<UserContext>;
  /**
   * What `authenticate` would say of a token whose signature is good, judged by form and claims
   * alone, by the same rules. For tokens that came from the provider itself; never to let anybody in.
   */
  readonly inspectToken: (token: string) => TokenInspection;
  /** Headers of a 401 at a path; undefined when nobody has to log in. */
  readonly getChallenge: GetChallenge | undefined;
  /** Undefined when nobody has to log in. */
  readonly describeKeySet: (() => KeySetFacts) | undefined;
  readonly readiness: Readonly<Record<string, () => Promise<void>>>;
  close(): void;
}

/** `AUTH_REQUIRED=false` (§5.5): no caller has a user context, and there is no key set to wait for. */
const disabledAuth: Auth = {
  authenticate: () => undefined,
  inspectToken: () => ({ sub: undefined, problem: undefined }),
  getChallenge: undefined,
  describeKeySet: undefined,
  readiness: {},
  close() {},
};

interface AuthDeps {
  readonly metadata: ProviderMetadata;
  /** `BASE_URL`. */
  readonly baseUrl: string;
  readonly getChallenge: GetChallenge;
  /** Told of each refusal of a token; nobody is unless given. */
  readonly onRefusal?: BearerDeps['onRefusal'];
  /** Whether a token may name it, beside `OIDC_AUDIENCE`. */
  readonly isServerAudience: (audience: string) => boolean;
  readonly maxTokenBytes: number;
  readonly fetch: Fetch;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Without metrics nothing is timed. */
  readonly hasMetrics: boolean;
  /** In place of the provider's own. */
  readonly keySet: KeySet | undefined;
}

export function createAuth(config: RequiredAuthConfig, deps: AuthDeps): Auth {
  const { provider, clockToleranceSeconds, signatureMemory } = config;
  const { getChallenge, maxTokenBytes, clock, metrics } = deps;
  const keySet = deps.keySet ?? createKeySet({ url: provider.jwksUrl, ...deps });
  const verifier = createTokenVerifier({
    keySet,
    issuer: provider.issuer,
    baseUrl: deps.baseUrl,
    audience: provider.audience,
    audienceClaim: provider.audienceClaim,
    foreignClaims: listForeignClaims(provider),
    isServerAudience: deps.isServerAudience,
    maxTokenBytes,
    signatureMemory,
    clockToleranceSeconds,
    clock,
  });
  const authenticate = createAuthenticate({
    verify: verifier.verify,
    getChallenge,
    onRefusal: deps.onRefusal,
  });
  keySet.start();
  return {
    authenticate: deps.hasMetrics
      ? instrumentAuthenticate(authenticate, metrics, clock)
      : authenticate,
    inspectToken: verifier.inspect,
    getChallenge,
    describeKeySet: keySet.describe,
    readiness: {
      async keySet() {
        if (!keySet.isFetched) throw new Error('The key set was never fetched');
      },
    },
    close: keySet.close,
  };
}

// For the composition root: what is known of the provider, and who is let in by its tokens.

/** Provider metadata and authentication. */
export function createProviderAccess(
  { server, http, auth, oauth }: Config,
  {
    isServer,
    ...deps
  }: Omit<AuthDeps, 'metadata' | 'baseUrl' | 'getChallenge' | 'maxTokenBytes' | 'hasMetrics'> & {
    readonly isServer: (name: string) => boolean;
  },
): { readonly metadata: ProviderMetadata | undefined; readonly auth: Auth } {
  const openMetadata = ({ issuer }: ProviderConfig) => createProviderMetadata({ issuer, ...deps });
  if (!auth.required) {
    return { metadata: oauth.provider && openMetadata(oauth.provider), auth: disabledAuth };
  }
  const metadata = openMetadata(auth.provider);
  return {
    metadata,
    auth: createAuth(auth, {
      ...deps,
      metadata,
      baseUrl: server.baseUrl,
      getChallenge: createChallenge(server.baseUrl, oauth.mode, isServer),
      maxTokenBytes: http.maxTokenBytes,
      hasMetrics: server.metricsEnabled,
    }),
  };
}
