// How a server behind the gateway is reached: its transport, and what it learns of the caller.

import type { ProviderMetadata } from '../auth/provider-metadata.ts';
import type { Config } from '../config/config.ts';
import type { ConnectionParts } from '../connections/connections.ts';
import type { GetProviderToken } from '../endpoint/message.ts';
import type { Clock } from '../platform/clock.ts';
import type { Fetch } from '../platform/fetch-with-limits.ts';
import type { Log } from '../platform/log.ts';
import type { Seal } from '../store/seal/seal.ts';
import type { Store } from '../store/store.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import type { UpstreamConfig } from './config/upstream-config.ts';
import { bindConnections } from './connect/bind-connections.ts';
import { createLogins } from './connect/logins.ts';
import { type Credentials, openCredentials } from './credentials/credentials.ts';
import { createHttpUpstream } from './http/http-upstream.ts';
import { findInheritedFiles } from './stdio/inherited-files.ts';
import { createStdioReplicas } from './stdio/replicas.ts';
import { createStdioUpstream } from './stdio/stdio-upstream.ts';
import { createAnswerMemory } from './transport/answer-memory.ts';
import { createHeldStreams } from './transport/held-streams.ts';
import { createMessagePace } from './transport/message-pace.ts';
import type { Upstream } from './upstream.ts';
import { withholdRoots } from './wrap-upstream.ts';

export interface OpenUpstreamDeps {
  readonly store: Store;
  getSeal(): Promise<Seal>;
  readonly getProviderToken: GetProviderToken;
  readonly fetch: Fetch;
  /** Undefined without an issuer: then no token can be exchanged. */
  readonly metadata: ProviderMetadata | undefined;
  /** The environment of this process, of which stdio servers get a part. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Undefined where nobody can connect to a server: without OAUTH_MODE=broker, and in commands. */
  readonly connections?: ConnectionParts | undefined;
  readonly clock: Clock;
  readonly log: Log;
  /** Undefined where this process is none of several replicas. */
  readonly metrics?: Pick<Metrics, 'recordDroppedReplicaMessage'>;
  /** Called with the number of processes of a stdio server, at each change. */
  onProcessCount?(server: string, count: number): void;
}

export interface UpstreamOpener {
  /** Nothing has to be reachable. */
  openUpstream(config: UpstreamConfig): Upstream<UpstreamConfig>;
  /** By which servers learn who calls. */
  readonly credentials: Credentials;
}

export function createUpstreamOpener(config: Config, deps: OpenUpstreamDeps): UpstreamOpener {
  const { store, getSeal, clock, log, environment, metrics } = deps;
  const { keyPrefix, ttlSeconds } = config.mcp.sessions;
  const replicasDeps = { store, getSeal, clock, log, keyPrefix, ttlSeconds: ttlSeconds + 3600 };
  const { maxBytes } = config.upstreams;
  const answerMemory = createAnswerMemory(clock, maxBytes);
  const messagePace = createMessagePace(clock);
  const heldStreams = createHeldStreams(clock);
  const inheritedFiles = findInheritedFiles();
  const credentials = openCredentials({ ...deps, config });

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
    credentials,
    openUpstream(server) {
      const opened = withholdRoots(open(server), log);
      if (server.kind !== 'http' || server.auth.type !== 'oauth') return opened;
      const { name, url, auth } = server;
      return bindConnections(opened, createLogins({ name, url, auth }, deps.connections));
    },
  };

  function open(server: UpstreamConfig): Upstream<UpstreamConfig> {
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
      getHeaders: credentials.createGetHeaders(server),
      noteRefusal: credentials.createNoteRefusal(server),
      maxBytes,
      answerMemory,
      messagePace,
      heldStreams,
      metrics: store.isShared ? metrics : undefined,
      isSessionActive,
      outbound: config.outbound,
      sessionKeyPrefix: keyPrefix,
      sessionTtlSeconds: ttlSeconds,
    });
  }
}
