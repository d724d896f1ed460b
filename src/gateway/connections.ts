// A part of the composition root: users' connections to servers, where clients get the gateway's own tokens.
import type { ConnectionParts } from '../connections/connections.ts';
import { type ConnectionsDeps, createConnections } from '../connections/create-connections.ts';
import { createOperatedConnections } from '../connections/for-operators.ts';
import { auditConnections } from '../connections/observers/audit-connections.ts';
import {
  createCountConnections,
  measureRefreshes,
} from '../connections/observers/measure-connections.ts';
import type { Runtime } from '../runtime/runtime.ts';

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
  runtime: Runtime,
  listServers: ConnectionsDeps['listServers'],
): GatewayConnections | undefined {
  const { config, store, clock, metrics, audit, fetch, log, loginSeal, outbound } = runtime;
  const opened = createConnections(config, {
    store,
    seal: loginSeal,
    fetch,
    network: outbound.openPublicNetwork(MAX_LOOKUPS),
    listServers,
    clock,
    log,
    metrics,
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
