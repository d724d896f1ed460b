// How a server behind the gateway is reached: its transport, and what it learns of the caller.

import { createProviderEndpoints, type ProviderMetadata } from '../auth/provider-metadata.ts';
import type { Config } from '../config/config.ts';
import type { UpstreamConfig } from '../config/file/gateway-file.ts';
import { createExchangeToken, type ExchangeToken } from '../oauth/provider/exchange-token.ts';
import { createProviderApi } from '../oauth/provider/provider-api.ts';
import type { Clock } from '../platform/clock.ts';
import type { Fetch } from '../platform/fetch-with-limits.ts';
import type { Log } from '../platform/log.ts';
import type { Seal } from '../store/seal/seal.ts';
import type { Store } from '../store/store.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import { createCredentials } from './credentials/credentials.ts';
import { createIdentity, type Identity } from './credentials/identity.ts';
import { createIdentityKeys } from './credentials/identity-keys.ts';
import { createHttpUpstream } from './http/http-upstream.ts';
import { findInheritedFiles } from './stdio/inherited-files.ts';
import { createStdioReplicas } from './stdio/replicas.ts';
import { createStdioUpstream } from './stdio/stdio-upstream.ts';
import { createAnswerMemory } from './transport/answer-memory.ts';
import { createMessagePace } from './transport/message-pace.ts';
import type { Upstream } from './upstream.ts';
import { withholdRoots } from './wrap-upstream.ts';

export interface OpenUpstreamDeps {
  readonly store: Store;
  getSeal(): Promise<Seal>;
  readonly fetch: Fetch;
  /** Undefined without an issuer: then no token can be exchanged. */
  readonly metadata: ProviderMetadata | undefined;
  /** The environment of this process, of which stdio servers get a part. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly log: Log;
  /** Undefined where this process is none of several replicas. */
  readonly metrics?: Pick<Metrics, 'recordDroppedReplicaMessage'>;
  /** Called with the number of processes of a stdio server, at each change. */
  onProcessCount?(server: string, count: number): void;
}

export interface UpstreamOpener {
  /** Nothing has to be reachable. */
  openUpstream(config: UpstreamConfig): Upstream;
  /** What servers with `identity` are told who calls by. */
  readonly identity: Identity;
}

export function createUpstreamOpener(config: Config, deps: OpenUpstreamDeps): UpstreamOpener {
  const { store, getSeal, clock, log, environment, metrics } = deps;
  const { keyPrefix, ttlSeconds } = config.mcp.sessions;
  const replicasDeps = { store, getSeal, clock, log, keyPrefix, ttlSeconds: ttlSeconds + 3600 };
  const { baseUrl } = config.server;
  const { maxBytes } = config.upstreams;
  const answerMemory = createAnswerMemory(clock, maxBytes);
  const messagePace = createMessagePace(clock);
  const inheritedFiles = findInheritedFiles();
  const identity = createIdentity({
    baseUrl,
    keys: createIdentityKeys({ store, getSeal, clock, log }),
    clock,
  });
  const exchangeToken = createExchange(config, deps);

  /** While the store cannot say, it is. */
  async function isSessionActive(sessionId: string): Promise<boolean> {
    try {
      const access = { sessionId, owner: undefined, slideSeconds: undefined };
      const { session } = await store.admitRequest([], access);
      return 'failure' in session || session.record !== undefined;
    } catch {
      return true;
    }
  }

  return {
    identity,
    openUpstream: (server) => withholdRoots(open(server), log),
  };

  function open(server: UpstreamConfig): Upstream {
    if (server.kind === 'stdio') {
      return createStdioUpstream(server, {
        clock,
        log,
        maxBytes,
        answerMemory,
        messagePace,
        environment,
        inheritedFiles,
        isSessionActive,
        ...(metrics !== undefined &&
          store.isShared && {
            openReplicas: (onUpdate: (keyId: string, uri: string) => void) =>
              createStdioReplicas(server, { ...replicasDeps, metrics }, onUpdate),
          }),
        onProcessCount: (count) => deps.onProcessCount?.(server.name, count),
      });
    }
    return createHttpUpstream(server, {
      clock,
      log,
      store,
      getSeal,
      getHeaders: createCredentials(server, { identity, exchangeToken, clock, log }),
      maxBytes,
      answerMemory,
      messagePace,
      isSessionActive,
      outbound: config.outbound,
      sessionKeyPrefix: keyPrefix,
      sessionTtlSeconds: ttlSeconds,
    });
  }
}

/** The provider's token endpoint, by the gateway's own client (RFC 8693). */
function createExchange({ oauth }: Config, { metadata, fetch }: OpenUpstreamDeps): ExchangeToken {
  if (metadata === undefined || oauth.provider === undefined) {
    return async () => ({ kind: 'refused', reason: 'there is no provider: set OIDC_ISSUER' });
  }
  return createExchangeToken({
    providerClient: oauth.providerClient,
    subjectTokenType: oauth.provider.accessToken,
    endpoints: createProviderEndpoints(oauth.endpoints, metadata),
    api: createProviderApi(fetch),
  });
}
