// For the composition root: what keeps connections, where the gateway knows who somebody is without asking the provider.
import type { Config } from '../config/config.ts';
import type { Clock } from '../platform/clock.ts';
import type { Fetch } from '../platform/fetch-with-limits.ts';
import type { Log } from '../platform/log.ts';
import type { Seal } from '../store/seal/seal.ts';
import type { Bus, KeyValue } from '../store/store.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import type { ConnectionServer } from './connection.ts';
import type { ConnectionObserver, ConnectionParts } from './connections.ts';

export interface ConnectionsDeps {
  readonly store: KeyValue & Bus;
  /** Undefined where nothing is sealed. */
  readonly seal: Seal | undefined;
  /** For what operators name. */
  readonly fetch: Fetch;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'recordDroppedReplicaMessage'>;
  /** As the configuration file has it now; undefined for a server that is not in it, or has another `auth`. */
  readonly findServer: (name: string) => ConnectionServer | undefined;
  readonly observers: readonly ConnectionObserver[];
}

/** Undefined where clients get the provider's tokens. */
export function createConnections(
  { oauth }: Pick<Config, 'server' | 'oauth' | 'mcp'>,
  { seal }: ConnectionsDeps,
): (ConnectionParts & { close(): void }) | undefined {
  if (oauth.mode !== 'broker' || oauth.tokens.kind !== 'gateway') return undefined;
  if (seal === undefined) throw new Error('Connections need a secret');
  // The interface to build on; what stands behind it comes with the next commits.
  const state = { reason: undefined, scopes: undefined };
  return {
    connections: {
      getAccess: () => ({ kind: 'missing', ...state }),
      peekConnectionId: () => undefined,
      noteRefusal: async () => ({ kind: 'missing', ...state }),
      describe: async (_owner, server) => ({
        server: server.name,
        state: 'missing',
        account: undefined,
        since: undefined,
        scopes: undefined,
        problem: undefined,
      }),
      end: async () => ({ ended: false, problem: undefined }),
      endOfUser: async () => ({ ended: 0, failed: 0 }),
      endAtServer: async () => ({ ended: 0, failed: 0 }),
      count: async () => ({ active: 0, 'login needed': 0 }),
      onChange: () => {},
      close: () => {},
    },
    requests: {
      create: () => Promise.reject(new Error('not built yet')),
      find: async () => undefined,
      decline: async () => {},
      wait: async () => 'expired',
    },
    connecting: {
      begin: () => Promise.reject(new Error('not built yet')),
      finish: () => Promise.reject(new Error('not built yet')),
      getClientDocument: () => undefined,
    },
    close: () => {},
  };
}
