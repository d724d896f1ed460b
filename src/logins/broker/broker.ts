// OAUTH_MODE=broker: an authorization server of its own before the provider's. A login comes to a grant, by which its client gets tokens
// of the gateway's own (§5.11).

import type { Config } from '../../config/config.ts';
import type { BrokerConfig } from '../../config/groups/oauth.ts';
import type { ServerConfig } from '../../config/groups/server.ts';
import type { Browsers, OwnPages } from '../../http/endpoint/own-pages.ts';
import type { ProviderEndpoints } from '../../http/oauth-client/provider-metadata.ts';
import type { ConnectionServer } from '../../mcp/upstream/connection.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import { createSecretRecords, type SealedStore } from '../../store/records.ts';
import type { Audit } from '../../telemetry/audit/audit.ts';
import { createAccountEndpoints } from '../account/account.ts';
import { createBeginLogin } from '../account/begin-login.ts';
import { createBrowserSessions } from '../account/browser-sessions.ts';
import { createEndProviderSession } from '../account/end-provider-session.ts';
import { createFinishPageLogin } from '../account/finish-login.ts';
import { createClientAuthentication } from '../client-authentication/authenticate-client.ts';
import type { ClientDocuments } from '../client-id-metadata/client-documents.ts';
import type { Clients } from '../clients/clients.ts';
import type { Approvals } from '../consent/browser.ts';
import { type AssertingClient, createFindByDocument } from '../id-jag/asserting-client.ts';
import { createGiveByAssertion } from '../id-jag/jwt-bearer.ts';
import type { LogLogin } from '../provider/issued-tokens.ts';
import { buildAuthorizationParameters } from '../provider/provider-parameters.ts';
import type { OwnResources } from '../request/parameters.ts';

import { createWriteTokens } from './answer.ts';
import { createCallback } from './callback.ts';
import { createClientCredentials } from './client-credentials.ts';
import { createCodes } from './codes.ts';
import { createFindMachineLogin } from './find-machine-login.ts';
import { createIssueGrant } from './issue-grant.ts';
import { createLogIn } from './log-in.ts';
import { createLogoutTokenUses } from './logout-token-uses.ts';
import type { BrokerParts } from './open-broker.ts';
import { createProviderLogout } from './provider-logout.ts';
import { createBrokerRequestReader } from './read-request.ts';
import { createBrokerRedirect, type Login } from './redirect-to-provider.ts';
import { createBrokerRevoke } from './revoke.ts';
import { createBrokerToken } from './token.ts';

/** `baseUrl` is the issuer of its own. */
export type BrokerSettings = BrokerConfig &
  OwnResources &
  Pick<ServerConfig, 'displayName'> &
  Pick<Config, 'admin'>;

export interface BrokerDeps extends BrokerParts {
  readonly records: SealedStore;
  readonly clients: Clients;
  readonly clientDocuments: Pick<ClientDocuments, 'isClientDocumentId' | 'findKeyed'>;
  readonly endpoints: ProviderEndpoints;
  readonly browsers: Browsers;
  readonly approvals: Approvals;
  readonly listConnectionServers: () => readonly ConnectionServer[];
  /** Undefined without `AUDIT_LOG`. */
  readonly audit: Audit | undefined;
  readonly logLogin: LogLogin;
  readonly clock: Clock;
  readonly log: Log;
}

/** The user has ten minutes to log in. */
const LOGIN_TTL_SECONDS = 600;

export type Broker = ReturnType<typeof createBroker>;

export function createBroker(config: BrokerSettings, deps: BrokerDeps) {
  const { records } = deps;
  const { codec, grants } = deps.ownTokens;
  const { baseUrl, displayName } = config;
  const { issuer } = config.provider;
  const clientId = config.providerClient.id;
  const logins = createSecretRecords<Login>(records, 'login', LOGIN_TTL_SECONDS);
  const writeTokens = createWriteTokens(codec);
  const common = {
    ...deps,
    logins,
    codec,
    grants,
    codes: createCodes(records),
    issueGrant: createIssueGrant({ ...deps, grants }),
    writeTokens,
    store: records.store,
  };
  const ownConfig = { ...config, ...config.tokens };

  const browserSessions = createBrowserSessions(baseUrl, { ...deps, ...records });
  const pages = {
    ...deps,
    baseUrl,
    displayName,
    issuer,
    grants,
    beginLogin: createBeginLogin({
      ...common,
      baseUrl,
      clientId,
      buildParameters: () => buildAuthorizationParameters(config, undefined),
    }),
    browserSessions,
  };

  const authentication = deps.clientAuthentication;
  const { assertions } = deps;
  const ofAssertions =
    assertions &&
    createClientAuthentication<AssertingClient>({
      ...deps.clientAuthenticationDeps,
      findByDocument: createFindByDocument(deps.clientDocuments),
    });
  const { token, ...loginIndex } = createBrokerToken({
    ...common,
    config: ownConfig,
    giveToken: createClientCredentials({ ...common, config: ownConfig, authentication }),
    giveByAssertion:
      assertions &&
      ofAssertions &&
      createGiveByAssertion({
        ...common,
        ...assertions,
        config: { ...ownConfig, groupsClaim: config.identity.groupsClaim },
        authentication: ofAssertions,
      }),
  });

  const ownPages: OwnPages = {
    sessions: browserSessions,
    browsers: deps.browsers,
    beginLogin: pages.beginLogin,
    listClients: async (user) => (await grants.listOfUser(user)).map(({ client }) => client),
  };

  return {
    ownPages,
    readRequest: createBrokerRequestReader({ ...deps, own: config }),
    redirectToProvider: createBrokerRedirect({ ...common, config, clientId }),
    callback: createCallback({
      ...common,
      baseUrl,
      finishLogin: createLogIn({
        ...common,
        baseUrl,
        issuer,
        finishPageLogin: createFinishPageLogin({
          baseUrl,
          adminGroups: config.admin.groups,
          browserSessions,
        }),
      }),
    }),
    token,
    /** §8: refreshes are counted by their grant. */
    logins: loginIndex,
    /** §8: how a request of a client that logs in as itself is counted. */
    findMachineLogin: createFindMachineLogin(authentication, ofAssertions),
    revoke: createBrokerRevoke({ ...common, authentication: ofAssertions ?? authentication }),
    /** Pages for users, and where the provider ends grants. */
    ownEndpoints: [
      ...createAccountEndpoints({
        ...pages,
        endProviderSession: createEndProviderSession({ ...deps, baseUrl, clientId }),
        hasConnections: () => deps.listConnectionServers().length > 0,
      }),
      createProviderLogout({
        ...deps,
        config: config.tokens,
        issuer,
        grants,
        uses: createLogoutTokenUses({ ...records, issuer, clock: deps.clock }),
      }),
    ],
  };
}
