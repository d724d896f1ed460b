// §24, for the composition root: all of this room, where the gateway knows who somebody is without asking the provider.

import type {
  ConnectionInfo,
  ConnectionOwner,
  ConnectionServer,
  EndedBy,
} from '../mcp/upstream/connection.ts';
import type { ConnectionParts, Connections } from '../mcp/upstream/connections.ts';
import { createWorkQueue } from '../platform/work-queue.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { buildClientKeyName, buildConnectionsChannelName } from '../store/keys.ts';
import { createReplicas } from '../store/replicas/replicas.ts';
import { createSigningKeys } from '../store/seal/signing-keys.ts';
import type { Owner } from '../store/store.ts';
import type { ConnectionCount } from '../telemetry/metrics/metrics.ts';
import { createConnectionAccess } from './access.ts';
import { createAuthorizationServers } from './authorization-servers.ts';
import { createConnecting } from './connecting.ts';
import { type ConnectionPlace, describeConnection } from './connection-record.ts';
import {
  type ConnectionMessage,
  createKeptConnections,
  isConnectionMessage,
  type KeptConnections,
} from './kept-connections.ts';
import { createLinkRequests } from './link-requests.ts';
import { auditConnections, createCountConnections, measureRefreshes } from './observers.ts';
import { createRenewal } from './renewal.ts';
import type { RevokeConnection } from './servers/revocation.ts';

export interface GatewayConnections extends ConnectionParts {
  /** For the operators' page. */
  readonly operated: OperatedConnections;
  /** For the metrics. */
  readonly count: () => Promise<readonly ConnectionCount[]>;
  close(): void;
}

/** Undefined where clients get the provider's tokens. `listServers` has those of the configuration file that have connections, as it is now. */
export function createConnections(
  runtime: Runtime,
  listServers: () => readonly ConnectionServer[],
): GatewayConnections | undefined {
  const { oauth, mcp } = runtime.config;
  if (oauth.mode !== 'broker') return undefined;
  const { loginSeal: seal, metrics, audit } = runtime;
  if (seal === undefined) throw new Error('Connections need a secret');
  const getSeal = async () => seal;
  const replicas = createReplicas<ConnectionMessage>(
    { ...runtime, getSeal },
    buildConnectionsChannelName(mcp.sessions.keyPrefix),
    isConnectionMessage,
  );
  const keys = createSigningKeys(runtime, getSeal, buildClientKeyName);
  const observers = [
    measureRefreshes(metrics),
    ...(audit ? [auditConnections(audit, runtime)] : []),
  ];
  const kept = createKeptConnections(runtime, { seal, listServers, observers }, replicas);
  const { records, findPlace } = kept;
  const servers = createAuthorizationServers(runtime, kept, keys, oauth);
  const renewal = createRenewal(runtime, kept, servers);
  const requests = createLinkRequests(runtime, kept);
  const connections: Connections = {
    ...createConnectionAccess(runtime, kept, renewal),
    ...createConnectionEnds(kept, servers.revokeConnection),
    async describe(owner, server) {
      const stored = await records.read(findPlace(owner, server.name));
      return describeConnection(server, stored?.record);
    },
    count: records.countOfServer,
    onChange(listener) {
      kept.changes.listen(({ owner, server }, change) => {
        if (change !== 'renewed' && change !== 'declined') listener(owner, server, change);
      });
    },
  };
  return {
    connections,
    requests,
    connecting: {
      ...createConnecting(runtime, kept, servers, requests),
      getClientDocument: servers.clients.createDocument,
      listPublicKeys: async () => ({ keys: await keys.listPublicKeys() }),
    },
    operated: createOperatedConnections(connections, listServers),
    count: createCountConnections(runtime, connections, listServers),
    close: replicas.close,
  };
}

/** Those that are to end: at least one of both is said. `shared` is the connection that is everybody's. */
export interface EndedConnections {
  /** Its name; it need not be in the configuration file any more. */
  readonly server: string | undefined;
  readonly owner: ConnectionOwner | undefined;
}

export type OperatedConnections = ReturnType<typeof createOperatedConnections>;

/** §24.6: what operators see and do with connections: how many, whose, and their end. Never a token. */
const createOperatedConnections = (
  connections: Connections,
  listServers: () => readonly ConnectionServer[],
) => ({
  /** @throws StoreUnavailable */
  async count() {
    const counts = [];
    // One after the other, so that who looks at it leaves room in the store for calls.
    for (const { name, auth } of listServers()) {
      counts.push({ server: name, owner: auth.owner, ...(await connections.count(name)) });
    }
    return counts;
  },
  /** At each server where users have connections of their own. @throws StoreUnavailable */
  async describeOfUser(owner: Owner): Promise<readonly ConnectionInfo[]> {
    const infos: ConnectionInfo[] = [];
    for (const server of listServers()) {
      if (server.auth.owner === 'user') infos.push(await connections.describe(owner, server));
    }
    return infos;
  },
  /** @throws StoreUnavailable */
  async end({ server: name, owner }: EndedConnections) {
    if (owner === undefined) return connections.endAtServer(name ?? '', 'operator');
    if (name === undefined) return connections.endOfUser(owner, 'operator');
    const server = listServers().find((one) => one.name === name);
    if (server === undefined) return { ended: 0, failed: 0 };
    const { ended, problem } = await connections.end(owner, server, 'operator');
    return { ended: ended ? 1 : 0, failed: problem === undefined ? 0 : 1 };
  },
});

// They end: here at once, and at the authorization server where it can be told (RFC 7009).

interface End {
  readonly isEnded: boolean;
  readonly problem: string | undefined;
}

/** Connections that end together: so many at once. */
const MAX_AT_ONCE = 20;

function createConnectionEnds(
  { records, known, changes, observers, findPlace, listServers }: KeptConnections,
  revokeConnection: RevokeConnection,
): Pick<Connections, 'end' | 'endOfUser' | 'endAtServer'> {
  const findServer = (name: string) => listServers().find((one) => one.name === name);

  /** First here: whatever the authorization server says, nothing is sent by it from now on. */
  async function endOne(
    place: ConnectionPlace,
    server: ConnectionServer | undefined,
    by: EndedBy,
  ): Promise<End> {
    const taken = await records.take(place);
    known.forget(place);
    if (taken === undefined) return { isEnded: false, problem: undefined };
    changes.announce(place, 'missing');
    const { record } = taken;
    if (record !== undefined) {
      const { owner, server: name } = place;
      const event = { owner, server: name, connectionId: record.id, by };
      for (const observer of observers) observer.ended?.(event);
    }
    return { isEnded: true, problem: await revokeConnection(place, server, record) };
  }

  async function endAll(places: readonly ConnectionPlace[], by: EndedBy) {
    const queue = createWorkQueue({
      maxRunning: MAX_AT_ONCE,
      maxWaiting: places.length,
      createRefusal: () => new Error('unreachable'),
    });
    const ends = await Promise.all(
      places.map((place) => queue.run(() => endOne(place, findServer(place.server), by))),
    );
    const ended = ends.filter(({ isEnded }) => isEnded);
    return {
      ended: ended.length,
      failed: ended.filter(({ problem }) => problem !== undefined).length,
    };
  }

  return {
    async end(owner, server, by) {
      const { isEnded, problem } = await endOne(findPlace(owner, server.name), server, by);
      return { ended: isEnded, problem };
    },
    async endOfUser(owner, by) {
      // Any server will do: the list is the user's.
      const servers = await records.listOfUser(findPlace(owner, ''));
      return endAll(
        servers.map((server) => findPlace(owner, server)),
        by,
      );
    },
    async endAtServer(server, by) {
      const places: ConnectionPlace[] = [];
      for await (const owner of records.listOfServer(server)) places.push(findPlace(owner, server));
      return endAll(places, by);
    },
  };
}
