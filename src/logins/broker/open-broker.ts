// The part of broker mode that is there before the endpoints of OAuth: the login at the provider, its renewal and its end.

import type { ServerUrls } from '../../config/server-urls.ts';
import { createProviderEndpoints } from '../../http/oauth-client/provider-metadata.ts';
import type { Connections } from '../../mcp/upstream/connections.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { warnOfForeignSecrets } from '../../store/seal/secrets.ts';
import type { ProviderAccess } from '../auth/auth.ts';
import { createIdTokenVerifier } from '../auth/id-token.ts';
import { createLogoutTokenVerifier } from '../auth/logout-token.ts';
import type { MachineClients } from '../auth/machine-clients.ts';
import { createClientKeySets } from '../client-authentication/authenticate-client.ts';
import type { OwnTokens } from '../grants/open-grants.ts';
import { createAssertionIssuers } from '../id-jag/assertion.ts';
import { createFindLoginRefusal } from '../identity/login-policy.ts';
import { createLoginEnds } from './ends.ts';
import { createLoginRecords } from './login.ts';
import { createProviderLogins } from './provider-login.ts';
import { createGrantRenewal } from './renew-grant.ts';
import type { BrokerRuntime } from './runtime.ts';

export type Broker = ReturnType<typeof openBroker>;

/** The servers behind the gateway, as logins know them. */
export interface ServersOfBroker {
  readonly urls: ServerUrls;
  /** Claims that rules name, as they stand now. */
  readonly listNamedClaims: () => readonly string[];
  /** True where there is a server for which users need a connection. */
  readonly hasConnections: () => boolean;
  readonly connections: Connections | undefined;
}

/** @throws Error in proxy mode, and without a secret or a provider. */
export function openBroker(
  gatewayRuntime: Runtime,
  ownTokens: OwnTokens,
  { metadata, keySet }: ProviderAccess,
  machineClients: MachineClients,
  servers: ServersOfBroker,
) {
  const { config, clock, loginSeal } = gatewayRuntime;
  const { baseUrl, displayName } = config.server;
  const { oauth } = config;
  if (oauth.mode !== 'broker') throw new Error('Clients get tokens of the provider');
  if (loginSeal === undefined || metadata === undefined || keySet === undefined) {
    throw new Error("The gateway's own tokens need a secret, and a provider");
  }
  const runtime: BrokerRuntime = {
    ...gatewayRuntime,
    baseUrl,
    serverUrls: servers.urls,
    oauth,
    loginSeal,
    seal: warnOfForeignSecrets(loginSeal, gatewayRuntime),
  };
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
  const findLoginRefusal = createFindLoginRefusal(oauth.identity, displayName);
  const clientKeySets = createClientKeySets(runtime, machineClients);
  /** Undefined where no assertion is taken. */
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
