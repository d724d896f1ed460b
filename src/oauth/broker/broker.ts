// OAUTH_MODE=broker: an authorization server of its own before the provider's.

import type { ProviderEndpoints } from '../../auth/provider-metadata.ts';
import type { Config } from '../../config/config.ts';
import type { BrokerConfig } from '../../config/groups/oauth.ts';
import type { ProviderClientConfig } from '../../config/groups/provider-client.ts';
import type { ServerConfig } from '../../config/groups/server.ts';
import type { ConnectionServer } from '../../connections/connection.ts';
import type { ConnectionParts } from '../../connections/connections.ts';
import type { JudgedRequest } from '../../endpoint/endpoint.ts';
import type { Reply, RequestBody } from '../../endpoint/message.ts';
import { describeOAuthError } from '../../endpoint/render-error.ts';
import { fail, GatewayError } from '../../errors/gateway-error.ts';
import { isLoopbackHost } from '../../platform/address.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import type { CallApprovals } from '../../policy/approvals/approvals.ts';
import {
  createSealedRecords,
  type RecordsDeps,
  type SealedRecords,
} from '../../store/seal/sealed-records.ts';
import type { Audit } from '../../telemetry/audit/audit.ts';
import type { ClientDocuments } from '../client-id-metadata/client-documents.ts';
import type { Clients } from '../clients/clients.ts';
import type { Approvals, Browsers } from '../consent/browser.ts';
import type { RedirectToProvider } from '../consent/consent.ts';
import { createGatewayTokens } from '../gateway-tokens/gateway-tokens.ts';
import type { GatewayTokensParts } from '../gateway-tokens/open-gateway-tokens.ts';
import type { LogLogin, NoteClient } from '../provider/issued-tokens.ts';
import {
  authenticateClient,
  failIfProviderClientRefused,
  type ProviderApi,
  renderProviderResponse,
} from '../provider/provider-api.ts';
import { addToRedirectUri } from '../redirect-uri.ts';
import type { RecentAnswers } from '../refresh/recent-answers.ts';
import {
  type AuthorizationRequest,
  checkRequest,
  type ReadAuthorizationRequest,
  readClientAndRedirectUri,
} from '../request/authorization-request.ts';
import { type OwnResources, parseBody, readResourceIndicators } from '../request/parameters.ts';
import type { BrokerTokens } from './broker-tokens.ts';
import { type AuthorizationCode, createCallback, createKeepCode } from './callback.ts';
import { createObtainTokens, type ObtainTokensDeps } from './obtain-tokens.ts';
import { createBrokerRedirect, createReadAsked, type Login } from './redirect-to-provider.ts';
import { createRefreshTokens, type RefreshTokens } from './refresh-tokens.ts';
import { createFlightRecords, createRunOnce } from './run-once.ts';
import { createBrokerToken } from './token.ts';

/** `baseUrl` is the issuer of its own. */
export type BrokerSettings = BrokerConfig &
  OwnResources &
  Pick<ServerConfig, 'displayName'> &
  Pick<Config, 'admin'>;

export interface BrokerDeps {
  readonly records: RecordsDeps;
  readonly recentAnswers: RecentAnswers;
  readonly clock: Clock;
  readonly clients: Clients;
  readonly clientDocuments: ClientDocuments;
  readonly browsers: Browsers;
  readonly approvals: Approvals;
  readonly api: ProviderApi;
  readonly endpoints: ProviderEndpoints;
  readonly inspectToken: ObtainTokensDeps['inspectToken'];
  readonly noteClient: NoteClient;
  readonly logLogin: LogLogin;
  /** For OAUTH_TOKENS=gateway. */
  readonly gatewayTokens: GatewayTokensParts | undefined;
  /** Likewise. */
  /** Likewise: calls that users have to agree to (§27). */
  readonly callApprovals: CallApprovals | undefined;
  readonly connections: ConnectionParts | undefined;
  readonly listConnectionServers: () => readonly ConnectionServer[];
  /** Undefined without `AUDIT_LOG`. */
  readonly audit: Audit | undefined;
  readonly log: Log;
}

/** The user has ten minutes to log in, the client one to redeem its code. */
const LOGIN_TTL_SECONDS = 600;
const CODE_TTL_SECONDS = 60;

export interface Broker
  extends Pick<BrokerTokens, 'token' | 'revoke' | 'logins' | 'ownEndpoints' | 'findMachineLogin'> {
  readonly readRequest: ReadAuthorizationRequest;
  readonly redirectToProvider: RedirectToProvider;
  readonly callback: ReturnType<typeof createCallback>;
}

export function createBroker(config: BrokerSettings, deps: BrokerDeps): Broker {
  const { records, clients, browsers, approvals, endpoints } = deps;
  const { baseUrl, providerClient } = config;
  const logins = createSealedRecords<Login>(records, 'login', LOGIN_TTL_SECONDS);
  const { readAsked, finish, ...tokens } = createTokens(config, { ...deps, logins });
  return {
    ...tokens,
    readRequest: createBrokerRequestReader({ own: config, clients, browsers, approvals }),
    redirectToProvider: createBrokerRedirect({
      baseUrl,
      clientId: providerClient.id,
      readAsked,
      logins,
      endpoints,
    }),
    callback: createCallback({ baseUrl, browsers, logins, finish, endpoints }),
  };
}

function createTokens(
  config: BrokerSettings,
  deps: BrokerDeps & { readonly logins: SealedRecords<Login> },
): BrokerTokens {
  const { tokens } = config;
  if (tokens.kind === 'provider') return createProviderTokens(config, deps);
  const { gatewayTokens } = deps;
  if (gatewayTokens === undefined) throw new Error("The gateway's own tokens need grants");
  return createGatewayTokens(config, tokens, { ...deps, ...gatewayTokens });
}

/** Clients get what the provider gave. */
function createProviderTokens(config: BrokerSettings, deps: BrokerDeps): BrokerTokens {
  const { records, recentAnswers, clock, clients, api, endpoints } = deps;
  const { providerClient } = config;
  const codes = createSealedRecords<AuthorizationCode>(records, 'code', CODE_TTL_SECONDS);
  const refreshTokens = createRefreshTokens(records, config.refreshTtlSeconds);
  const obtainTokens = createObtainTokens({ ...deps, config, refreshTokens });
  return {
    readAsked: createReadAsked(config),
    finish: createKeepCode(codes),
    logins: recentAnswers,
    ownEndpoints: [],
    token: createBrokerToken({
      config,
      clients,
      api,
      codes,
      refreshTokens,
      recentAnswers,
      runOnce: createRunOnce(createFlightRecords(records), clock),
      obtainTokens,
      logLogin: deps.logLogin,
    }),
    revoke: createBrokerRevoke({
      providerClient,
      clients,
      api,
      endpoints,
      refreshTokens,
      recentAnswers,
    }),
  };
}

// RFC 7009: revocation in broker mode, forwarded and remembered.

interface BrokerRevokeDeps {
  readonly providerClient: ProviderClientConfig;
  readonly clients: Clients;
  readonly api: ProviderApi;
  readonly endpoints: ProviderEndpoints;
  readonly refreshTokens: RefreshTokens;
  readonly recentAnswers: RecentAnswers;
}

const createBrokerRevoke = (deps: BrokerRevokeDeps) =>
  async function revoke(body: RequestBody): Promise<JudgedRequest> {
    const { providerClient, clients, api, endpoints, refreshTokens, recentAnswers } = deps;
    const parameters = parseBody(body);
    const token = parameters.require('token');
    const clientId = parameters.require('client_id');
    const [{ owner, isRevoked, grantId }, grant] = await Promise.all([
      refreshTokens.find(token),
      recentAnswers.findGrant(token),
      clients.requireWithoutFetch(clientId),
    ]);
    // RFC 7009 §2.1: a token of another client is refused.
    if (owner !== undefined && owner !== clientId) {
      fail('invalid_grant', { details: 'The token was issued to another client.' });
    }
    // RFC 7009 §2.2: revoking once more is no error.
    if (isRevoked) return { runAnonymous: async () => REVOKED };
    const hint = parameters.get('token_type_hint');
    // The provider may know one that the gateway does not; anybody could have made it up.
    const isKnown = owner !== undefined || grant !== undefined;
    return isKnown ? forward : { runAnonymous: forward };

    async function forward(): Promise<Reply> {
      const latest = (await refreshTokens.findSuccessor(token)) ?? token;
      const form = [
        ['token', latest] as const,
        ...(hint === undefined ? [] : [['token_type_hint', hint] as const]),
      ];
      const url = await endpoints.findRevocationUrl();
      const response = await api.post(authenticateClient(providerClient, { url, form }));
      failIfProviderClientRefused(response);
      if (response.status >= 200 && response.status < 300) {
        const wasBound = owner !== undefined;
        const ended = grantId ?? grant?.grantId;
        await Promise.all([
          ...[token, latest].map((one) => refreshTokens.revoke(one, wasBound)),
          ended !== undefined && recentAnswers.end(ended),
        ]);
      }
      return renderProviderResponse(response);
    }
  };

const REVOKED: Reply = { status: 200, headers: { 'Cache-Control': 'no-store' } };

// RFC 6749 §4.1.2.1: a request that is wrong once its client and redirect URI are good is the
// client's matter, and the client is told.

interface ReadRequestDeps {
  readonly own: OwnResources;
  readonly clients: Clients;
  readonly browsers: Browsers;
  readonly approvals: Approvals;
}

function createBrokerRequestReader({
  own,
  clients,
  browsers,
  approvals,
}: ReadRequestDeps): ReadAuthorizationRequest {
  return async function readRequest(query, cookie) {
    const request = await readClientAndRedirectUri(query, clients);
    // One of the provider's own, by which everybody would get past the consent page.
    if (request.client === undefined) fail('unknown_client');
    try {
      checkRequest(request.parameters, RULES);
      readResourceIndicators(request.parameters, own);
      return request;
    } catch (error) {
      throw error instanceof GatewayError ? await addClientRedirect(error, request, cookie) : error;
    }
  };

  /**
   * RFC 9700 §4.11.2: anybody can register a client and send a user a link that fails, to have the
   * gateway's good name lead to a page of theirs. So the browser goes on by itself only where that
   * gains nothing, or where its user knows the client.
   */
  async function addClientRedirect(
    error: GatewayError,
    request: AuthorizationRequest,
    cookie: string | undefined,
  ): Promise<GatewayError> {
    const { redirectUri, parameters } = request;
    const { code, description } = describeOAuthError(error);
    const url = addToRedirectUri(redirectUri, [
      ['error', code],
      ['error_description', description],
      ['state', parameters.get('state')],
      ['iss', own.baseUrl],
    ]);
    const isAutomatic = isLoopback(redirectUri) || (await isClientApproved(request, cookie));
    return new GatewayError(error.key, {
      ...error.failure,
      details: error.message,
      redirect: { url, isAutomatic },
    });
  }

  async function isClientApproved(request: AuthorizationRequest, cookie: string | undefined) {
    const browserHash = browsers.readHash(cookie);
    return browserHash !== undefined && approvals.isClientApproved(request, browserHash);
  }
}

const RULES = { requiresState: false, requiresPlainScope: true };

/** A program of the user's own, which got there by other means than a link. */
function isLoopback(redirectUri: string): boolean {
  const { protocol, hostname } = new URL(redirectUri);
  return /^https?:$/.test(protocol) && isLoopbackHost(hostname);
}
