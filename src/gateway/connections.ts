// A part of the composition root: users' connections to servers, where clients get the gateway's own tokens.
import type { Config } from '../config/config.ts';
import type { ConnectionParts } from '../connections/connections.ts';
import { type ConnectionsDeps, createConnections } from '../connections/create-connections.ts';
import { createOperatedConnections } from '../connections/for-operators.ts';
import { auditConnections } from '../connections/observers/audit-connections.ts';
import {
  createCountConnections,
  measureRefreshes,
} from '../connections/observers/measure-connections.ts';
import type { OutboundNetwork } from '../platform/outbound/outbound-network.ts';
import { createPublicNetwork, type Network } from '../platform/outbound/public-network.ts';
import type { Audit } from '../telemetry/audit/audit.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';

interface GatewayConnectionsDeps
  extends Omit<ConnectionsDeps, 'network' | 'observers' | 'metrics'> {
  /** In place of the public network. */
  readonly network: Network | undefined;
  readonly tunnel: OutboundNetwork['openTunnel'];
  readonly metrics: Metrics;
  /** Undefined without `AUDIT_LOG`. */
  readonly audit: Audit | undefined;
}

export interface GatewayConnections {
  readonly parts: ConnectionParts;
  /** For the operators' page. */
  readonly operated: ReturnType<typeof createOperatedConnections>;
  /** For the metrics. */
  readonly count: ReturnType<typeof createCountConnections>;
  close(): void;
}

/** Of authorization servers: as many as there are requests to them at once, so that one whose name nobody answers for keeps no other. */
const MAX_LOOKUPS = 200;

/** Undefined where clients get the provider's tokens. */
export function openConnections(
  config: Config,
  { network, tunnel, listServers, audit, ...deps }: GatewayConnectionsDeps,
): GatewayConnections | undefined {
  const { store, clock, metrics } = deps;
  const opened = createConnections(config, {
    ...deps,
    network: network ?? createPublicNetwork({ clock, tunnel, maxLookups: MAX_LOOKUPS }),
    listServers,
    observers: [
      measureRefreshes(metrics),
      ...(audit ? [auditConnections({ audit, store, clock })] : []),
    ],
  });
  if (opened === undefined) return undefined;
  const { close, ...parts } = opened;
  const { connections } = parts;
  return {
    parts,
    operated: createOperatedConnections({ connections, listServers }),
    count: createCountConnections({ connections, listServers, clock }),
    close,
  };
}
