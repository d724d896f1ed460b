// §5.11: the provider has brought the browser back. Who logged in is found out here and not at the token endpoint, so that
// whoever may not is told so on a page.
import type { Reply } from '../../endpoint/message.ts';
import { describeOAuthError } from '../../endpoint/render-error.ts';
import { GatewayError, toGatewayError } from '../../errors/gateway-error.ts';
import type { Grant } from '../../grants/grant.ts';
import type { SealedRecords } from '../../store/seal/sealed-records.ts';
import type { Account } from '../account/account.ts';
import type { FinishLogin } from '../broker/callback.ts';
import type { Login } from '../broker/redirect-to-provider.ts';
import type { Identity } from '../identity/identity.ts';
import type { FindLoginRefusal, LoginRefusal } from '../identity/login-policy.ts';
import type { ReadIdentity } from '../identity/read-identity.ts';
import { addToRedirectUri } from '../redirect-uri.ts';
import type { ProviderLogins } from './provider-login.ts';

/** What a code of the gateway's own stands for; found by the code. */
export interface GrantCode
  extends Pick<Login, 'clientId' | 'clientName' | 'redirectUri' | 'codeChallenge'>,
    Pick<
      Grant,
      'scopes' | 'resources' | 'user' | 'claims' | 'userinfoClaims' | 'sid' | 'provider'
    > {}

export interface LogInDeps {
  readonly baseUrl: string;
  readonly codes: SealedRecords<GrantCode>;
  readonly providerLogins: Pick<ProviderLogins, 'redeem'>;
  readonly readIdentity: ReadIdentity;
  readonly findLoginRefusal: FindLoginRefusal;
  /** A login for the gateway's own page. */
  readonly finishAccount: Account['finish'];
}

export function createLogIn(deps: LogInDeps): FinishLogin {
  const { baseUrl, codes, providerLogins, readIdentity, findLoginRefusal, finishAccount } = deps;

  return async function finishLogin(login, code, respond) {
    try {
      const { codeVerifier, nonce } = login;
      const { answer, tokens: provider } = await providerLogins.redeem({ code, codeVerifier });
      const identity = await readIdentity(answer, { nonce, earlier: undefined });
      const refusal = findLoginRefusal(identity);
      if (refusal !== undefined) return refuse(refusal, login, identity);
      if (login.account !== undefined) return await finishAccount(identity, login.account);
      const { clientId, clientName, redirectUri, codeChallenge, scopes = [], resources } = login;
      const asked = { clientId, clientName, redirectUri, codeChallenge, scopes, resources };
      return respond([['code', await codes.put({ ...asked, ...identity, provider })]]);
    } catch (thrown) {
      return respondWithError(thrown);
    }

    /** The client waits for an answer, and its user sees it there. */
    function respondWithError(thrown: unknown): Reply {
      const error = toGatewayError(thrown);
      const { code: name = 'server_error', description } = describeOAuthError(
        withoutDetails(error),
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
      facts: { user: user.sub },
    };
  }

  /** The request of the client, as it was. */
  function buildRetryUrl({ clientId, redirectUri, state, codeChallenge, ...login }: Login): string {
    const { scopes = [], resources } = login;
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: clientId,
      redirect_uri: redirectUri,
      ...(state !== undefined && { state }),
      code_challenge: codeChallenge,
      code_challenge_method: 'S256',
      ...(scopes.length > 0 && { scope: scopes.join(' ') }),
      prompt: 'select_account',
    });
    for (const resource of resources) query.append('resource', resource);
    return `${baseUrl}/oauth/authorize?${query}`;
  }
}

/** What the provider says of a user is not for a client that has no grant yet: the log has it. */
const withoutDetails = (error: GatewayError): GatewayError =>
  ABOUT_USERS.has(error.key) ? new GatewayError(error.key) : error;

const ABOUT_USERS: ReadonlySet<string> = new Set(['unusable_id_token', 'unusable_identity']);
