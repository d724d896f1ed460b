// §24: the features of this folder, in broker mode: users' connections to servers, and their pages. Assembles its parts.

import type { FoundPeople } from '../http/endpoint/admin-people.ts';
import type { GrantReader } from '../http/endpoint/grants.ts';
import type { OwnPages } from '../http/endpoint/own-pages.ts';
import { defineFeature, type Given } from '../mcp/feature.ts';
import type {
  Connecting,
  ConnectionServer,
  Connections,
  EndedBy,
} from '../mcp/upstream/connections.ts';
import type { ServedFile } from '../mcp/upstream/upstream-config.ts';
import { createWorkQueue } from '../platform/work-queue.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { buildClientKeyName, buildConnectionsChannelName } from '../store/keys.ts';
import { createReplicas } from '../store/replicas/replicas.ts';
import { createSigningKeys } from '../store/seal/signing-keys.ts';
import { createConnectionAccess } from './access.ts';
import { type AuthorizationServers, createAuthorizationServers } from './authorization-servers.ts';
import { createConnecting } from './connecting.ts';
import { type ConnectionPlace, describeConnection } from './connection-record.ts';
import {
  type ConnectionMessage,
  createCountConnections,
  createKeptConnections,
  isConnectionMessage,
  type KeptConnections,
} from './kept-connections.ts';
import { createLinkRequests } from './link-requests.ts';
import { createConnectionEndpoints } from './pages/connection-endpoints.ts';
import { createConnectionPanels } from './pages/connection-panels.ts';
import { createRenewal } from './renewal.ts';

export const connections = defineFeature({
  name: 'connections',
  open(
    runtime,
    {
      servedFile,
      ownTokens,
      operated,
    }: {
      readonly servedFile: ServedFile;
      readonly ownTokens: { readonly grants: GrantReader } | undefined;
      readonly operated: FoundPeople | undefined;
    },
  ) {
    const opened = createConnections(runtime, servedFile.listConnectionServers);
    return {
      gives: { connections: opened },
      ...(operated && {
        panels: createConnectionPanels(
          operated,
          opened?.connections,
          ownTokens?.grants,
          servedFile.listConnectionServers,
        ),
      }),
      ...(opened && { gauges: { connections: opened.count }, close: opened.close }),
    };
  },
});

/** Pages where users connect servers, and see their connections. */
export const connectionPages = defineFeature({
  name: 'pages of connections',
  open: (
    runtime,
    {
      connections: opened,
      ownPages,
      servedFile,
    }: Given<typeof connections> & {
      readonly ownPages: OwnPages | undefined;
      readonly servedFile: ServedFile;
    },
  ) => ({
    gives: {},
    ...(opened &&
      ownPages && {
        endpoints: createConnectionEndpoints(
          runtime,
          ownPages,
          opened,
          servedFile.listConnectionServers,
        ),
      }),
  }),
});

// §24: opens all parts of this folder. Needs broker mode, where the gateway knows the user without contacting the provider.

/** Undefined in proxy mode. `listServers` returns the servers with connections in the current configuration file. */
export function createConnections(
  runtime: Runtime,
  listServers: () => readonly ConnectionServer[],
) {
  const { oauth, mcp } = runtime.config;
  if (oauth.mode !== 'broker') return undefined;
  const { loginSeal: seal } = runtime;
  if (seal === undefined) throw new Error('Connections need a secret');
  const getSeal = async () => seal;
  const replicas = createReplicas<ConnectionMessage>(
    { ...runtime, getSeal },
    buildConnectionsChannelName(mcp.sessions.keyPrefix),
    isConnectionMessage,
  );
  const keys = createSigningKeys(runtime, getSeal, buildClientKeyName);
  const kept = createKeptConnections(runtime, seal, listServers, replicas);
  const { records, findPlace } = kept;
  const servers = createAuthorizationServers(runtime, kept, keys, oauth);
  const renewal = createRenewal(runtime, kept, servers);
  const requests = createLinkRequests(runtime, kept);
  const ofUsers: Connections = {
    ...createConnectionAccess(runtime, kept, renewal),
    ...createConnectionEnds(kept, servers),
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
  const connecting: Connecting = {
    ...createConnecting(runtime, kept, servers, requests),
    getClientDocument: servers.clients.createDocument,
    listPublicKeys: async () => ({ keys: await keys.listPublicKeys() }),
  };
  return {
    connections: ofUsers,
    requests,
    connecting,
    /** For the metrics. */
    count: createCountConnections(runtime, ofUsers, listServers),
    close: replicas.close,
  };
}

// End of connections: here at once, and at the authorization server if it supports revocation (RFC 7009).

/** Connections that end at the same time. */
const MAX_AT_ONCE = 20;

function createConnectionEnds(
  { records, known, changes, audited, findPlace, listServers }: KeptConnections,
  { revokeConnection }: AuthorizationServers,
): Pick<Connections, 'end' | 'endOfUser' | 'endAtServer'> {
  const findServer = (name: string) => listServers().find((one) => one.name === name);

  /** Ends here first: from now on, no request uses the token, whatever the authorization server answers. */
  async function endOne(place: ConnectionPlace, server: ConnectionServer | undefined, by: EndedBy) {
    const taken = await records.take(place);
    known.forget(place);
    if (taken === undefined) return { ended: false, problem: undefined };
    changes.announce(place, 'missing');
    const { record } = taken;
    if (record !== undefined) audited.ended(place, by);
    return { ended: true, problem: await revokeConnection(place, server, record) };
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
    return {
      ended: ends.filter(({ ended }) => ended).length,
      failed: ends.filter(({ problem }) => problem !== undefined).length,
    };
  }

  return {
    end: (owner, server, by) => endOne(findPlace(owner, server.name), server, by),
    async endOfUser(owner, by) {
      // The list belongs to the user: the server's name does not matter.
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
