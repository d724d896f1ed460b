// OAUTH_MODE=proxy: redirects clients to the provider, and forwards their requests.

import type { ProxyConfig } from '../config/groups/oauth.ts';
import { fail } from '../errors/gateway-error.ts';
import type { JudgedRequest } from '../http/endpoint/endpoint.ts';
import {
  type GatewayRequest,
  getHeader,
  type PendingReply,
  type RequestBody,
} from '../http/endpoint/message.ts';
import { OPERATORS_CLIENT_ID } from '../http/endpoint/own-clients.ts';
import { parseBody, type RequestParameters } from '../http/endpoint/parameters.ts';
import {
  authenticateClient,
  createProviderApi,
  renderProviderResponse,
  requireClientId,
} from '../http/oauth-client/provider-api.ts';
import { readUnverifiedClaims } from '../http/oauth-client/token-answer.ts';
import { generateSecret, hashSha256 } from '../platform/ids.ts';
import { parseObject } from '../platform/json.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { buildTokenClientKey } from '../store/keys.ts';
import type { Auth } from './auth/auth.ts';
import type { Clients } from './clients/clients.ts';
import type { ModeAtEndpoints } from './endpoints.ts';
import { createRecentAnswers, readAskedTokens } from './refresh/recent-answers.ts';
import {
  type AuthorizationRequest,
  checkRequest,
  readClientAndRedirectUri,
} from './request/authorization-request.ts';
import { logLogin } from './request/login-facts.ts';

export function createProxy(
  runtime: Runtime,
  config: ProxyConfig,
  clients: Clients,
  { inspectToken, verifyToken }: Auth,
): ModeAtEndpoints {
  const { endpoints, providerClient, consent } = config;
  const { store, clock, log } = runtime;
  const api = createProviderApi(runtime.fetch);
  const recentAnswers = createRecentAnswers(runtime, verifyToken);
  const rules = { requiresState: true, requiresPlainScope: consent.kind === 'page' };

  return {
    readRequest,
    redirectToProvider,
    token: requestTokens,
    revoke,
    logins: recentAnswers,
    ownEndpoints: [],
  };

  /** Errors are never redirected: the provider answers the client. */
  async function readRequest(query: string) {
    const request = await readClientAndRedirectUri(query, clients);
    checkRequest(request.parameters, rules);
    return request;
  }

  /** §4.6: redirects to the provider. The query of the configured URL is kept and wins; all parameters of the caller follow. */
  async function redirectToProvider({ parameters, client, clientId }: AuthorizationRequest) {
    const url = new URL(requireUrl(endpoints.authorizationUrl, 'OAUTH_AUTHORIZATION_URL'));
    const providerClientId = client ? requireClientId(providerClient) : clientId;
    const query = new URLSearchParams();
    for (const [name, value] of parameters.pairs) {
      if (url.searchParams.has(name)) continue;
      query.append(name, name === 'client_id' ? providerClientId : value);
    }
    const separator = url.search === '' ? '?' : '&';
    return {
      status: 302,
      headers: {
        Location: `${url.href.replace(/[?&]$/, '')}${separator}${query}`,
        'Cache-Control': 'no-store',
      },
    };
  }

  /** RFC 7009: forwards a revocation to the provider. */
  async function revoke(request: GatewayRequest, body: RequestBody): Promise<JudgedRequest> {
    const authorization = getHeader(request, 'authorization');
    const parameters = parseBody(body);
    const token = parameters.require('token');
    const clientId = parameters.get('client_id') ?? '';
    const isKnownClient = clients.isKnownClient(clientId);
    if (isKnownClient) await clients.require(clientId, 'unauthenticated_client');
    const url = requireUrl(endpoints.revocationUrl, 'OAUTH_REVOCATION_URL');
    // The provider may know a token that the gateway does not know; any stranger could have made it up.
    const grant = await recentAnswers.findGrant(token);
    return grant ? revokeThere : { runAnonymous: revokeThere };

    async function revokeThere() {
      const endAnswers = async () => grant && recentAnswers.end(grant.grantId);
      await endAnswers();
      // Responses in flight may date from before the provider revoked the token.
      return renderProviderResponse(
        await forward(url, parameters, authorization, isKnownClient).finally(endAnswers),
      );
    }
  }

  /** §4.7, RFC 6749 §4.1.3 and §6: forwards a token request to the provider. */
  async function requestTokens(request: GatewayRequest, body: RequestBody): Promise<PendingReply> {
    const authorization = getHeader(request, 'authorization');
    const parameters = parseBody(body);
    const grantType = parameters.require('grant_type');
    const required = REQUIRED.get(grantType) ?? fail('unsupported_grant_type');
    for (const name of required) parameters.require(name);
    const clientId = parameters.require('client_id');
    const isRefresh = grantType === 'refresh_token';
    const isKnownClient = clients.isKnownClient(clientId);
    const client = isKnownClient
      ? await clients.require(clientId, 'unauthenticated_client')
      : undefined;
    const redirectUri = parameters.get('redirect_uri') ?? '';
    if (client && !isRefresh && !clients.allowsRedirectUri(client, redirectUri))
      fail('invalid_grant');
    const url = requireUrl(endpoints.tokenUrl, 'OAUTH_TOKEN_URL');
    const used = isRefresh ? parameters.require('refresh_token') : undefined;
    const asked = readAskedTokens(parameters, clientId);
    // A client of the provider may have its own credentials, which only the provider can check.
    const canRecall = client !== undefined && client.kind !== 'own';
    const login = { clientId, clientName: client?.name, isRefresh };
    return async function recallOrForward() {
      const [kept, grant] = used
        ? await Promise.all([
            canRecall ? recentAnswers.find(used, clientId) : undefined,
            recentAnswers.findGrant(used),
          ])
        : [];
      const recalled = kept && (await recentAnswers.recall(kept, asked));
      if (recalled) {
        const facts = logLogin(log, { ...login, user: recalled.user, isLastAnswer: true });
        return { ...recalled.reply, facts };
      }
      // Simultaneous refreshes with an unknown token belong to the same grant.
      const newId = used ? hashSha256(JSON.stringify([clientId, used])) : generateSecret();
      const grantId = grant?.grantId ?? newId;
      const mark = canRecall && isRefresh ? await recentAnswers.readMark(grantId) : undefined;
      const response = await forward(url, parameters, authorization, isKnownClient);
      // A refusal with status 200 is forwarded unchanged, and is not a login.
      if (response.status !== 200 || response.refusal !== undefined) {
        // The grant may be known only since another, simultaneous refresh was answered.
        const refused = grant ?? (used ? await recentAnswers.findGrant(used) : undefined);
        await recentAnswers.endAfterRefusal(refused?.grantId, response.status);
        return renderProviderResponse(response);
      }
      const tokens = parseObject(response.body) ?? {};
      const { access_token: accessToken } = tokens;
      await Promise.all([
        canRecall && recentAnswers.keep({ asked, grantId, mark, used, tokens }),
        client && clients.recordUse(client),
        // A code is bound to its redirect URI, and so to its client. A refresh token may belong to any client.
        client && !isRefresh && noteClient(accessToken, client.id),
      ]);
      const user = typeof accessToken === 'string' ? inspectToken(accessToken).sub : undefined;
      return { ...renderProviderResponse(response), facts: logLogin(log, { ...login, user }) };
    };
  }

  /**
   * §4.7: for a client of the gateway, sends the gateway's own credentials at the provider. Requests of any other caller, which may
   * be a client of the provider, are forwarded as received, with their own Basic header and never with the gateway's secret.
   */
  function forward(
    url: string,
    { pairs: form }: RequestParameters,
    authorization: string | undefined,
    isKnownClient: boolean,
  ) {
    if (isKnownClient) return api.post(authenticateClient(providerClient, { url, form }));
    const isBasic = authorization !== undefined && /^basic /i.test(authorization);
    const headers = isBasic ? { Authorization: authorization } : {};
    return api.post({ url, form, headers, usesProviderClient: false });
  }

  /**
   * §22.1: in proxy mode, all tokens are issued to the one client at the provider. Those that the operators' page gets are
   * recorded when they are issued. Never rejects: without the record the token works, but not for operators.
   */
  async function noteClient(token: unknown, clientId: string) {
    if (typeof token !== 'string' || clientId !== OPERATORS_CLIENT_ID) return;
    // The token came directly from the provider, over TLS: its claims need no check.
    const { exp } = readUnverifiedClaims(token) ?? {};
    const end = typeof exp === 'number' ? exp : 0;
    const ttlSeconds = Math.ceil(end - clock.now() / 1000) + TOLERANCE_SECONDS;
    if (!(ttlSeconds > TOLERANCE_SECONDS)) return;
    try {
      await store.set(buildTokenClientKey(hashSha256(token)), clientId, ttlSeconds);
    } catch (error) {
      log.warn(
        "The store could not note that the operators' page got a token, so the token is of no use to operators. Log in there again.",
        { client: clientId, cause: error },
      );
    }
  }
}

/** @throws GatewayError `not_configured`. */
const requireUrl = (url: string | undefined, setting: string) =>
  url ?? fail('not_configured', { details: `${setting} is not set on this gateway.` });

/** Extra lifetime of the record, because clocks differ. */
const TOLERANCE_SECONDS = 300;

/** RFC 6749 §4.1.3, §6: required parameters by grant type. */
const REQUIRED = new Map<string, readonly string[]>([
  ['authorization_code', ['code', 'redirect_uri', 'client_id', 'code_verifier']],
  ['refresh_token', ['refresh_token', 'client_id']],
]);
