// The part of broker mode that is opened before the OAuth endpoints: login with the provider, renewal and end.

import { createProviderEndpoints } from '../../http/oauth-client/provider-metadata.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { warnOfForeignSecrets } from '../../store/seal/secrets.ts';
import type { ProviderAccess } from '../auth/auth.ts';
import { createIdTokenVerifier } from '../auth/id-token.ts';
import { createLogoutTokenVerifier } from '../auth/logout-token.ts';
import type { MachineClients } from '../auth/machine-clients.ts';
import { createClientKeySets } from '../client-authentication/authenticate-client.ts';
import type { OwnTokens } from '../grants/grants.ts';
import { createAssertionIssuers } from '../id-jag/assertion.ts';
import { createLoginEnds } from './ends.ts';
import { createCodeRecords, createLoginRecords } from './login.ts';
import { createProviderLogins } from './provider-login.ts';
import { createGrantRenewal } from './renewal.ts';
import type { BrokerRuntime, ServersOfBroker } from './runtime.ts';

export type Broker = ReturnType<typeof openBroker>;

/** @throws Error in proxy mode, and without a secret or a provider. */
export function openBroker(
  gatewayRuntime: Runtime,
  ownTokens: OwnTokens,
  { metadata, keySet, serverUrls, machineClients }: BrokerNeeds,
  servers: ServersOfBroker,
) {
  const { config, clock, loginSeal } = gatewayRuntime;
  const { baseUrl } = config.server;
  const { oauth } = config;
  if (oauth.mode !== 'broker') throw new Error('Clients get tokens of the provider');
  if (loginSeal === undefined || metadata === undefined || keySet === undefined)
    throw new Error("The gateway's own tokens need a secret, and a provider");
  const runtime: BrokerRuntime = {
    ...gatewayRuntime,
    baseUrl,
    serverUrls,
    servers,
    oauth,
    loginSeal,
    seal: warnOfForeignSecrets(loginSeal, gatewayRuntime),
  };
  const { issuer } = oauth.provider;
  const expected = {
    issuer,
    clientId: oauth.providerClient.id,
    baseUrl,
    clockToleranceSeconds: oauth.tokens.clockToleranceSeconds,
  };
  const endpoints = createProviderEndpoints(oauth.endpoints, metadata);
  const verifier = createIdTokenVerifier(clock, keySet, expected);
  const providerLogins = createProviderLogins(runtime, endpoints, metadata, verifier);
  const { grants } = ownTokens;
  const ends = createLoginEnds(runtime, grants, providerLogins.revoke, machineClients);
  const clientKeySets = createClientKeySets(runtime, machineClients);
  const assertionIssuers = oauth.idJag.isEnabled
    ? createAssertionIssuers(runtime, oauth.idJag.issuers, { issuer, keySet })
    : undefined;
  return {
    runtime,
    ownTokens,
    endpoints,
    logins: createLoginRecords(runtime),
    codes: createCodeRecords(runtime),
    providerLogins,
    logoutTokens: createLogoutTokenVerifier(clock, keySet, expected),
    renewal: createGrantRenewal(runtime, grants, providerLogins, ends),
    ends,
    machineClients,
    clientKeySets,
    assertionIssuers,
    close() {
      clientKeySets.close();
      assertionIssuers?.close();
    },
  };
}

interface BrokerNeeds
  extends Pick<ProviderAccess, 'metadata' | 'keySet'>,
    Pick<BrokerRuntime, 'serverUrls'> {
  readonly machineClients: MachineClients;
}
