// §5.11, §24.3: whoever comes to a page of the gateway's own without a session is sent to the provider to log in for it.
import { createRedirectReply } from '../../http/endpoint/message.ts';
import { ACCOUNT_CLIENT_ID } from '../../http/endpoint/own-clients.ts';
import type { BeginLogin, Browsers } from '../../http/endpoint/own-pages.ts';
import type { ProviderEndpoints } from '../../http/oauth-client/provider-metadata.ts';
import type { Clock } from '../../platform/clock.ts';
import { generateSecret } from '../../platform/ids.ts';
import type { SecretRecords } from '../../store/records.ts';
import type { Logouts } from '../broker/logouts.ts';
import { buildLoginRequest, type Login } from '../broker/redirect-to-provider.ts';
import type { AuthorizationParameters } from '../provider/provider-parameters.ts';

export interface BeginLoginDeps {
  /** `BASE_URL`. */
  readonly baseUrl: string;
  /** The gateway's own client at the provider. */
  readonly clientId: string;
  readonly endpoints: ProviderEndpoints;
  /** What the provider is asked for, so that it says the same of the person as at a client's login. */
  readonly buildParameters: () => Pick<AuthorizationParameters, 'scope' | 'authorization'>;
  readonly clock: Clock;
  readonly logins: SecretRecords<Login>;
  readonly browsers: Browsers;
  readonly logouts: Pick<Logouts, 'getMark'>;
}

export function createBeginLogin(deps: BeginLoginDeps): BeginLogin {
  const { baseUrl, clientId, endpoints, logins, browsers, logouts, clock } = deps;

  return async function beginLogin(cookie, { page, isFresh }) {
    const { scope, authorization } = deps.buildParameters();
    const logoutMark = await logouts.getMark();
    const browser = browsers.getOrCreate(cookie);
    const codeVerifier = generateSecret();
    const nonce = generateSecret();
    const state = await logins.put({
      browser: browser.hash,
      clientId: ACCOUNT_CLIENT_ID,
      redirectUri: baseUrl + page,
      query: '',
      state: undefined,
      codeChallenge: '',
      resources: [],
      scopes: [],
      logoutMark,
      codeVerifier,
      nonce,
      sendsIssuer: await endpoints.sendsIssuer(),
      account: isFresh ? { freshSince: clock.now() } : {},
    });
    const reply = createRedirectReply(
      buildLoginRequest(
        await endpoints.findAuthorizationUrl(),
        { baseUrl, clientId, scope, state, codeVerifier, nonce },
        [
          ...(isFresh ? ASK_AGAIN : []),
          ...authorization.filter(([name]) => !isFresh || name !== 'prompt'),
        ],
      ),
    );
    return { ...reply, headers: { ...reply.headers, ...browser.headers } };
  };
}

const ASK_AGAIN = [
  ['prompt', 'login'],
  ['max_age', '0'],
] as const;
