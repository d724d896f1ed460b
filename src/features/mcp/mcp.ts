// The MCP feature as a whole: both eras over one catalogue.
import type { Clock } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import type { Metrics } from '../../core/metrics/metrics.ts';
import type { Seal } from '../../core/seal/seal.ts';
import { channelKey } from '../../core/store/keys.ts';
import type { Store } from '../../core/store/store.ts';
import { createCallTool } from './calls/call-tool.ts';
import { createMethods } from './calls/methods.ts';
import { createCalls } from './calls/running-calls.ts';
import type { Catalog, ServiceInfo } from './catalog/catalog.ts';
import { createMcpEndpoint, type McpEndpoint } from './endpoint.ts';
import type { Era } from './protocol/revisions.ts';
import { createStreams } from './session/get-stream.ts';
import { createQuestions } from './session/questions.ts';
import { createReplicas } from './session/replicas.ts';
import { createSessionCodec } from './session/session-era.ts';
import { createSessions, type SessionLimits } from './session/sessions.ts';
import { createListen } from './stateless/listen.ts';
import { createRequestState } from './stateless/request-state.ts';
import { createStatelessCodec } from './stateless/stateless-era.ts';
import { createEventStreams } from './streaming/listening-streams.ts';
import { createUpdates } from './streaming/resource-updates.ts';

export interface McpOptions extends SessionLimits {
  readonly sessionKeyPrefix: string;
  /** `MCP_STREAMS`. */
  readonly mcpStreams: boolean;
  /** `MCP_USER_CALLS_MAX`; 0 = none. */
  readonly userCallsMax: number;
}

export interface McpParts {
  readonly catalog: Catalog;
  readonly service: ServiceInfo;
  readonly store: Store;
  /** For what goes through the client, or from replica to replica. */
  seal(): Promise<Seal>;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log: Log;
}

export interface Mcp {
  readonly endpoint: McpEndpoint;
  /** Live sessions in the store (the gauge). */
  countSessions(): Promise<number>;
  /** Ends what would wait on: open streams, whose clients come again elsewhere, and questions. */
  stopWaiting(): void;
  close(): void;
}

export function createMcp(options: McpOptions, parts: McpParts): Mcp {
  const { catalog, service, store, clock, metrics, log } = parts;
  const { sessionKeyPrefix: prefix, mcpStreams } = options;
  const sessions = createSessions(options, { store, clock, metrics, log });
  const stopSweeping = sessions.startSweeping();
  const replicas = createReplicas({
    store,
    seal: parts.seal,
    clock,
    log,
    metrics,
    channel: channelKey(prefix),
  });
  const questions = createQuestions({ replicas, store, clock, prefix });
  const eventStreams = createEventStreams(clock);
  const updates = createUpdates({ catalog, clock, log });
  const streams = mcpStreams
    ? createStreams({
        catalog,
        store,
        replicas,
        streams: eventStreams,
        updates,
        clock,
        log,
        prefix,
      })
    : undefined;
  const calls = createCalls({ maxPerUser: options.userCallsMax, clock });
  const methodsOf = (era: Era) =>
    createMethods(catalog, createCallTool({ catalog, metrics, clock }, era));

  return {
    endpoint: createMcpEndpoint({
      sessions,
      streams,
      metrics,
      codecs: {
        session: createSessionCodec({
          catalog,
          methods: methodsOf('session'),
          sessions,
          replicas,
          questions,
          calls,
          streams,
          service,
        }),
        stateless: createStatelessCodec({
          catalog,
          methods: methodsOf('stateless'),
          calls,
          requestState: createRequestState(parts.seal, clock),
          listen: mcpStreams
            ? createListen({ catalog, streams: eventStreams, updates, service })
            : undefined,
          service,
        }),
      },
    }),
    countSessions: sessions.countActive,
    stopWaiting() {
      eventStreams.close();
      questions.close();
    },
    close() {
      stopSweeping();
      replicas.close();
    },
  };
}
