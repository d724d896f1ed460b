// For the composition root: what is there of broker mode before there are endpoints of OAuth.

import type { Config } from '../../config/config.ts';
import type { BrokerConfig } from '../../config/groups/oauth.ts';
import { createProviderApi } from '../../http/oauth-client/provider-api.ts';
import {
  createProviderEndpoints,
  type ProviderMetadata,
} from '../../http/oauth-client/provider-metadata.ts';
import type { Connections } from '../../mcp/upstream/connections.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Fetch } from '../../platform/fetch-with-limits.ts';
import type { Log } from '../../platform/log.ts';
import type { Seal } from '../../store/seal/seal.ts';
import type { RecordsDeps } from '../../store/seal/sealed-records.ts';
import type { Metrics } from '../../telemetry/metrics/metrics.ts';
import { createIdTokenVerifier } from '../auth/id-token.ts';
import type { FetchRuntime, KeySet } from '../auth/key-set.ts';
import { createLogoutTokenVerifier, type LogoutTokenVerifier } from '../auth/logout-token.ts';
import type { MachineClients } from '../auth/machine-clients.ts';
import {
  type ClientAuthentication,
  type ClientLookup,
  createClientAuthentication,
  createClientKeySets,
  type ProvenClient,
} from '../client-authentication/authenticate-client.ts';
import type { OwnTokens } from '../grants/open-grants.ts';
import { createVerifyAssertion, type VerifyAssertion } from '../id-jag/assertion.ts';
import { createAssertionIssuers } from '../id-jag/assertion-issuers.ts';
import { createFindLoginRefusal, type FindLoginRefusal } from '../identity/login-policy.ts';
import { openLoginSource } from '../identity/login-source.ts';
import type { ReadIdentity } from '../identity/read-identity.ts';
import { createEndConnections } from './end-connections.ts';
import { createEndGrant, createEndHere, type EndGrant } from './end-grant.ts';
import { endOutdatedGrants } from './end-outdated-grants.ts';
import { createEndSelectedGrants, type EndSelectedGrants } from './end-selected-grants.ts';
import { createLogouts, type Logouts } from './logouts.ts';
import { createProviderLogins, type ProviderLogins } from './provider-login.ts';
import { createGrantRenewal, type GrantRenewal } from './renew-grant.ts';
import { createFlightRecords, createRunOnce } from './run-once.ts';
import { createTellInTurn, createTellProvider, type TellProvider } from './tell-provider.ts';

export interface BrokerParts {
  readonly ownTokens: OwnTokens;
  readonly readIdentity: ReadIdentity;
  readonly findLoginRefusal: FindLoginRefusal;
  readonly providerLogins: ProviderLogins;
  readonly endGrant: EndGrant;
  /** Nobody waits until the provider knows. */
  readonly endGrantSoon: EndGrant;
  readonly tellProviderInTurn: TellProvider;
  readonly logouts: Logouts;
  readonly logoutTokens: LogoutTokenVerifier;
  readonly metrics: Pick<Metrics, 'recordLogoutToken'>;
  readonly renewal: GrantRenewal;
  readonly endSelectedGrants: EndSelectedGrants;
  readonly machineClients: MachineClients;
  readonly createAuthentication: <Client extends ProvenClient>(
    lookup: ClientLookup<Client>,
  ) => ClientAuthentication<Client>;
  /** Undefined where no assertion is taken. */
  readonly assertions: { readonly verifyAssertion: VerifyAssertion } | undefined;
  close(): void;
}

export interface OpenBrokerDeps {
  readonly ownTokens: OwnTokens;
  readonly records: Omit<RecordsDeps, 'seal'> & { readonly seal: Seal | undefined };
  readonly metadata: ProviderMetadata | undefined;
  readonly keySet: KeySet | undefined;
  /** Claims that rules name, as they stand now. */
  readonly listNamedClaims: () => readonly string[];
  readonly fetch: Fetch;
  readonly clock: Clock;
  readonly log: Log;
  readonly machineClients: MachineClients;
  readonly connections: Pick<Connections, 'endOfUser'> | undefined;
  readonly metrics: Metrics;
}

/** @throws Error in proxy mode. */
export function openBroker(
  { server, oauth }: Pick<Config, 'server' | 'oauth'>,
  deps: OpenBrokerDeps,
): BrokerParts {
  const { ownTokens, metadata, keySet, fetch, clock, log } = deps;
  const { seal } = deps.records;
  if (oauth.mode !== 'broker') throw new Error('Clients get tokens of the provider');
  if (seal === undefined || metadata === undefined || keySet === undefined) {
    throw new Error("The gateway's own tokens need a secret, and a provider");
  }
  const records = { ...deps.records, seal };
  const findLoginRefusal = createFindLoginRefusal(oauth.identity, { service: server.displayName });
  const expected = {
    issuer: oauth.provider.issuer,
    clientId: oauth.providerClient.id,
    baseUrl: server.baseUrl,
    clockToleranceSeconds: oauth.tokens.clockToleranceSeconds,
  };
  const endpoints = createProviderEndpoints(oauth.endpoints, metadata);
  const { readIdentity, revoke } = openLoginSource({
    oauth,
    verifier: createIdTokenVerifier(clock, keySet, expected),
    metadata,
    endpoints,
    listNamedClaims: deps.listNamedClaims,
    fetch,
    log,
  });
  const providerLogins = createProviderLogins({
    config: { ...oauth, baseUrl: server.baseUrl },
    api: createProviderApi(fetch, oauth.provider.quirks.errorCodes),
    revoke,
    endpoints,
    clock,
  });
  const { grants } = ownTokens;
  const tellProvider = createTellProvider({
    grants,
    providerLogins,
    issuer: oauth.provider.issuer,
    endsAllOfUser: oauth.provider.quirks.revokesAllOfUser === true,
  });
  const tellProviderInTurn = createTellInTurn(tellProvider);
  const endHere = createEndHere({ grants, log });
  const { machineClients } = deps;
  endOutdatedGrants({
    machineClients,
    grants,
    endHere,
    baseUrl: server.baseUrl,
    takesAssertions: oauth.idJag.isEnabled,
    clock,
    log,
  });
  const keySets = createClientKeySets(deps, machineClients);
  const logouts = createLogouts({
    store: records.store,
    refreshTtlSeconds: oauth.refreshTtlSeconds,
    approvalTtlSeconds: oauth.consent.ttlSeconds,
    clock,
  });
  const ending = { grants, logouts, endHere };
  const endGrant = createEndGrant({ ...ending, tellProvider });
  const renewal = createGrantRenewal({
    endGrant,
    tellProvider,
    config: oauth.tokens,
    grants,
    providerLogins,
    logouts,
    readIdentity,
    findLoginRefusal,
    runOnce: createRunOnce(createFlightRecords(records), clock),
    clock,
    log,
    metrics: deps.metrics,
  });
  const clientRules = {
    issuer: server.baseUrl,
    clockToleranceSeconds: oauth.tokens.clockToleranceSeconds,
  };
  const assertions = openAssertions(oauth, server.baseUrl, { ...deps, keySet });
  return {
    ownTokens,
    readIdentity,
    findLoginRefusal,
    providerLogins,
    endGrant,
    endGrantSoon: createEndGrant({
      ...ending,
      tellProvider: async (ended) => void tellProviderInTurn(ended),
    }),
    tellProviderInTurn,
    logouts,
    logoutTokens: createLogoutTokenVerifier(clock, keySet, expected),
    metrics: deps.metrics,
    endSelectedGrants: createEndSelectedGrants({
      grants,
      endHere,
      logouts,
      tellProviderInTurn,
      endConnections:
        deps.connections && oauth.tokens.endsConnections
          ? createEndConnections({
              connections: deps.connections,
              issuer: oauth.provider.issuer,
              log,
            })
          : undefined,
      clock,
      log,
    }),
    renewal,
    machineClients,
    createAuthentication: (lookup) =>
      createClientAuthentication({ store: records.store, clock }, clientRules, keySets, lookup),
    assertions,
    close() {
      keySets.close();
      assertions?.close();
    },
  };
}

/** ID_JAG. */
function openAssertions(
  { idJag, provider, tokens }: BrokerConfig,
  baseUrl: string,
  deps: FetchRuntime & { readonly keySet: KeySet },
) {
  if (!idJag.isEnabled) return undefined;
  const { issuer } = provider;
  const issuers = createAssertionIssuers(deps, idJag.issuers, { issuer, keySet: deps.keySet });
  const rules = { baseUrl, clockToleranceSeconds: tokens.clockToleranceSeconds };
  return {
    verifyAssertion: createVerifyAssertion(deps.clock, issuers, rules),
    close: issuers.close,
  };
}
