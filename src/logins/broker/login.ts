// Login in progress at the provider, of a client or for one of the gateway's own pages: its record, and the request to the
// provider, with the gateway's own state, PKCE and callback.

import type { BrokerConfig } from '../../config/groups/oauth.ts';
import { DEFAULT_SCOPES, parseScope } from '../../config/rules.ts';
import { createRedirectReply, type Reply } from '../../http/endpoint/message.ts';
import type { Browser } from '../../http/endpoint/own-pages.ts';
import type { FormPair } from '../../http/oauth-client/client-authentication.ts';
import type { ProviderEndpoints } from '../../http/oauth-client/provider-metadata.ts';
import { generateSecret, hashSha256 } from '../../platform/ids.ts';
import { createSecretRecords, type SecretRecords } from '../../store/records.ts';
import type { Approval } from '../consent/browser.ts';
import type { Grant } from '../grants/grant.ts';
import { MAX_SCOPES } from '../grants/token-codec.ts';
import type { BrokerRuntime } from './runtime.ts';

/** The user has ten minutes to log in. */
const LOGIN_SECONDS = 600;

export const createLoginRecords = (runtime: BrokerRuntime) =>
  createSecretRecords<Login>(runtime, 'login', LOGIN_SECONDS);

/** A login in progress at the provider; found by the state that the provider returns. */
export interface Login {
  readonly browser: string;
  readonly clientId: string;
  /** For the log: a client that is identified by its metadata document is not looked up again. */
  readonly clientName?: string | undefined;
  readonly redirectUri: string;
  /** Query of the authorization request, without the question mark; empty for one of the gateway's own pages. */
  readonly query: string;
  /** The client's own state. */
  readonly state: string | undefined;
  readonly codeChallenge: string;
  /** RFC 8707: audience of the tokens. */
  readonly resources: readonly string[];
  /** Scopes of the consent page. */
  readonly scopes: readonly string[];
  /** The mark (`Logouts`) of when it began. */
  readonly logoutMark: number;
  /** The gateway's own, for the provider. */
  readonly codeVerifier: string;
  readonly nonce: string | undefined;
  /**
   * RFC 9207: whether the provider's metadata promises `iss` in its response. Stored here because the callback may come to a
   * replica that cannot fetch them at that moment. Undefined if they were unavailable.
   */
  readonly sendsIssuer?: boolean | undefined;
  /**
   * Set for a login for one of the gateway's own pages, which gets no code: `redirectUri` is the page. The provider must have
   * asked for the password since `freshSince` (epoch milliseconds).
   */
  readonly account?: { readonly freshSince?: number } | undefined;
  /** Undefined without a consent page. */
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

/** The rest of a used code, without claims or provider tokens. */
export interface UsedCode
  extends Pick<GrantCode, 'clientId' | 'redirectUri' | 'codeChallenge' | 'user'> {
  /** ID of the grant that it became. */
  readonly usedFor: string;
  readonly wasUsedAgain: boolean;
}

/** Parameters in the configured address win. */
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
 * Stores the login, and sends its browser to the provider. `scope` comes from `chooseProviderScope`, and `more` are
 * the parameters that not every login has.
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

interface LoginsUnderWay {
  readonly runtime: BrokerRuntime;
  readonly logins: SecretRecords<Login>;
  readonly endpoints: ProviderEndpoints;
}

/** The request to the provider for any login, of a client or for one of the gateway's own pages. */
interface LoginRequest extends Pick<Login, 'codeVerifier' | 'nonce'> {
  readonly baseUrl: string;
  /** The gateway's own client ID at the provider. */
  readonly clientId: string;
  readonly scope: string | undefined;
  readonly state: string;
}

/** `more` are the parameters that not every login has. */
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
    // RFC 7636 §4.2.
    ['code_challenge', hashSha256(codeVerifier)],
    ['code_challenge_method', 'S256'],
    ['nonce', nonce],
    ...more,
  ]);

/** Chooses the scopes of the request to the provider; `scope` is the client's. */
export async function chooseProviderScope(
  config: ProviderParametersConfig,
  endpoints: Pick<ProviderEndpoints, 'listScopes'>,
  scope: string | undefined,
): Promise<string> {
  const scopes = buildProviderScope(config, scope).split(' ');
  const known = await endpoints.listScopes();
  const mayKnow = known.length === 0 || config.addedScopes.includes(OFFLINE_ACCESS);
  // With it, the gateway can renew the grant, whatever scopes the client asks for. A provider that lists other scopes would refuse
  // it, and so the whole login.
  const chosen = known.includes(OFFLINE_ACCESS)
    ? [...new Set([...scopes, OFFLINE_ACCESS])]
    : scopes.filter((name) => mayKnow || name !== OFFLINE_ACCESS);
  return chosen.join(' ');
}

const OFFLINE_ACCESS = 'offline_access';

// Parameters of requests to the provider.

type ProviderParametersConfig = Pick<BrokerConfig, 'provider' | 'allowedScopes' | 'addedScopes'>;

export const buildCallbackUrl = (baseUrl: string): string => `${baseUrl}/oauth/callback`;

/** The scopes that are requested from the provider; `requestedScope` as the client sent it. */
export function buildProviderScope(
  config: ProviderParametersConfig,
  requestedScope: string | undefined,
): string {
  const { ownScopesOnly = false } = config.provider.quirks;
  const requested = ownScopesOnly ? [] : selectAllowedScopes(config, requestedScope);
  return [...new Set([...requested, ...listOwnScopes(config)])].join(' ');
}

/**
 * The scopes that a client is granted and its user is shown: those that it requested, then the added ones, without duplicates.
 */
export function listGrantedScopes(
  config: ProviderParametersConfig,
  requestedScope: string | undefined,
): readonly string[] {
  const requested = selectAllowedScopes(config, requestedScope);
  const granted = requested.length > 0 ? requested : DEFAULT_SCOPES;
  // If there are too many, the added ones stay: rules may rely on them.
  const kept = [...new Set([...config.addedScopes, ...granted])].slice(0, MAX_SCOPES);
  return [...new Set([...granted, ...kept])].filter((name) => kept.includes(name));
}

/** Further parameters of a refresh. RFC 6749 §6: `scope` is optional, but some providers require it. */
export function buildRefreshParameters(config: ProviderParametersConfig): readonly FormPair[] {
  const { refreshNeedsScope = false } = config.provider.quirks;
  return refreshNeedsScope ? [['scope', listOwnScopes(config).join(' ')]] : [];
}

/** Whatever clients ask for, the provider must identify the user, by scopes that it knows. */
const listOwnScopes = ({ addedScopes, provider }: ProviderParametersConfig) =>
  provider.quirks.ownScopesOnly ? addedScopes : [...new Set([...DEFAULT_SCOPES, ...addedScopes])];

/** A client must not get more than the gateway's own client may have. */
const selectAllowedScopes = (
  { allowedScopes }: ProviderParametersConfig,
  scope: string | undefined,
): readonly string[] =>
  [...new Set(parseScope(scope))]
    .filter((name) => allowedScopes.includes('*') || allowedScopes.includes(name))
    .slice(0, MAX_SCOPES);
