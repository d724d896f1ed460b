// OAUTH_MODE=broker: an authorization server of its own before the provider's. A login comes to a grant, by which its client gets tokens
// of the gateway's own (§5.11).

import type { Config } from '../../config/config.ts';
import type { BrokerConfig } from '../../config/groups/oauth.ts';
import type { ServerConfig } from '../../config/groups/server.ts';
import { createConnectionEndpoints } from '../../connections/pages/connection-endpoints.ts';
import { createApprovalEndpoints } from '../../control/approvals/approval-endpoints.ts';
import type { CallApprovals } from '../../control/approvals/approvals.ts';
import type { ProviderEndpoints } from '../../http/oauth-client/provider-metadata.ts';
import type { ConnectionServer } from '../../mcp/upstream/connection.ts';
import type { ConnectionParts } from '../../mcp/upstream/connections.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import { createSealedRecords, type RecordsDeps } from '../../store/seal/sealed-records.ts';
import type { Audit } from '../../telemetry/audit/audit.ts';
import { createAccountEndpoints } from '../account/account.ts';
import { createBeginLogin } from '../account/begin-login.ts';
import { createBrowserSessions } from '../account/browser-sessions.ts';
import { createEndProviderSession } from '../account/end-provider-session.ts';
import { createFinishPageLogin } from '../account/finish-login.ts';
import type { ClientDocuments } from '../client-id-metadata/client-documents.ts';
import type { Clients } from '../clients/clients.ts';
import type { Approvals, Browsers } from '../consent/browser.ts';
import {
  type AssertingClient,
  createFindByDocument,
  createGiveByAssertion,
} from '../id-jag/jwt-bearer.ts';
import { buildAuthorizationParameters } from '../provider/provider-parameters.ts';
import type { OwnResources } from '../request/authorization-request.ts';
import type { LogLogin } from '../request/login-facts.ts';
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
  readonly records: RecordsDeps;
  readonly clients: Clients;
  readonly clientDocuments: Pick<ClientDocuments, 'isClientDocumentId' | 'findKeyed'>;
  readonly endpoints: ProviderEndpoints;
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

/** The user has ten minutes to log in. */
const LOGIN_TTL_SECONDS = 600;

export type Broker = ReturnType<typeof createBroker>;

export function createBroker(config: BrokerSettings, deps: BrokerDeps) {
  const { records } = deps;
  const { codec, grants } = deps.ownTokens;
  const { baseUrl, displayName } = config;
  const { issuer } = config.provider;
  const clientId = config.providerClient.id;
  const logins = createSealedRecords<Login>(records, 'login', LOGIN_TTL_SECONDS);
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

  const findClient = deps.machineClients.find;
  const authentication = deps.createAuthentication({ findClient });
  const { assertions } = deps;
  const ofAssertions =
    assertions &&
    deps.createAuthentication<AssertingClient>({
      findClient,
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

  return {
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
      ...(deps.connections
        ? createConnectionEndpoints({ ...pages, connectionParts: deps.connections })
        : []),
      ...(deps.callApprovals
        ? createApprovalEndpoints({ ...pages, approvals: deps.callApprovals })
        : []),
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
