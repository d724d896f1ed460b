// The provider brings the browser back, and it goes on to the client with a code of our own.
import { fail } from '../../errors/gateway-error.ts';
import type { PendingReply, Reply } from '../../http/endpoint/message.ts';
import type { Browsers } from '../../http/endpoint/own-pages.ts';
import { parseQuery, type RequestParameters } from '../../http/endpoint/parameters.ts';
import {
  CHECK_PROVIDER_CLIENT,
  isClientError,
  MISCONFIGURED,
} from '../../http/oauth-client/provider-api.ts';
import type { ProviderEndpoints } from '../../http/oauth-client/provider-metadata.ts';
import { truncateForLog } from '../../platform/log.ts';
import { toErrorDescription, toSentence } from '../../platform/text.ts';
import type { SecretRecords } from '../../store/records.ts';
import { redirectToClient } from '../redirect-uri.ts';
import { addFacts } from '../request/login-facts.ts';
import type { Login } from './redirect-to-provider.ts';

export interface CallbackDeps {
  readonly baseUrl: string;
  readonly browsers: Browsers;
  readonly logins: SecretRecords<Login>;
  readonly finishLogin: FinishLogin;
  readonly endpoints: ProviderEndpoints;
}

export function createCallback(deps: CallbackDeps) {
  const { baseUrl, browsers, logins, finishLogin, endpoints } = deps;

  return async function callback(query: string, cookie: string | undefined): Promise<PendingReply> {
    // Whatever else providers add to their answer is not looked at.
    const parameters = parseQuery(query, () => {});
    const state = parameters.require('state');
    const { clientId } = (await logins.get(state)) ?? failLoginExpired();
    return addFacts(
      { client: truncateForLog(clientId) },
      async () => () => completeLogin(parameters, state, cookie),
    );
  };

  async function completeLogin(
    parameters: RequestParameters,
    state: string,
    cookie: string | undefined,
  ) {
    // Used up in any case: a code that came to another browser than the login's stands in its
    // address bar, and must be worth nothing to whoever began.
    const login = (await logins.take(state)) ?? failLoginExpired();
    if (login.browser !== browsers.readHash(cookie)) {
      fail('oauth_invalid_request', {
        details:
          'This login was started in another browser, or cookies are turned off. Turn on cookies and start the login again from your app.',
      });
    }
    await checkResponseIssuer(parameters, login, endpoints);
    const respond: Respond = (pairs) =>
      redirectToClient(login.redirectUri, [...pairs, ['state', login.state], ['iss', baseUrl]]);
    const code = parameters.get('code');
    return code === undefined
      ? forwardError(parameters, respond)
      : finishLogin(login, code, respond);
  }
}

/** What becomes of a login that the provider's code came back for. */
export type FinishLogin = (login: Login, code: string, respond: Respond) => Promise<Reply>;

/** The authorization response (RFC 6749 §4.1.2). */
type Respond = (pairs: readonly (readonly [string, string | undefined])[]) => Reply;

/** RFC 6749 §4.1.2.1: as it came, but for what is about a client that the client never heard of. */
function forwardError(parameters: RequestParameters, respond: Respond): Reply {
  const error = readErrorText(parameters, 'error') ?? 'server_error';
  const description = readErrorText(parameters, 'error_description');
  const providerError = toSentence(description === undefined ? error : `${error}: ${description}`);
  const message = `The provider said ${providerError}`;
  if (isClientError(error)) {
    const details = `${MISCONFIGURED} The identity provider said ${providerError}`;
    return {
      ...respond([
        ['error', 'server_error'],
        ['error_description', details],
      ]),
      error: {
        key: 'gateway_refused_by_provider',
        message: `${message} ${CHECK_PROVIDER_CLIENT}`,
        logLevel: 'warn',
      },
    };
  }
  return {
    ...respond([
      ['error', error],
      ['error_description', description],
    ]),
    error: { key: 'refused_by_provider', message },
  };
}

/** Characters of what the provider says. */
const MAX_ERROR_TEXT = 500;

const readErrorText = (parameters: RequestParameters, name: string): string | undefined => {
  const text = parameters.get(name);
  return text === undefined ? undefined : toErrorDescription(text).slice(0, MAX_ERROR_TEXT);
};

const failLoginExpired = (): never =>
  fail('oauth_invalid_request', {
    details: 'This login has expired or is already finished. Start it again from your app.',
  });

/**
 * RFC 9207 §2.4: the answer of another authorization server is none (mix-up).
 *
 * Where the provider's word could be had neither when the login began nor now, its iss may be
 * missing: some providers have no discovery document at all, and most send no iss. Only one provider
 * is ever sent to this callback, and an iss that is there must be its own in any case.
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
