// §24: puts the requests to authorization servers together: metadata, the gateway's client, tokens.
import type { BrokerConfig } from '../config/groups/oauth.ts';
import { createAuthenticateForm } from '../http/oauth-client/client-authentication.ts';
import { openProviderMetadata } from '../http/oauth-client/provider-metadata.ts';
import type { ConnectionServer } from '../mcp/upstream/connections.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { SigningKeys } from '../store/seal/signing-keys.ts';
import type { ConnectionRecord } from './connection-record.ts';
import type { KeptConnections } from './kept-connections.ts';
import { createFindLoginPlace } from './servers/authorization-server.ts';
import { createOAuthClients } from './servers/clients.ts';
import { createKnownIssuers, describeProvider } from './servers/known-issuers.ts';
import { createOutbound } from './servers/outbound.ts';
import { createTokenEndpoint } from './servers/token-endpoint.ts';

export type AuthorizationServers = ReturnType<typeof createAuthorizationServers>;

/**
 * Simultaneous DNS look-ups of authorization servers: as many as there are simultaneous requests, so that one unresponsive name
 * does not block others.
 */
const MAX_LOOKUPS = 200;

export function createAuthorizationServers(
  runtime: Runtime,
  kept: KeptConnections,
  keys: SigningKeys,
  provider: BrokerConfig,
) {
  const { clock, fetch } = runtime;
  const network = runtime.outbound.openPublicNetwork(MAX_LOOKUPS);
  const outbound = createOutbound({ clock, fetch }, network);
  const findNamed = createFindLoginPlace(outbound, clock);
  const metadata = openProviderMetadata(runtime, provider.provider);
  // Falls back to the configured endpoints while the provider's metadata is unavailable.
  const findProvider = async () =>
    describeProvider(provider, await metadata.get().catch(() => undefined));
  const issuers = createKnownIssuers(runtime, kept, findProvider, findNamed);
  const clients = createOAuthClients(runtime, kept, outbound, issuers);
  const authenticate = createAuthenticateForm(keys, clock);

  async function findLoginPlace(server: ConnectionServer) {
    const place = await findNamed(server);
    await issuers.requireOwnEndpoints(server, place.authorizationServer);
    return place;
  }

  return {
    issuers,
    clients,
    ...createTokenEndpoint(runtime, outbound, authenticate, clients),
    findLoginPlace,
    /** True if the authorization server no longer knew the client, and it was registered again just now. */
    async replaceClient(
      server: ConnectionServer,
      { issuer, client }: Pick<ConnectionRecord, 'issuer' | 'client'>,
    ) {
      const { authorizationServer: at } = await findLoginPlace(server);
      return at.issuer === issuer && clients.replaceForgotten(server, at, client.id);
    },
  };
}
