// §24: what the parts of this room work with: where connections are kept, and what is asked of authorization servers.
import type { BrokerConfig } from '../config/groups/oauth.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Replicas } from '../store/replicas/replicas.ts';
import type { Seal } from '../store/seal/seal.ts';
import type { SigningKeys } from '../store/seal/signing-keys.ts';
import { createKnownAccess, type KnownAccess } from './access/known-access.ts';
import {
  type ConnectionChanges,
  type ConnectionMessage,
  createConnectionChanges,
} from './changes.ts';
import type { ConnectionServer } from './connection.ts';
import type { ConnectionObserver } from './connections.ts';
import { createPlaces, type FindPlace } from './records/place.ts';
import { type ConnectionRecords, createConnectionRecords } from './records/records.ts';
import type { LockReleases } from './records/run-exclusively.ts';
import { createFindLoginPlace, type FindLoginPlace } from './servers/authorization-server.ts';
import { createOAuthClients, type OAuthClients } from './servers/clients.ts';
import { createKnownIssuers, type KnownIssuers } from './servers/known-issuers.ts';
import { createOutbound } from './servers/outbound.ts';
import {
  createRevokeConnection,
  createRevokeTokens,
  type RevokeConnection,
  type RevokeTokens,
} from './servers/revocation.ts';
import { createAuthenticateForm } from './tokens/client-authentication.ts';
import { createTokenEndpoint, type TokenEndpoint } from './tokens/token-endpoint.ts';

export interface KeptConnections {
  readonly seal: Seal;
  /** Those of the configuration file that have connections, as it is now. */
  readonly listServers: () => readonly ConnectionServer[];
  readonly findPlace: FindPlace;
  readonly records: ConnectionRecords;
  readonly known: KnownAccess;
  readonly changes: ConnectionChanges & LockReleases;
  readonly observers: readonly ConnectionObserver[];
}

export function createKeptConnections(
  runtime: Runtime,
  given: Pick<KeptConnections, 'seal' | 'listServers' | 'observers'>,
  replicas: Replicas<ConnectionMessage>,
): KeptConnections {
  const findPlace = createPlaces(runtime.config.oauth.provider?.issuer);
  const known = createKnownAccess(runtime.clock);
  return {
    ...given,
    findPlace,
    known,
    records: createConnectionRecords(runtime, given.seal),
    changes: createConnectionChanges(runtime, replicas, known, findPlace),
  };
}

export interface AuthorizationServers {
  readonly findLoginPlace: FindLoginPlace;
  readonly issuers: KnownIssuers;
  readonly clients: OAuthClients;
  readonly tokenEndpoint: TokenEndpoint;
  readonly revokeTokens: RevokeTokens;
  readonly revokeConnection: RevokeConnection;
}

/** Of authorization servers: as many as there are requests to them at once, so that one whose name nobody answers for keeps no other. */
const MAX_LOOKUPS = 200;

export function createAuthorizationServers(
  runtime: Runtime,
  kept: KeptConnections,
  keys: SigningKeys,
  provider: BrokerConfig,
): AuthorizationServers {
  const { clock, fetch } = runtime;
  const network = runtime.outbound.openPublicNetwork(MAX_LOOKUPS);
  const outbound = createOutbound({ clock, fetch }, network);
  const issuers = createKnownIssuers(runtime, kept, describeProvider(provider));
  const clients = createOAuthClients(runtime, kept, outbound, issuers);
  const authenticate = createAuthenticateForm(keys, clock);
  const tokenEndpoint = createTokenEndpoint(runtime, outbound, authenticate);
  const revokeTokens = createRevokeTokens(clients, tokenEndpoint);
  const findNamed = createFindLoginPlace(outbound, clock);
  return {
    issuers,
    clients,
    tokenEndpoint,
    revokeTokens,
    revokeConnection: createRevokeConnection(revokeTokens),
    async findLoginPlace(server) {
      const place = await findNamed(server);
      await issuers.requireOwnEndpoints(server, place.authorizationServer);
      return place;
    },
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
