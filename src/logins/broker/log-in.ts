// §5.11: the provider has brought the browser back. Who logged in is found out here and not at the token endpoint, so that
// whoever may not is told so on a page.

import { fail, type GatewayError, toGatewayError } from '../../errors/gateway-error.ts';
import { createRedirectReply, type Reply } from '../../http/endpoint/message.ts';
import { describeOAuthError } from '../../http/endpoint/render-error.ts';
import type { FinishPageLogin } from '../account/finish-login.ts';
import type { Approvals } from '../consent/browser.ts';
import { nameUser } from '../grants/grant.ts';
import type { Identity } from '../identity/identity.ts';
import type { FindLoginRefusal, LoginRefusal } from '../identity/login-policy.ts';
import type { ReadIdentity } from '../identity/read-identity.ts';
import { addToRedirectUri } from '../redirect-uri.ts';
import type { FinishLogin } from './callback.ts';
import type { Codes } from './codes.ts';
import type { Logouts } from './logouts.ts';
import type { ProviderLogins } from './provider-login.ts';
import { renderUnusableAnswer, withoutUserDetails } from './provider-problem.ts';
import type { Login } from './redirect-to-provider.ts';
import type { EndedLogin, TellProvider } from './tell-provider.ts';

export interface LogInDeps {
  readonly baseUrl: string;
  /** The provider's. */
  readonly issuer: string;
  readonly codes: Pick<Codes, 'issue'>;
  readonly logouts: Pick<Logouts, 'isOver'>;
  readonly approvals: Pick<Approvals, 'confirm'>;
  /** Of what it gave for a login that came to nothing. */
  readonly tellProviderInTurn: TellProvider;
  readonly providerLogins: Pick<ProviderLogins, 'redeem'>;
  readonly readIdentity: ReadIdentity;
  readonly findLoginRefusal: FindLoginRefusal;
  readonly finishPageLogin: FinishPageLogin;
}

export function createLogIn(deps: LogInDeps): FinishLogin {
  const { baseUrl, issuer, codes, logouts, approvals, providerLogins, readIdentity } = deps;
  const { findLoginRefusal, finishPageLogin, tellProviderInTurn } = deps;

  return async function finishLogin(login, code, respond) {
    /** What the provider gave: it ends there where nobody gets anything for it. */
    let given: EndedLogin | undefined;
    try {
      const { codeVerifier, nonce, clientId, logoutMark, approval } = login;
      const redeemed = await providerLogins.redeem({ code, codeVerifier });
      const { answer, tokens: provider, problem } = redeemed;
      given = { user: undefined, provider };
      if (problem !== undefined) throw problem;
      const identity =
        (await readIdentity(answer, { nonce, earlier: undefined })) ?? failTokenRefused();
      const { user, sid } = identity;
      given = { user, provider };
      const refusal = findLoginRefusal(identity);
      if (refusal !== undefined) {
        void tellProviderInTurn(given);
        return refuse(refusal, login, identity);
      }
      // What is issued is judged again where it is used: this is for who reads it.
      if (await logouts.isOver({ user, clientId, sid, logoutMark })) {
        void tellProviderInTurn(given);
        return respondOver(identity);
      }
      // Who approved it was somebody else: whoever sits here now is asked.
      if (approval && !(await approvals.confirm(approval, { user, clientId, logoutMark }))) {
        void tellProviderInTurn(given);
        return {
          ...createRedirectReply(buildAuthorizeUrl(login.query)),
          facts: nameUser(user),
        };
      }
      if (login.account !== undefined) {
        const reply = await finishPageLogin(identity, login, answer.id_token);
        // Nobody keeps it. GitHub has room for ten of a user, and revokes the one of a client's login for the next.
        if (provider.isLasting) void tellProviderInTurn(given);
        return reply;
      }
      const { clientName, redirectUri, codeChallenge, scopes, resources } = login;
      const asked = { clientId, clientName, redirectUri, codeChallenge, scopes, resources };
      const issued = { ...asked, ...identity, logoutMark, provider };
      return respond([['code', await codes.issue(issued)]]);
    } catch (thrown) {
      if (given !== undefined) void tellProviderInTurn(given);
      const error = toGatewayError(thrown);
      return error.key === 'unusable_provider_answer' && login.account === undefined
        ? renderUnusableAnswer(error, buildErrorUrl(login, error))
        : respondWithError(error);
    }

    function respondOver({ user }: Identity): Reply {
      return {
        ...respond([
          ['error', 'access_denied'],
          ['error_description', OVER],
        ]),
        error: { key: 'login_not_allowed', message: OVER },
        facts: nameUser(user),
      };
    }

    /** The client waits for an answer, and its user sees it there. */
    function respondWithError(error: GatewayError): Reply {
      const { code: name = 'server_error', description } = describeOAuthError(
        withoutUserDetails(error, issuer),
      );
      const { cause, facts } = error.failure;
      return {
        ...respond([
          ['error', name],
          ['error_description', description],
        ]),
        error: { key: error.key, message: error.message, cause, logLevel: error.row.logLevel },
        ...(facts && { facts }),
      };
    }
  };

  /** For a client whose user is asked first. */
  function buildErrorUrl({ redirectUri, state }: Login, error: GatewayError): string {
    const { code, description } = describeOAuthError(error);
    return addToRedirectUri(redirectUri, [
      ['error', code],
      ['error_description', description],
      ['state', state],
      ['iss', baseUrl],
    ]);
  }

  function refuse(refusal: LoginRefusal, login: Login, { user }: Identity): Reply {
    const links = {
      retryUrl: login.account === undefined ? buildRetryUrl(login) : login.redirectUri,
      clientUrl: addToRedirectUri(login.redirectUri, [
        ['error', 'access_denied'],
        ['state', login.state],
        ['iss', baseUrl],
      ]),
    };
    return {
      ...refusal.renderPage(links),
      error: { key: 'login_not_allowed', message: refusal.forLog },
      facts: nameUser(user),
    };
  }

  /** The request of the client, as it was. */
  function buildAuthorizeUrl(query: string): string {
    return `${baseUrl}/oauth/authorize?${query}`;
  }

  /** Likewise, but that the provider asks for the account. */
  function buildRetryUrl({ query }: Login): string {
    const parameters = new URLSearchParams(query);
    parameters.set('prompt', 'select_account');
    return buildAuthorizeUrl(`${parameters}`);
  }
}

const OVER = 'All logins like this one were ended while it was under way. Log in again.';

const failTokenRefused = (): never =>
  fail('upstream_failed', {
    details: 'The identity provider does not accept the access token that it has just given.',
  });
