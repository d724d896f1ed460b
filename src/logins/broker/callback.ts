// §5.11: the provider sends the browser back, and the gateway sends it on to the client with its own code.

import { fail, GatewayError, toGatewayError } from '../../errors/gateway-error.ts';
import type { JudgedRequest } from '../../http/endpoint/endpoint.ts';
import {
  createRedirectReply,
  type GatewayRequest,
  getHeader,
  type Reply,
} from '../../http/endpoint/message.ts';
import { failRequest, parseQuery, type RequestParameters } from '../../http/endpoint/parameters.ts';
import {
  describeOAuthError,
  OAUTH,
  renderErrorPage,
  toLogMembers,
} from '../../http/endpoint/render-error.ts';
import {
  CHECK_PROVIDER_CLIENT,
  isClientError,
  MISCONFIGURED,
} from '../../http/oauth-client/provider-api.ts';
import type { ProviderEndpoints } from '../../http/oauth-client/provider-metadata.ts';
import { truncateForLog } from '../../platform/log.ts';
import { toErrorDescription, toSentence } from '../../platform/text.ts';
import type { FinishPageLogin } from '../account/browser-sessions.ts';
import { nameUser, type UserIdentity } from '../grants/grant.ts';
import type { LoginRefusal } from '../identity/login-policy.ts';
import type { Parties } from '../parties.ts';
import { addToRedirectUri } from '../redirect-uri.ts';
import { addFacts } from '../request/login-facts.ts';
import { ENDED_MEANWHILE } from './authorization-code.ts';
import type { EndedLogin } from './ends.ts';
import type { Login } from './login.ts';
import type { Broker } from './open-broker.ts';

export function createCallback(
  broker: Broker,
  { browsers, approvals }: Parties,
  finishPageLogin: FinishPageLogin,
) {
  const { codes, endpoints, logins, providerLogins } = broker;
  const { oauth, baseUrl } = broker.runtime;
  const { logouts, revokeAtProviderInTurn } = broker.ends;

  /** The authorization response (RFC 6749 §4.1.2). */
  const buildAnswerUrl = ({ redirectUri, state }: Login, pairs: Pairs) =>
    addToRedirectUri(redirectUri, [...pairs, ['state', state], ['iss', baseUrl]]);
  const respond = (login: Login, pairs: Pairs) => createRedirectReply(buildAnswerUrl(login, pairs));
  const buildAuthorizeUrl = (query: string) => `${baseUrl}/oauth/authorize?${query}`;

  return async function callback({ query, headers }: GatewayRequest): Promise<JudgedRequest> {
    const cookie = getHeader({ headers }, 'cookie');
    // Providers may add further parameters.
    const parameters = parseQuery(query, () => {});
    const state = parameters.require('state');
    const { clientId } = (await logins.get(state)) ?? failLoginExpired();
    return addFacts({ client: truncateForLog(clientId) }, finish);

    /** Runs once the request is counted. */
    async function finish(): Promise<Reply> {
      // Used up in any case: a code that reached a different browser is in its address bar, and must be useless to the attacker
      // who began the login.
      const login = (await logins.take(state)) ?? failLoginExpired();
      if (login.browser !== browsers.readHash(cookie))
        failRequest(
          'This login was started in another browser, or cookies are turned off. Turn on cookies and log in again from your app.',
        );
      await checkResponseIssuer(parameters, login, endpoints);
      const code = parameters.get('code');
      return code === undefined ? forwardError(parameters, login) : finishLogin(login, code);
    }
  };

  /** Requests the user from the provider here and not at the token endpoint, so that users who may not log in see a page. */
  async function finishLogin(login: Login, code: string): Promise<Reply> {
    // The provider's tokens are revoked in the end, unless a code leads to them. Those of a login of a page are never stored: once
    // the page has its session, they are left to expire, or revoked if they never would.
    let toRevoke: EndedLogin | undefined;
    try {
      const { nonce, clientId, logoutMark, approval } = login;
      const redeemed = await providerLogins.redeem(code, login.codeVerifier);
      const { answer, tokens: provider, problem } = redeemed;
      toRevoke = { user: undefined, provider };
      if (problem !== undefined) throw problem;
      const identity = await providerLogins.readIdentity(answer, { nonce, earlier: undefined });
      if (identity === undefined) return fail('upstream_failed', { details: TOKEN_REFUSED });
      const { user, sid } = identity;
      toRevoke = { user, provider };
      const refusal = providerLogins.findLoginRefusal(identity);
      if (refusal !== undefined) return refuse(refusal, login, user);
      // Checked again when the code is redeemed: this check is for the user in front of the browser.
      if (await logouts.isOver({ user, clientId, sid, logoutMark })) {
        const error = { key: 'login_not_allowed', message: ENDED_MEANWHILE };
        return {
          ...respond(login, listError('access_denied', ENDED_MEANWHILE)),
          error,
          facts: nameUser(user),
        };
      }
      // A different user gave the approval: this one is asked.
      if (approval && !(await approvals.confirm(approval, user, clientId, logoutMark)))
        return { ...createRedirectReply(buildAuthorizeUrl(login.query)), facts: nameUser(user) };
      if (login.account !== undefined) {
        const reply = await finishPageLogin(identity, login, answer.id_token);
        // GitHub has room for ten lasting tokens per user, and would revoke that of a client's login for the next.
        if (!provider.isLasting) toRevoke = undefined;
        return reply;
      }
      const { clientName, redirectUri, codeChallenge, scopes, resources } = login;
      const asked = { clientId, clientName, redirectUri, codeChallenge, scopes, resources };
      const issued = await codes.put({ ...asked, ...identity, logoutMark, provider });
      toRevoke = undefined;
      return respond(login, [['code', issued]]);
    } catch (thrown) {
      return respondToFailure(login, toGatewayError(thrown));
    } finally {
      if (toRevoke !== undefined) void revokeAtProviderInTurn(toRevoke);
    }
  }

  /** The client gets the error and shows it to its user; an unusable answer becomes a page. */
  function respondToFailure(login: Login, error: GatewayError): Reply {
    if (error.key === 'unusable_provider_answer' && login.account === undefined) {
      const { code, description } = describeOAuthError(error);
      // The details are in the log; a link leads back to the client.
      const url = buildAnswerUrl(login, listError(code, description));
      const redirect = { url, isAutomatic: false };
      const shown = new GatewayError(error.key, { details: error.message, redirect });
      return { ...renderErrorPage(shown, OAUTH), ...toLogMembers(error) };
    }
    const { code = 'server_error', description } = describeOAuthError(
      withoutUserDetails(error, oauth.provider.issuer),
    );
    const { cause, facts } = error.failure;
    return {
      ...respond(login, listError(code, description)),
      error: { key: error.key, message: error.message, cause, logLevel: error.row.logLevel },
      ...(facts && { facts }),
    };
  }

  function refuse(refusal: LoginRefusal, login: Login, user: UserIdentity): Reply {
    // The client's request again, except that the provider lets the user choose an account.
    const again = new URLSearchParams(login.query);
    again.set('prompt', 'select_account');
    const page = refusal.renderPage(
      login.account === undefined ? buildAuthorizeUrl(`${again}`) : login.redirectUri,
      buildAnswerUrl(login, listError('access_denied')),
    );
    const error = { key: 'login_not_allowed', message: refusal.forLog };
    return { ...page, error, facts: nameUser(user) };
  }

  /**
   * RFC 6749 §4.1.2.1: forwards the provider's error, unless it is about the gateway's own client, which the client does not know.
   */
  function forwardError(parameters: RequestParameters, login: Login): Reply {
    const error = readErrorText(parameters, 'error') ?? 'server_error';
    const description = readErrorText(parameters, 'error_description');
    const providerError = toSentence(
      description === undefined ? error : `${error}: ${description}`,
    );
    const message = `The provider said ${providerError}`;
    if (!isClientError(error))
      return {
        ...respond(login, listError(error, description)),
        error: { key: 'refused_by_provider', message },
      };
    const details = `${MISCONFIGURED} The identity provider said ${providerError}`;
    return {
      ...respond(login, listError('server_error', details)),
      error: {
        key: 'gateway_refused_by_provider',
        message: `${message} ${CHECK_PROVIDER_CLIENT}`,
        logLevel: 'warn',
      },
    };
  }
}

type Pairs = Parameters<typeof addToRedirectUri>[1];

const listError = (code: string | undefined, description?: string): Pairs => [
  ['error', code],
  ['error_description', description],
];

/** Maximum length of the provider's error text, in characters. */
const MAX_ERROR_TEXT = 500;

const readErrorText = (parameters: RequestParameters, name: string) => {
  const text = parameters.get(name);
  return text === undefined ? undefined : toErrorDescription(text).slice(0, MAX_ERROR_TEXT);
};

const failLoginExpired = (): never =>
  failRequest('This login has expired or is already finished. Start it again from your app.');

/**
 * RFC 9207 §2.4: rejects the response of another authorization server (mix-up).
 *
 * If the provider's metadata could be read neither when the login began nor now, `iss` may be missing: some providers have no
 * discovery document at all, and most send no `iss`. Only one provider ever sends browsers to this callback, and an `iss` that is
 * present must be its own in any case.
 */
async function checkResponseIssuer(
  parameters: RequestParameters,
  login: Login,
  endpoints: ProviderEndpoints,
) {
  const issuer = parameters.get('iss');
  if (issuer === endpoints.issuer) return;
  const sendsIssuer = login.sendsIssuer ?? (await endpoints.sendsIssuer()) ?? false;
  if (issuer === undefined && !sendsIssuer) return;
  fail('oauth_invalid_request', {
    details: 'The response came from another identity provider than the one that was asked.',
    facts: { found: issuer, expected: endpoints.issuer },
  });
}

const TOKEN_REFUSED =
  'The identity provider does not accept the access token that it has just issued.';

// Unusable answers from the provider. Only operators of the provider or the gateway can fix them: users see which member of which
// response is the problem.

/** Details about the user are not for a client without a grant. */
function withoutUserDetails(error: GatewayError, issuer: string) {
  const { key, row, failure } = error;
  const describePlace = PLACES.get(key);
  if (describePlace === undefined) return error;
  const { member } = failure.facts ?? {};
  const place = describePlace(typeof member === 'string' ? member : undefined);
  return new GatewayError(key, {
    details: `${row.details} ${place} was rejected (${issuer}). See the gateway log for details.`,
  });
}

const PLACES: ReadonlyMap<string, (member: string | undefined) => string> = new Map([
  ['unusable_id_token', (claim) => (claim ? `The ID token's ${claim} claim` : 'The ID token')],
  [
    'unusable_identity',
    (member) => `The information about the user${member ? ` (${member})` : ''}`,
  ],
]);
