// From the approval to the provider: state, PKCE and callback are the gateway's own.

import type { ProviderEndpoints } from '../../auth/provider-metadata.ts';
import { parseScope } from '../../config/scope.ts';
import { createRedirectReply, type Reply } from '../../endpoint/message.ts';
import { fail } from '../../errors/gateway-error.ts';
import { generateSecret } from '../../platform/ids.ts';
import type { SealedRecords } from '../../store/seal/sealed-records.ts';
import type { Approval, Browser } from '../consent/browser.ts';
import {
  type AuthorizationParameters,
  buildAuthorizationParameters,
  buildCallbackUrl,
  createCodeChallenge,
  type ProviderParametersConfig,
  selectResources,
} from '../provider/provider-parameters.ts';
import type { AuthorizationRequest } from '../request/authorization-request.ts';
import { type RequestParameters, readResourceIndicators } from '../request/parameters.ts';

/** A login under way at the provider; found by the state that the provider brings back. */
export interface Login {
  readonly browser: string;
  readonly clientId: string;
  /** For the log: a client that a document describes is not looked up again. */
  readonly clientName?: string | undefined;
  readonly redirectUri: string;
  /** Of the authorization request, without the question mark; empty for a page of the gateway's own. */
  readonly query: string;
  /** The client's own. */
  readonly state: string | undefined;
  readonly codeChallenge: string;
  /** RFC 8707: what tokens are for, those of the provider or the gateway's own. */
  readonly resources: readonly string[];
  /** What the gateway's own are granted; undefined where clients get the provider's. */
  readonly scopes?: readonly string[] | undefined;
  /** When it began, as `Logouts` counts; undefined where clients get the provider's tokens. */
  readonly logoutMark?: number | undefined;
  /** Ours, for the provider. */
  readonly codeVerifier: string;
  readonly nonce: string | undefined;
  /**
   * RFC 9207: whether the provider said that it names itself in its answer. Noted here because the
   * callback may come to a replica that cannot ask at that moment. Undefined when it could not be
   * asked, and in records of version 0.1.0.
   */
  readonly sendsIssuer?: boolean | undefined;
  /**
   * Of a login for a page of the gateway's own, which gets no code: `redirectUri` is the page. `freshSince`: since when, in
   * epoch milliseconds, the provider has to have asked who it is.
   */
  readonly account?: { readonly freshSince?: number } | undefined;
  /** Undefined where nobody was to be asked. */
  readonly approval?: Approval | undefined;
}

/** What a client may tell the provider's login page; the gateway decides on everything else. */
const FORWARDED = new Set([
  'acr_values',
  'domain_hint',
  'login_hint',
  'max_age',
  'prompt',
  'ui_locales',
]);

/** What the provider is asked for, and what tokens are to be for. */
export interface AskedOfProvider
  extends Pick<AuthorizationParameters, 'scope' | 'authorization'>,
    Pick<Login, 'resources' | 'scopes' | 'logoutMark'> {}

export type ReadAsked = (
  parameters: RequestParameters,
  clientId: string,
) => AskedOfProvider | Promise<AskedOfProvider>;

/** Where clients get the provider's tokens, it is told what for. */
export const createReadAsked =
  (config: ProviderParametersConfig): ReadAsked =>
  (parameters) => {
    const resources = selectResources(config, readResourceIndicators(parameters, config));
    const scope = parameters.get('scope');
    return { ...buildAuthorizationParameters(config, scope, resources), resources };
  };

export interface BrokerRedirectDeps {
  readonly baseUrl: string;
  /** The gateway's own at the provider. */
  readonly clientId: string;
  readonly readAsked: ReadAsked;
  readonly logins: SealedRecords<Login>;
  readonly endpoints: ProviderEndpoints;
}

/** What the configured address says wins. */
export function buildProviderRequest(
  authorizationUrl: string,
  pairs: readonly (readonly [name: string, value: string | undefined])[],
): string {
  const url = new URL(authorizationUrl);
  const configured = new Set(url.searchParams.keys());
  for (const [name, value] of pairs) {
    if (value !== undefined && !configured.has(name)) url.searchParams.append(name, value);
  }
  return url.href;
}

type Pairs = Parameters<typeof buildProviderRequest>[1];

/** What the gateway asks of the provider for any login: of a client, or for a page of its own. */
export interface LoginRequest extends Pick<Login, 'codeVerifier' | 'nonce'> {
  readonly baseUrl: string;
  /** The gateway's own at the provider. */
  readonly clientId: string;
  readonly scope: string | undefined;
  readonly state: string;
}

/** `more` are the parameters that are not of every login. */
export const buildLoginRequest = (
  authorizationUrl: string,
  { baseUrl, clientId, scope, state, codeVerifier, nonce }: LoginRequest,
  more: Pairs,
): string =>
  buildProviderRequest(authorizationUrl, [
    ['client_id', clientId],
    ['redirect_uri', buildCallbackUrl(baseUrl)],
    ['response_type', 'code'],
    ['scope', scope],
    ['state', state],
    ['code_challenge', createCodeChallenge(codeVerifier)],
    ['code_challenge_method', 'S256'],
    ['nonce', nonce],
    ...more,
  ]);

export const createBrokerRedirect = (deps: BrokerRedirectDeps) =>
  async function redirectToProvider(
    request: AuthorizationRequest,
    browser: Browser,
    approval?: Approval,
  ): Promise<Reply> {
    const { baseUrl, clientId, readAsked, logins, endpoints } = deps;
    const { query, parameters, redirectUri } = request;
    if (request.client === undefined) fail('unknown_client');
    const asked = await readAsked(parameters, request.clientId);
    const { scope, authorization, resources, scopes, logoutMark } = asked;
    const codeVerifier = generateSecret();
    const nonce = parseScope(scope).includes('openid') ? generateSecret() : undefined;
    const state = await logins.put({
      browser: browser.hash,
      clientId: request.clientId,
      clientName: request.client.name,
      redirectUri,
      query,
      state: parameters.get('state'),
      codeChallenge: parameters.require('code_challenge'),
      resources,
      scopes,
      logoutMark,
      codeVerifier,
      nonce,
      sendsIssuer: await endpoints.sendsIssuer(),
      approval,
    });
    const url = buildLoginRequest(
      await endpoints.findAuthorizationUrl(),
      { baseUrl, clientId, scope, state, codeVerifier, nonce },
      [...authorization, ...selectForwarded(parameters, authorization)],
    );
    const reply = createRedirectReply(url);
    return { ...reply, headers: { ...reply.headers, ...browser.headers } };
  };

/** Not what the provider's profile sets already (`prompt`, say). */
const selectForwarded = (
  { pairs }: RequestParameters,
  added: readonly (readonly [string, string])[],
) => pairs.filter(([name]) => FORWARDED.has(name) && !added.some(([other]) => other === name));
