// OAUTH_TOKENS=gateway: what a login in broker mode comes to where clients get tokens of the gateway's own.

import type { ProviderEndpoints } from '../../auth/provider-metadata.ts';
import type { Config } from '../../config/config.ts';
import type { BrokerConfig } from '../../config/groups/oauth.ts';
import type { TokensConfig } from '../../config/groups/own-tokens.ts';
import type { ServerConfig } from '../../config/groups/server.ts';
import type { ConnectionServer } from '../../connections/connection.ts';
import type { ConnectionParts } from '../../connections/connections.ts';
import { MAX_SCOPES } from '../../grants/token-codec.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import type { CallApprovals } from '../../policy/approvals/approvals.ts';
import type { RecordsDeps, SealedRecords } from '../../store/seal/sealed-records.ts';
import type { Audit } from '../../telemetry/audit/audit.ts';
import { createAccountEndpoints } from '../account/account.ts';
import { createBeginLogin } from '../account/begin-login.ts';
import { createBrowserSessions } from '../account/browser-sessions.ts';
import { createEndProviderSession } from '../account/end-provider-session.ts';
import { createFinishPageLogin } from '../account/finish-login.ts';
import { createApprovalEndpoints } from '../approvals/approval-endpoints.ts';
import type { BrokerTokens } from '../broker/broker-tokens.ts';
import type { AskedOfProvider, Login, ReadAsked } from '../broker/redirect-to-provider.ts';
import { createRefreshTokens } from '../broker/refresh-tokens.ts';
import { createFlightRecords, createRunOnce } from '../broker/run-once.ts';
import { createClientAuthentication } from '../client-authentication/authenticate-client.ts';
import type { ClientDocuments } from '../client-id-metadata/client-documents.ts';
import type { Clients } from '../clients/clients.ts';
import { createConnectionEndpoints } from '../connections/connection-endpoints.ts';
import type { Approvals, Browsers } from '../consent/browser.ts';
import { type AssertingClient, createFindByDocument } from '../id-jag/asserting-client.ts';
import { createGiveByAssertion } from '../id-jag/jwt-bearer.ts';
import type { LogLogin } from '../provider/issued-tokens.ts';
import {
  buildAuthorizationParameters,
  listGrantedScopes,
  type ProviderParametersConfig,
} from '../provider/provider-parameters.ts';
import type { OwnResources } from '../request/parameters.ts';
import { createWriteTokens } from './answer.ts';
import { createClientCredentials } from './client-credentials.ts';
import { createCodes } from './codes.ts';
import { createEarlierLogins } from './earlier-logins.ts';
import { createFindMachineLogin } from './find-machine-login.ts';
import { createIssueGrant } from './issue-grant.ts';
import { createLogIn } from './log-in.ts';
import { createLogoutTokenUses } from './logout-token-uses.ts';
import type { Logouts } from './logouts.ts';
import { type GatewayTokensParts, withoutAudience } from './open-gateway-tokens.ts';
import { createProviderLogout } from './provider-logout.ts';
import { getDefaultResources, readAskedResources } from './resources.ts';
import { createGatewayRevoke } from './revoke.ts';
import { createGatewayToken } from './token.ts';

export interface GatewayTokensDeps extends GatewayTokensParts {
  readonly records: RecordsDeps;
  readonly clients: Clients;
  readonly clientDocuments: Pick<ClientDocuments, 'isClientDocumentId' | 'findKeyed'>;
  readonly endpoints: ProviderEndpoints;
  readonly logins: SealedRecords<Login>;
  readonly browsers: Browsers;
  readonly approvals: Approvals;
  /** Calls that users have to agree to (§27); undefined where none is made. */
  readonly callApprovals: CallApprovals | undefined;
  readonly connections: ConnectionParts | undefined;
  readonly listConnectionServers: () => readonly ConnectionServer[];
  /** Undefined without `AUDIT_LOG`. */
  readonly audit: Audit | undefined;
  readonly logLogin: LogLogin;
  readonly clock: Clock;
  readonly log: Log;
}

export interface GatewayTokensConfig
  extends ProviderParametersConfig,
    OwnResources,
    Pick<BrokerConfig, 'providerClient' | 'refreshTtlSeconds' | 'identity'>,
    Pick<ServerConfig, 'displayName'>,
    Pick<Config, 'admin'> {}

export function createGatewayTokens(
  config: GatewayTokensConfig,
  tokens: TokensConfig,
  deps: GatewayTokensDeps,
): BrokerTokens {
  const { ownTokens, records, endpoints, logouts } = deps;
  const { codec, grants } = ownTokens;
  const providerConfig = withoutAudience(config);
  const codes = createCodes(records);
  const issueGrant = createIssueGrant({ ...deps, grants });
  const earlierLogins = createEarlierLogins({
    ...deps,
    config: providerConfig,
    tokens,
    ttlSeconds: config.refreshTtlSeconds,
    store: records.store,
    refreshTokens: createRefreshTokens(records, config.refreshTtlSeconds),
    issueGrant,
    runOnce: createRunOnce(createFlightRecords(records), deps.clock),
  });
  const common = { ...deps, codec, grants, codes, issueGrant, earlierLogins };
  const ownClient = { baseUrl: config.baseUrl, clientId: config.providerClient.id };
  const browserSessions = createBrowserSessions(config.baseUrl, { ...deps, ...records });
  const beginLogin = createBeginLogin({
    ...deps,
    ...ownClient,
    buildParameters: () => buildAuthorizationParameters(providerConfig, undefined, []),
  });
  const pages = {
    ...deps,
    baseUrl: config.baseUrl,
    displayName: config.displayName,
    beginLogin,
    browserSessions,
  };
  const accountEndpoints = createAccountEndpoints({
    ...pages,
    endProviderSession: createEndProviderSession({ ...deps, ...ownClient }),
    grants,
    hasConnections: () => deps.listConnectionServers().length > 0,
  });
  const { issuer } = config.provider;
  const connectionEndpoints =
    deps.connections &&
    createConnectionEndpoints({ ...pages, issuer, connectionParts: deps.connections });
  const approvalEndpoints =
    deps.callApprovals &&
    createApprovalEndpoints({ ...pages, issuer, grants, approvals: deps.callApprovals });
  const providerLogout = createProviderLogout({
    ...deps,
    config: tokens,
    issuer,
    grants,
    uses: createLogoutTokenUses({ ...records, issuer, clock: deps.clock }),
  });
  const writeTokens = createWriteTokens(codec);
  const ownConfig = { ...config, ...tokens };
  const authentication = deps.clientAuthentication;
  const giveToken = createClientCredentials({
    ...common,
    config: ownConfig,
    authentication,
    store: records.store,
    writeTokens,
  });
  const { assertions } = deps;
  const ofAssertions =
    assertions &&
    createClientAuthentication<AssertingClient>({
      ...deps.clientAuthenticationDeps,
      findByDocument: createFindByDocument(deps.clientDocuments),
    });
  const giveByAssertion =
    assertions &&
    ofAssertions &&
    createGiveByAssertion({
      ...common,
      ...assertions,
      config: { ...ownConfig, groupsClaim: config.identity.groupsClaim },
      authentication: ofAssertions,
      store: records.store,
      writeTokens,
    });
  const { token, ...logins } = createGatewayToken({
    ...common,
    config: ownConfig,
    writeTokens,
    giveToken,
    giveByAssertion,
  });
  return {
    readAsked: createReadAsked(config, endpoints, logouts),
    finish: createLogIn({
      ...common,
      baseUrl: config.baseUrl,
      issuer: config.provider.issuer,
      finishPageLogin: createFinishPageLogin({
        baseUrl: config.baseUrl,
        adminGroups: config.admin.groups,
        browserSessions,
      }),
    }),
    token,
    revoke: createGatewayRevoke({ ...common, authentication: ofAssertions ?? authentication }),
    findMachineLogin: createFindMachineLogin(authentication, ofAssertions),
    logins,
    ownEndpoints: [
      ...accountEndpoints,
      ...(connectionEndpoints ?? []),
      ...(approvalEndpoints ?? []),
      providerLogout,
    ],
  };
}

const createReadAsked =
  (
    config: ProviderParametersConfig,
    endpoints: ProviderEndpoints,
    logouts: Pick<Logouts, 'getMark'>,
  ): ReadAsked =>
  async (parameters, clientId) => {
    const logoutMark = await logouts.getMark();
    const scope = parameters.get('scope');
    return {
      ...(await askForLogin(withoutAudience(config), endpoints, scope)),
      logoutMark,
      // Those of the consent page. Of the user the provider may be asked more: that is for the gateway.
      scopes: listGrantedScopes(config, scope).slice(0, MAX_SCOPES),
      resources: readAskedResources(parameters, config, clientId) ?? getDefaultResources(config),
    };
  };

/** What the provider is asked for; `config` is one without an audience, `scope` what the client asks for. */
export async function askForLogin(
  config: ProviderParametersConfig,
  endpoints: Pick<ProviderEndpoints, 'listScopes'>,
  scope: string | undefined,
): Promise<Pick<AskedOfProvider, 'scope' | 'authorization'>> {
  const { scope: sent, authorization } = buildAuthorizationParameters(config, scope, []);
  const known = await endpoints.listScopes();
  return {
    scope: chooseOfflineAccess(sent.split(' ').slice(0, MAX_SCOPES), known, config).join(' '),
    authorization,
  };
}

const OFFLINE_ACCESS = 'offline_access';

/**
 * The gateway goes on asking whether the user may, whatever its client asks for. A provider that lists other scopes refuses
 * this one, and the whole login with it.
 */
function chooseOfflineAccess(
  scopes: readonly string[],
  known: readonly string[],
  { addedScopes }: Pick<ProviderParametersConfig, 'addedScopes'>,
): readonly string[] {
  if (known.includes(OFFLINE_ACCESS)) return [...new Set([...scopes, OFFLINE_ACCESS])];
  const mayKnow = known.length === 0 || addedScopes.includes(OFFLINE_ACCESS);
  return mayKnow ? scopes : scopes.filter((name) => name !== OFFLINE_ACCESS);
}
