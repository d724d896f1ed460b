// The provider brings the browser back, and it goes on to the client with a code of our own.
import { fail } from '../../../core/errors/gateway-error.ts';
import type { PendingReply, Reply } from '../../../core/message.ts';
import type { ProviderEndpoints } from '../../../core/provider/provider-endpoints.ts';
import { logClient } from '../clients/log-client.ts';
import type { Browsers } from '../consent/browser.ts';
import { toSentence } from '../provider/provider-api.ts';
import { CHECK_PROVIDER_CLIENT, isClientError } from '../provider/provider-client.ts';
import { redirectToClient } from '../redirect-uri/redirect-to-client.ts';
import { fromQuery, type Parameters } from '../request/parameters.ts';
import type { SealedRecords } from '../sealed-records.ts';
import type { Login } from './login.ts';
import { MISCONFIGURED } from './provider-refusals.ts';

/** A code that was handed to a client, and what is owed for it. */
export interface Grant {
  readonly clientId: string;
  readonly clientName?: string | undefined;
  readonly redirectUri: string;
  readonly codeChallenge: string;
  readonly resources: readonly string[];
  /** The provider's. */
  readonly code: string;
  readonly codeVerifier: string;
  readonly nonce: string | undefined;
}

export interface CallbackDeps {
  readonly baseUrl: string;
  readonly browsers: Browsers;
  readonly logins: SealedRecords<Login>;
  readonly grants: SealedRecords<Grant>;
  readonly endpoints: ProviderEndpoints;
}

export function createCallback({ baseUrl, browsers, logins, grants, endpoints }: CallbackDeps) {
  return async function callback(query: string, cookie: string | undefined): Promise<PendingReply> {
    // Whatever else providers add to their answer is not looked at.
    const parameters = fromQuery(query, () => {});
    const state = parameters.require('state');
    const { clientId } = (await logins.get(state)) ?? refuseFinished();
    return logClient(clientId, async () => () => finish(parameters, state, cookie));
  };

  async function finish(parameters: Parameters, state: string, cookie: string | undefined) {
    // Used up in any case: a code that came to another browser than the log-in's stands in its
    // address bar, and must be worth nothing to whoever began.
    const login = (await logins.take(state)) ?? refuseFinished();
    if (login.browser !== browsers.hashOf(cookie)) {
      fail('oauth_invalid_request', {
        details: 'This log-in began in another browser, or cookies are switched off.',
      });
    }
    await checkIssuer(parameters, login, endpoints);
    const back: Back = (pairs) =>
      redirectToClient(login.redirectUri, [...pairs, ['state', login.state], ['iss', baseUrl]]);
    const code = parameters.get('code');
    if (code === undefined) return passOnError(parameters, back);
    return back([['code', await grants.put(grantFor(login, code))]]);
  }
}

const grantFor = (login: Login, code: string): Grant => {
  const { clientId, clientName, redirectUri, codeChallenge, resources, codeVerifier, nonce } =
    login;
  return { clientId, clientName, redirectUri, codeChallenge, resources, code, codeVerifier, nonce };
};

type Back = (pairs: readonly (readonly [string, string | undefined])[]) => Reply;

/** RFC 6749 §4.1.2.1: passed on, but for what is about a client that the client never heard of. */
function passOnError(parameters: Parameters, back: Back): Reply {
  const error = clean(parameters.get('error')) ?? 'server_error';
  const description = clean(parameters.get('error_description'));
  const said = toSentence(description === undefined ? error : `${error}: ${description}`);
  const message = `The provider said ${said}`;
  if (isClientError(error)) {
    const told = `${MISCONFIGURED} The identity provider said ${said}`;
    return {
      ...back([
        ['error', 'server_error'],
        ['error_description', told],
      ]),
      error: { key: 'gateway_refused_by_provider', message: `${message} ${CHECK_PROVIDER_CLIENT}` },
    };
  }
  return {
    ...back([
      ['error', error],
      ['error_description', description],
    ]),
    error: { key: 'refused_by_provider', message },
  };
}

/** In the form that the RFC allows. */
const clean = (text: string | undefined): string | undefined =>
  text?.replace(/[^\x20-\x21\x23-\x5B\x5D-\x7E]/g, ' ').slice(0, 500);

const refuseFinished = (): never =>
  fail('oauth_invalid_request', {
    details: 'This log-in has expired or was finished already. Start again from your program.',
  });

/**
 * RFC 9207 §2.4: the answer of another authorization server is none (mix-up).
 *
 * Where the provider's word could be had neither when the log-in began nor now, its iss may be
 * missing: some providers have no discovery document at all, and most send no iss. Only one provider
 * is ever sent to this callback, and an iss that is there must be its own in any case.
 */
async function checkIssuer(parameters: Parameters, login: Login, endpoints: ProviderEndpoints) {
  const issuer = parameters.get('iss');
  if (issuer === endpoints.issuer) return;
  const sendsIssuer = login.sendsIssuer ?? (await endpoints.sendsIssuer()) ?? false;
  if (issuer === undefined && !sendsIssuer) return;
  fail('oauth_invalid_request', {
    details: 'The answer is not of the identity provider that was asked.',
    facts: { found: issuer, expected: endpoints.issuer },
  });
}
