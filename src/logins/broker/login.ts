// A login under way at the provider, of a client or for a page of the gateway's own: what is kept of it, and what the provider is
// asked for: state, PKCE and callback are the gateway's own.

import { createRedirectReply, type Reply } from '../../http/endpoint/message.ts';
import type { Browser } from '../../http/endpoint/own-pages.ts';
import type { ProviderEndpoints } from '../../http/oauth-client/provider-metadata.ts';
import { generateSecret } from '../../platform/ids.ts';
import { createSecretRecords, type SecretRecords } from '../../store/records.ts';
import type { Approval } from '../consent/browser.ts';
import type { Grant } from '../grants/grant.ts';
import {
  buildCallbackUrl,
  buildProviderScope,
  createCodeChallenge,
  type ProviderParametersConfig,
} from '../provider/provider-parameters.ts';
import type { BrokerRuntime } from './runtime.ts';

/** The user has ten minutes to log in. */
const LOGIN_SECONDS = 600;

export const createLoginRecords = (runtime: BrokerRuntime) =>
  createSecretRecords<Login>(runtime, 'login', LOGIN_SECONDS);

/** A login under way at the provider; found by the state that the provider brings back. */
export interface Login {
  readonly browser: string;
  readonly clientId: string;
  /** For the log: a client that a document describes is not looked up again. */
  readonly clientName?: string | undefined;
  readonly redirectUri: string;
  /** The query of the authorization request, without the question mark; empty for a page of the gateway's own. */
  readonly query: string;
  /** The client's own. */
  readonly state: string | undefined;
  readonly codeChallenge: string;
  /** RFC 8707: what tokens are for. */
  readonly resources: readonly string[];
  /** Those of the consent page. */
  readonly scopes: readonly string[];
  /** When it began, as `Logouts` counts. */
  readonly logoutMark: number;
  /** Ours, for the provider. */
  readonly codeVerifier: string;
  readonly nonce: string | undefined;
  /**
   * RFC 9207: whether the provider said that it names itself in its answer. Noted here because the
   * callback may come to a replica that cannot ask at that moment. Undefined when it could not be
   * asked.
   */
  readonly sendsIssuer?: boolean | undefined;
  /**
   * There for a login for a page of the gateway's own, which gets no code: `redirectUri` is the page. `freshSince`: since when, in
   * epoch milliseconds, the provider has to have asked who it is.
   */
  readonly account?: { readonly freshSince?: number } | undefined;
  /** Undefined where nobody was to be asked. */
  readonly approval?: Approval | undefined;
}

/** RFC 6749 §4.1.2: the client has a minute to redeem its code. */
const CODE_SECONDS = 60;

export const createCodeRecords = (runtime: BrokerRuntime) =>
  createSecretRecords<GrantCode | UsedCode>(runtime, 'grant-code', CODE_SECONDS);

/** A finished login whose client has its code; found by the code. */
export interface GrantCode
  extends Pick<Login, 'clientId' | 'clientName' | 'redirectUri' | 'codeChallenge' | 'logoutMark'>,
    Pick<
      Grant,
      'scopes' | 'resources' | 'user' | 'claims' | 'userinfoClaims' | 'sid' | 'provider'
    > {}

/** The rest of a code that was used: nothing that the provider said or gave. */
export interface UsedCode
  extends Pick<GrantCode, 'clientId' | 'redirectUri' | 'codeChallenge' | 'user'> {
  /** The grant that it became. */
  readonly usedFor: string;
  readonly wasUsedAgain: boolean;
}

/** The query of the configured address wins. */
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

/**
 * Stores the login, and sends its browser to the provider. `scope` is that of the request to the provider, and `more` are the parameters
 * that not every login has.
 */
export async function sendToProvider(
  { runtime: { oauth, baseUrl }, logins, endpoints }: LoginsUnderWay,
  browser: Browser,
  { scope, ...begun }: Omit<Login, 'browser' | 'codeVerifier' | 'sendsIssuer'> & { scope: string },
  more: Pairs,
): Promise<Reply> {
  const codeVerifier = generateSecret();
  const sendsIssuer = await endpoints.sendsIssuer();
  const state = await logins.put({ ...begun, browser: browser.hash, codeVerifier, sendsIssuer });
  const { nonce } = begun;
  const request = { baseUrl, clientId: oauth.providerClient.id, scope, state, codeVerifier, nonce };
  const url = await endpoints.findAuthorizationUrl();
  return createRedirectReply(buildLoginRequest(url, request, more), browser.headers);
}

export interface LoginsUnderWay {
  readonly runtime: BrokerRuntime;
  readonly logins: SecretRecords<Login>;
  readonly endpoints: ProviderEndpoints;
}

/** The gateway asks this of the provider for any login: of a client, or for a page of its own. */
interface LoginRequest extends Pick<Login, 'codeVerifier' | 'nonce'> {
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

/** The scopes that the provider is asked for; `scope` is what the client asks for. */
export async function chooseProviderScope(
  config: ProviderParametersConfig,
  endpoints: Pick<ProviderEndpoints, 'listScopes'>,
  scope: string | undefined,
): Promise<string> {
  const scopes = buildProviderScope(config, scope).split(' ');
  const known = await endpoints.listScopes();
  const mayKnow = known.length === 0 || config.addedScopes.includes(OFFLINE_ACCESS);
  // The gateway goes on asking whether the user may, whatever its client asks for. A provider that lists other scopes refuses this
  // one, and the whole login with it.
  const chosen = known.includes(OFFLINE_ACCESS)
    ? [...new Set([...scopes, OFFLINE_ACCESS])]
    : scopes.filter((name) => mayKnow || name !== OFFLINE_ACCESS);
  return chosen.join(' ');
}

const OFFLINE_ACCESS = 'offline_access';
