// For the composition root: what keeps connections, where the gateway knows who somebody is without asking the provider.
import type { Config } from '../config/config.ts';
import type { BrokerConfig } from '../config/groups/oauth.ts';
import type { Clock } from '../platform/clock.ts';
import type { Fetch } from '../platform/fetch-with-limits.ts';
import type { Log } from '../platform/log.ts';
import type { Network } from '../platform/outbound/public-network.ts';
import { buildClientKeyName, buildConnectionsChannelName } from '../store/keys.ts';
import { createReplicas } from '../store/replicas/replicas.ts';
import type { Seal } from '../store/seal/seal.ts';
import { createSigningKeys } from '../store/seal/signing-keys.ts';
import type { Bus, KeyValue } from '../store/store.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import { createConnectionAccess } from './access/access.ts';
import { createKnownAccess } from './access/known-access.ts';
import { createRenewal } from './access/renewal.ts';
import { type ConnectionMessage, createConnectionChanges, isConnectionMessage } from './changes.ts';
import type { ConnectionServer } from './connection.ts';
import type { ConnectionObserver, ConnectionParts } from './connections.ts';
import { describeConnection } from './describe.ts';
import { createConnectionEnds } from './ends.ts';
import { createConnecting } from './making/connecting.ts';
import { createLinkRequests } from './making/link-requests.ts';
import { createPlaces } from './records/place.ts';
import { createConnectionRecords } from './records/records.ts';
import { createFindLoginPlace, type FindLoginPlace } from './servers/authorization-server.ts';
import { createOAuthClients } from './servers/clients.ts';
import { createKnownIssuers } from './servers/known-issuers.ts';
import { createOutbound } from './servers/outbound.ts';
import { createRevokeConnection } from './servers/revoke-connection.ts';
import { createRevokeTokens } from './servers/revoke-tokens.ts';
import { createAuthenticateForm } from './tokens/client-authentication.ts';
import { createTokenEndpoint } from './tokens/token-endpoint.ts';

export interface ConnectionsDeps {
  readonly store: KeyValue & Bus;
  /** Undefined where nothing is sealed. */
  readonly seal: Seal | undefined;
  /** For what operators name. */
  readonly fetch: Fetch;
  /** For what servers name. */
  readonly network: Network;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'recordDroppedReplicaMessage'>;
  /** Those of the configuration file that have connections, as it is now. */
  readonly listServers: () => readonly ConnectionServer[];
  readonly observers: readonly ConnectionObserver[];
}

/** Undefined where clients get the provider's tokens. */
export function createConnections(
  { server: { baseUrl, displayName }, oauth, mcp }: Pick<Config, 'server' | 'oauth' | 'mcp'>,
  deps: ConnectionsDeps,
): (ConnectionParts & { close(): void }) | undefined {
  if (oauth.mode !== 'broker') return undefined;
  const { seal, clock } = deps;
  if (seal === undefined) throw new Error('Connections need a secret');
  const findPlace = createPlaces(oauth.provider.issuer);
  const replicas = createReplicas<ConnectionMessage>({
    ...deps,
    getSeal: async () => seal,
    channel: buildConnectionsChannelName(mcp.sessions.keyPrefix),
    isMessage: isConnectionMessage,
  });
  const keys = createSigningKeys({
    ...deps,
    getSeal: async () => seal,
    buildKeyName: buildClientKeyName,
  });
  const outbound = createOutbound(deps);
  const shared = {
    ...deps,
    seal,
    findPlace,
    baseUrl,
    findServer: (name: string) => deps.listServers().find((one) => one.name === name),
  };
  const records = createConnectionRecords(shared);
  const known = createKnownAccess(clock);
  const changes = createConnectionChanges({ ...shared, replicas, known });
  const issuers = createKnownIssuers({ ...shared, provider: describeProvider(oauth) });
  const clients = createOAuthClients({ ...shared, issuers, locks: changes, outbound, displayName });
  const authenticate = createAuthenticateForm(keys, clock);
  const tokenEndpoint = createTokenEndpoint({ outbound, authenticate, clock });
  const revokeTokens = createRevokeTokens(clients, tokenEndpoint);
  const revokeConnection = createRevokeConnection(revokeTokens);
  const findNamed = createFindLoginPlace(outbound, clock);
  const findLoginPlace: FindLoginPlace = async (server) => {
    const place = await findNamed(server);
    await issuers.requireOwnEndpoints(server, place.authorizationServer);
    return place;
  };
  const parts = {
    ...shared,
    records,
    known,
    changes,
    issuers,
    clients,
    tokenEndpoint,
    revokeTokens,
    revokeConnection,
    findLoginPlace,
  };
  const renewal = createRenewal({ ...parts, locks: changes });
  const requests = createLinkRequests(parts);
  return {
    connections: {
      ...createConnectionAccess({ ...parts, renewal }),
      ...createConnectionEnds(parts),
      async describe(owner, server) {
        const stored = await records.read(findPlace(owner, server.name));
        return describeConnection(server, stored?.record);
      },
      count: records.countOfServer,
      onChange(listener) {
        changes.listen(({ owner, server }, change) => {
          if (change !== 'renewed' && change !== 'declined') listener(owner, server, change);
        });
      },
    },
    requests,
    connecting: {
      ...createConnecting({ ...parts, requests }),
      getClientDocument: clients.createDocument,
      listPublicKeys: async () => ({ keys: await keys.listPublicKeys() }),
    },
    close: replicas.close,
  };
}

/** At which users log in to the gateway itself: it is no server's, either. */
function describeProvider({ provider, providerClient, endpoints }: BrokerConfig) {
  const urls = [provider.issuer, ...Object.values(endpoints)].filter((url) => url !== undefined);
  return {
    issuer: provider.issuer,
    origins: urls.map((url) => new URL(url).origin),
    clientId: providerClient.id,
  };
}
