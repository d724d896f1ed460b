// The part of broker mode that is there before the endpoints of OAuth: the login at the provider, its renewal and its end.

import type { ServerUrls } from '../../config/server-urls.ts';
import { createProviderEndpoints } from '../../http/oauth-client/provider-metadata.ts';
import type { Connections } from '../../mcp/upstream/connections.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { ProviderAccess } from '../auth/auth.ts';
import { createIdTokenVerifier } from '../auth/id-token.ts';
import { createLogoutTokenVerifier, type LogoutTokenVerifier } from '../auth/logout-token.ts';
import type { MachineClients } from '../auth/machine-clients.ts';
import {
  type ClientKeySets,
  createClientKeySets,
} from '../client-authentication/authenticate-client.ts';
import type { OwnTokens } from '../grants/open-grants.ts';
import { type AssertionIssuers, createAssertionIssuers } from '../id-jag/assertion-issuers.ts';
import { createFindLoginRefusal, type FindLoginRefusal } from '../identity/login-policy.ts';
import { createLoginEnds, type LoginEnds } from './ends.ts';
import { createLoginRecords, type LoginsUnderWay } from './login.ts';
import { createProviderLogins, type ProviderLogins } from './provider-login.ts';
import { createGrantRenewal, type GrantRenewal } from './renew-grant.ts';
import { createBrokerRuntime } from './runtime.ts';

export interface Broker extends LoginsUnderWay {
  readonly ownTokens: OwnTokens;
  readonly providerLogins: ProviderLogins;
  readonly findLoginRefusal: FindLoginRefusal;
  readonly logoutTokens: LogoutTokenVerifier;
  readonly renewal: GrantRenewal;
  readonly ends: LoginEnds;
  readonly machineClients: MachineClients;
  readonly clientKeySets: ClientKeySets;
  /** Undefined where no assertion is taken. */
  readonly assertionIssuers: AssertionIssuers | undefined;
  readonly servers: ServersOfBroker;
  close(): void;
}

/** The servers behind the gateway, as logins know them. */
interface ServersOfBroker {
  readonly urls: ServerUrls;
  /** Claims that rules name, as they stand now. */
  readonly listNamedClaims: () => readonly string[];
  /** True where there is a server for which users need a connection. */
  readonly hasConnections: () => boolean;
  readonly connections: Pick<Connections, 'endOfUser'> | undefined;
}

/** @throws Error in proxy mode, and without a secret or a provider. */
export function openBroker(
  gatewayRuntime: Runtime,
  ownTokens: OwnTokens,
  { metadata, keySet }: Pick<ProviderAccess, 'metadata' | 'keySet'>,
  machineClients: MachineClients,
  servers: ServersOfBroker,
): Broker {
  const runtime = createBrokerRuntime(gatewayRuntime, servers.urls);
  const { oauth, baseUrl, clock } = runtime;
  if (metadata === undefined || keySet === undefined) {
    throw new Error("The gateway's own tokens need a secret, and a provider");
  }
  const { provider, idJag } = oauth;
  const expected = {
    issuer: provider.issuer,
    clientId: oauth.providerClient.id,
    baseUrl,
    clockToleranceSeconds: oauth.tokens.clockToleranceSeconds,
  };
  const endpoints = createProviderEndpoints(oauth.endpoints, metadata);
  const providerLogins = createProviderLogins(
    runtime,
    endpoints,
    metadata,
    createIdTokenVerifier(clock, keySet, expected),
    servers.listNamedClaims,
  );
  const { grants } = ownTokens;
  const ends = createLoginEnds(
    runtime,
    grants,
    providerLogins.revoke,
    machineClients,
    servers.connections,
  );
  const findLoginRefusal = createFindLoginRefusal(oauth.identity, {
    service: runtime.config.server.displayName,
  });
  const clientKeySets = createClientKeySets(runtime, machineClients);
  const assertionIssuers = idJag.isEnabled
    ? createAssertionIssuers(runtime, idJag.issuers, { issuer: provider.issuer, keySet })
    : undefined;
  return {
    runtime,
    ownTokens,
    endpoints,
    logins: createLoginRecords(runtime),
    providerLogins,
    findLoginRefusal,
    logoutTokens: createLogoutTokenVerifier(clock, keySet, expected),
    renewal: createGrantRenewal(runtime, grants, providerLogins, findLoginRefusal, ends),
    ends,
    machineClients,
    clientKeySets,
    assertionIssuers,
    servers,
    close() {
      clientKeySets.close();
      assertionIssuers?.close();
    },
  };
}
