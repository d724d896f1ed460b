// §24: what is asked of authorization servers: where one logs in, as whom the gateway comes, and tokens.
import type { BrokerConfig } from '../config/groups/oauth.ts';
import { createAuthenticateForm } from '../http/oauth-client/client-authentication.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { SigningKeys } from '../store/seal/signing-keys.ts';
import type { KeptConnections } from './kept-connections.ts';
import { createFindLoginPlace, type FindLoginPlace } from './servers/authorization-server.ts';
import { createOAuthClients, type OAuthClients } from './servers/clients.ts';
import {
  createKnownIssuers,
  describeProvider,
  type KnownIssuers,
} from './servers/known-issuers.ts';
import { createOutbound } from './servers/outbound.ts';
import {
  createRevokeConnection,
  createRevokeServerTokens,
  type RevokeConnection,
  type RevokeServerTokens,
} from './servers/revocation.ts';
import { createTokenEndpoint, type TokenEndpoint } from './tokens/token-endpoint.ts';

export interface AuthorizationServers {
  readonly findLoginPlace: FindLoginPlace;
  readonly issuers: KnownIssuers;
  readonly clients: OAuthClients;
  readonly tokenEndpoint: TokenEndpoint;
  readonly revokeTokens: RevokeServerTokens;
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
  const revokeTokens = createRevokeServerTokens(clients, tokenEndpoint);
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
