// OAUTH_MODE=proxy: clients are sent on to the provider, and their requests forwarded.

import type { ProxyConfig } from '../config/groups/oauth.ts';
import type { ProviderClientConfig } from '../config/groups/provider.ts';

import { fail } from '../errors/gateway-error.ts';
import type { JudgedRequest } from '../http/endpoint/endpoint.ts';
import type { PendingReply, Reply, RequestBody } from '../http/endpoint/message.ts';
import { OPERATORS_CLIENT_ID } from '../http/endpoint/own-clients.ts';
import { parseBody, type RequestParameters } from '../http/endpoint/parameters.ts';
import type { AuthenticatedForm } from '../http/oauth-client/client-authentication.ts';
import {
  authenticateClient,
  createProviderApi,
  type ProviderApi,
  type ProviderResponse,
  renderProviderResponse,
  requireClientId,
} from '../http/oauth-client/provider-api.ts';
import { generateSecret, hashSha256 } from '../platform/ids.ts';
import { parseObject } from '../platform/json.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { buildTokenClientKey } from '../store/keys.ts';
import type { KeyValue } from '../store/store.ts';
import type { TokenInspection } from './auth/token-verifier.ts';
import type { Client, Clients } from './clients/clients.ts';
import type { ModeAtEndpoints } from './endpoints.ts';
import {
  createRecentAnswers,
  readAskedTokens,
  type VerifyToken,
} from './refresh/recent-answers.ts';
import {
  type AuthorizationRequest,
  checkRequest,
  readClientAndRedirectUri,
} from './request/authorization-request.ts';
import { createLoginLog } from './request/login-facts.ts';

/** The store has notes of tokens, and recent answers. */
type ProxyRuntime = Pick<Runtime, 'fetch' | 'clock' | 'log'> & { readonly store: KeyValue };

/** Checks of a token of the provider. */
interface TokenChecks {
  /** Says what the gateway would of an access token, its signature aside. */
  readonly inspectToken: (token: string) => TokenInspection;
  readonly verifyToken: VerifyToken;
}

export function createProxy(
  runtime: ProxyRuntime,
  config: ProxyConfig,
  clients: Clients,
  { inspectToken, verifyToken }: TokenChecks,
): ModeAtEndpoints {
  const { endpoints, providerClient, consent } = config;
  const api = createProviderApi(runtime.fetch);
  const recentAnswers = createRecentAnswers(runtime, verifyToken);
  const logLogin = createLoginLog(runtime.log);
  const noteClient = createNoteClient(runtime);
  const rules = { requiresState: true, requiresPlainScope: consent.kind === 'page' };

  return {
    readRequest,
    redirectToProvider,
    token: requestTokens,
    revoke,
    logins: recentAnswers,
    findMachineLogin: undefined,
    ownEndpoints: [],
    ownPages: undefined,
    callback: undefined,
    issuer: undefined,
  };

  /** Errors are never redirected: the provider answers the client. */
  async function readRequest(query: string): Promise<AuthorizationRequest> {
    const request = await readClientAndRedirectUri(query, clients);
    checkRequest(request.parameters, rules);
    return request;
  }

  /** §4.6: a redirect to the provider. @throws GatewayError `not_configured`. */
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
  }

  /** RFC 7009: revocation, forwarded to the provider. */
  async function revoke(
    body: RequestBody,
    authorization: string | undefined,
  ): Promise<JudgedRequest> {
    const parameters = parseBody(body);
    const token = parameters.require('token');
    const clientId = parameters.get('client_id') ?? '';
    const isKnownClient = clients.isKnownClient(clientId);
    if (isKnownClient) await clients.require(clientId, 'unauthenticated_client');
    const url = endpoints.revocationUrl;
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
      const response = await forwardToProvider(api, providerClient, request).finally(endGrant);
      return renderProviderResponse(response);
    }
  }

  /** §4.7, RFC 6749 §4.1.3 and §6: a request for tokens, forwarded to the provider. */
  async function requestTokens(
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
    const url = endpoints.tokenUrl;
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
      const response = await forwardToProvider(api, providerClient, request);
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
  }
}

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

/** RFC 6749 §4.1.3, §6: by grant type. */
const REQUIRED = new Map<string, readonly string[]>([
  ['authorization_code', ['code', 'redirect_uri', 'client_id', 'code_verifier']],
  ['refresh_token', ['refresh_token', 'client_id']],
]);

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
  /** The gateway knows the caller; any other may be a client of the provider. */
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
  const headers: AuthenticatedForm['headers'] =
    authorization !== undefined && /^basic /i.test(authorization)
      ? { Authorization: authorization }
      : {};
  return api.post({ url, form, headers, usesProviderClient: false });
}

// §22.1: in proxy mode all tokens are made for the one client at the provider. Those that the operators' page got are noted when they
// are handed out.

/** Never rejects: without the note the token works, but not for operators. */
const createNoteClient = ({ store, clock, log }: ProxyRuntime) =>
  async function noteClient(token: unknown, clientId: string): Promise<void> {
    if (typeof token !== 'string' || clientId !== OPERATORS_CLIENT_ID) return;
    const ttlSeconds = Math.ceil(readExpiry(token) - clock.now() / 1000) + TOLERANCE_SECONDS;
    if (!(ttlSeconds > TOLERANCE_SECONDS)) return;
    try {
      await store.set(buildTokenClientKey(hashSha256(token)), clientId, ttlSeconds);
    } catch (error) {
      log.warn(
        "The store could not note that the operators' page got a token, so the token is of no use to operators. Log in there again.",
        { client: clientId, cause: error },
      );
    }
  };

/** A token counts a little longer than it says, because clocks differ. */
const TOLERANCE_SECONDS = 300;

/** Epoch seconds. The token came from the provider itself, by TLS: its claims need no check. */
function readExpiry(token: string): number {
  const claims = parseObject(Buffer.from(token.split('.')[1] ?? '', 'base64url'));
  return typeof claims?.exp === 'number' ? claims.exp : 0;
}
