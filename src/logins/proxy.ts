// OAUTH_MODE=proxy: clients are sent on to the provider, and their requests forwarded.

import type { ProxyConfig } from '../config/groups/oauth.ts';
import type { ProviderClientConfig } from '../config/groups/provider.ts';
import { fail } from '../errors/gateway-error.ts';
import type { JudgedRequest } from '../http/endpoint/endpoint.ts';
import type { PendingReply, Reply, RequestBody } from '../http/endpoint/message.ts';
import { parseBody, type RequestParameters } from '../http/endpoint/parameters.ts';
import {
  authenticateClient,
  type ProviderApi,
  type ProviderResponse,
  renderProviderResponse,
  requireClientId,
} from '../http/oauth-client/provider-api.ts';
import { generateSecret, hashSha256 } from '../platform/ids.ts';
import { parseObject } from '../platform/json.ts';
import type { TokenInspection } from './auth/token-verifier.ts';
import type { Client, Clients } from './clients/clients.ts';
import type { RedirectToProvider } from './consent/consent.ts';
import type { LogLogin, NoteClient } from './provider/issued-tokens.ts';
import type { RecentAnswers } from './refresh/recent-answers.ts';
import {
  type AuthorizationRequest,
  checkRequest,
  type ReadAuthorizationRequest,
  readClientAndRedirectUri,
} from './request/authorization-request.ts';
import { readAskedTokens } from './request/parameters.ts';

export interface ProxyDeps {
  readonly clients: Clients;
  readonly api: ProviderApi;
  readonly recentAnswers: RecentAnswers;
  readonly logLogin: LogLogin;
  readonly noteClient: NoteClient;
  /** What the gateway would say of an access token, its signature aside. */
  readonly inspectToken: (token: string) => TokenInspection;
}

export interface ProxyHandlers {
  readonly readRequest: ReadAuthorizationRequest;
  readonly redirectToProvider: RedirectToProvider;
  readonly token: ReturnType<typeof createProxyToken>;
  readonly revoke: ReturnType<typeof createProxyRevoke>;
}

export function createProxy(config: ProxyConfig, deps: ProxyDeps): ProxyHandlers {
  const { clients } = deps;
  const rules = { requiresState: true, requiresPlainScope: config.consent.kind === 'page' };
  return {
    // Errors are never redirected: the provider answers the client.
    async readRequest(query) {
      const request = await readClientAndRedirectUri(query, clients);
      checkRequest(request.parameters, rules);
      return request;
    },
    redirectToProvider: createProxyRedirect(config),
    token: createProxyToken(config, deps),
    revoke: createProxyRevoke(config, deps),
  };
}

// §4.6: the authorization endpoint of proxy mode, a redirect to the provider.

/** @throws GatewayError `not_configured`. */
const createProxyRedirect = ({ endpoints, providerClient }: ProxyConfig) =>
  async function redirectToProvider({
    parameters,
    client,
    clientId,
  }: AuthorizationRequest): Promise<Reply> {
    const url = endpoints.authorizationUrl;
    if (url === undefined) {
      fail('not_configured', { details: 'OAUTH_AUTHORIZATION_URL is not set on this gateway.' });
    }
    const providerClientId = client ? requireClientId(providerClient) : clientId;
    return {
      status: 302,
      headers: {
        Location: buildAuthorizationUrl(url, parameters, providerClientId),
        'Cache-Control': 'no-store',
      },
    };
  };

/** The configured query is kept and wins; every parameter of the caller follows (§4.6). */
function buildAuthorizationUrl(
  configuredUrl: string,
  { pairs }: RequestParameters,
  clientId: string,
): string {
  const url = new URL(configuredUrl);
  const query = new URLSearchParams();
  for (const [name, value] of pairs) {
    if (!url.searchParams.has(name)) query.append(name, name === 'client_id' ? clientId : value);
  }
  const separator = url.search === '' ? '?' : '&';
  return `${url.href.replace(/[?&]$/, '')}${separator}${query}`;
}

// RFC 7009: revocation in proxy mode, forwarded to the provider.

const createProxyRevoke = (config: ProxyConfig, { clients, api, recentAnswers }: ProxyDeps) =>
  async function revoke(
    body: RequestBody,
    authorization: string | undefined,
  ): Promise<JudgedRequest> {
    const parameters = parseBody(body);
    const token = parameters.require('token');
    const clientId = parameters.get('client_id') ?? '';
    const isKnownClient = clients.isKnownClient(clientId);
    if (isKnownClient) await clients.require(clientId, 'unauthenticated_client');
    const url = config.endpoints.revocationUrl;
    if (url === undefined) {
      fail('not_configured', { details: 'OAUTH_REVOCATION_URL is not set on this gateway.' });
    }
    const request = { url, parameters, authorization, isKnownClient };
    // The provider may know one that the gateway does not; anybody could have made it up.
    const grant = await recentAnswers.findGrant(token);
    return grant ? forward : { runAnonymous: forward };

    async function forward(): Promise<Reply> {
      const endGrant = async () => grant && recentAnswers.end(grant.grantId);
      await endGrant();
      // Answers under way may be from before the provider revoked the token.
      const response = await forwardToProvider(api, config.providerClient, request).finally(
        endGrant,
      );
      return renderProviderResponse(response);
    }
  };

// §4.7, RFC 6749 §4.1.3 and §6: the token endpoint of proxy mode, forwarded to the provider.

/** RFC 6749 §4.1.3, §6: by grant type. */
const REQUIRED = new Map<string, readonly string[]>([
  ['authorization_code', ['code', 'redirect_uri', 'client_id', 'code_verifier']],
  ['refresh_token', ['refresh_token', 'client_id']],
]);

const createProxyToken = (
  config: ProxyConfig,
  { clients, api, recentAnswers, logLogin, noteClient, inspectToken }: ProxyDeps,
) =>
  async function token(
    body: RequestBody,
    authorization: string | undefined,
  ): Promise<PendingReply> {
    const parameters = parseBody(body);
    const grantType = parameters.require('grant_type');
    const required = REQUIRED.get(grantType) ?? fail('unsupported_grant_type');
    for (const name of required) parameters.require(name);
    const clientId = parameters.require('client_id');
    const isKnownClient = clients.isKnownClient(clientId);
    const client = isKnownClient ? await requireClient(clientId, parameters, clients) : undefined;
    const url = config.endpoints.tokenUrl;
    if (url === undefined) {
      fail('not_configured', { details: 'OAUTH_TOKEN_URL is not set on this gateway.' });
    }
    const isRefresh = grantType === 'refresh_token';
    const used = isRefresh ? parameters.require('refresh_token') : undefined;
    const asked = readAskedTokens(parameters, clientId);
    // A client of the provider may have credentials of its own there, which only the provider can check.
    const canRecall = client !== undefined && client.kind !== 'own';
    return async function recallOrForward() {
      const [kept, grant] = used
        ? await Promise.all([
            canRecall ? recentAnswers.find(used, clientId) : undefined,
            recentAnswers.findGrant(used),
          ])
        : [];
      const recalled = kept && (await recentAnswers.recall(kept, asked));
      if (recalled) {
        const issued = { clientId, clientName: client?.name, user: recalled.user };
        const facts = logLogin({ ...issued, isRefresh: true, isLastAnswer: true });
        return { ...recalled.reply, facts };
      }
      const grantId = grant?.grantId ?? nameGrant(clientId, used);
      const mark = canRecall && isRefresh ? await recentAnswers.readMark(grantId) : undefined;
      const request = { url, parameters, authorization, isKnownClient };
      const response = await forwardToProvider(api, config.providerClient, request);
      // A refusal with status 200 goes on as it is, and is no login.
      if (response.status !== 200 || response.refusal !== undefined) {
        // Its grant may be known only since another refresh, at the same moment, was answered.
        const refused = grant ?? (used ? await recentAnswers.findGrant(used) : undefined);
        await recentAnswers.endAfterRefusal(refused?.grantId, response.status);
        return renderProviderResponse(response);
      }
      const tokens = parseObject(response.body) ?? {};
      const { access_token: accessToken } = tokens;
      await Promise.all([
        canRecall && recentAnswers.keep({ asked, grantId, mark, used, tokens }),
        client && clients.recordUse(client),
        // A code is bound to its redirect URI, and so to its client. A refresh token may be any client's.
        client && !isRefresh && noteClient(accessToken, client.id),
      ]);
      const user = typeof accessToken === 'string' ? inspectToken(accessToken).sub : undefined;
      const facts = logLogin({ clientId, clientName: client?.name, user, isRefresh });
      return { ...renderProviderResponse(response), facts };
    };
  };

/** Two refreshes at once with a token that is not known yet are of one grant. */
const nameGrant = (clientId: string, used: string | undefined): string =>
  used === undefined ? generateSecret() : hashSha256(JSON.stringify([clientId, used]));

async function requireClient(
  clientId: string,
  parameters: RequestParameters,
  clients: Clients,
): Promise<Client> {
  const client = await clients.require(clientId, 'unauthenticated_client');
  const isCode = parameters.get('grant_type') === 'authorization_code';
  if (isCode && !clients.allowsRedirectUri(client, parameters.require('redirect_uri')))
    fail('invalid_grant');
  return client;
}

// §4.7: with whose credentials a request goes on to the provider.

interface ForwardedRequest {
  readonly url: string;
  readonly parameters: RequestParameters;
  /** The caller's Authorization header. */
  readonly authorization: string | undefined;
  /** Whether the gateway knows the caller; any other may be a client of the provider. */
  readonly isKnownClient: boolean;
}

/**
 * A client of the gateway is replaced by the provider's; any other caller goes on as it came, with
 * its own Basic header and never with our secret.
 */
function forwardToProvider(
  api: ProviderApi,
  client: ProviderClientConfig,
  { url, parameters: { pairs: form }, authorization, isKnownClient }: ForwardedRequest,
): Promise<ProviderResponse> {
  if (isKnownClient) return api.post(authenticateClient(client, { url, form }));
  const headers: Record<string, string> =
    authorization !== undefined && /^basic /i.test(authorization)
      ? { Authorization: authorization }
      : {};
  return api.post({ url, form, headers, usesProviderClient: false });
}
