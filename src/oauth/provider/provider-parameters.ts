// What the provider needs beside what a client asks for, and which token of its answer the client
// gets. Pure: the broker sends and receives.
import type { BrokerConfig } from '../../config/groups/oauth.ts';
import type { ProviderConfig } from '../../config/groups/provider.ts';
import { DEFAULT_SCOPES, parseScope } from '../../config/scope.ts';
import type { ServerUrls } from '../../config/server-urls.ts';
import { fail } from '../../errors/gateway-error.ts';
import { hashSha256 } from '../../platform/ids.ts';

export interface ProviderParametersConfig
  extends Pick<
    BrokerConfig,
    'provider' | 'allowedScopes' | 'addedScopes' | 'addedParameters' | 'resourceParameter'
  > {
  readonly baseUrl: string;
  readonly serverUrls: ServerUrls;
}

export const buildCallbackUrl = (baseUrl: string): string => `${baseUrl}/oauth/callback`;

/** RFC 7636 §4.2: by S256, the only method there is here. */
export const createCodeChallenge = (verifier: string): string => hashSha256(verifier);

type Pairs = readonly (readonly [name: string, value: string])[];

/**
 * RFC 8707 §2: what the provider is asked to make a token for, be the client's request silent or not.
 * Without it some make one for an API of their own, which the consent page never spoke of. What the
 * client names counts as far as the gateway would accept a token for it.
 */
export function selectResources(
  config: ProviderParametersConfig,
  requested: readonly string[],
): readonly string[] {
  const { resourceParameter, provider, serverUrls } = config;
  if (resourceParameter === 'none') return [];
  const accepted = requested.filter(
    (one) => provider.audience.includes(one) || serverUrls.isAudience(one),
  );
  const resources = accepted.length > 0 ? accepted : [findDefaultResource(config)];
  return resourceParameter === 'audience' ? resources.slice(0, 1) : resources;
}

function findDefaultResource({
  resourceParameter,
  provider,
  baseUrl,
}: ProviderParametersConfig): string {
  const { audience } = provider;
  // An audience may be any name that the provider knows its API by; a resource is a URI.
  const name = resourceParameter === 'audience' ? audience[0] : undefined;
  return audience.find(isAbsoluteUri) ?? name ?? `${baseUrl}/mcp`;
}

export interface AuthorizationParameters {
  /** For the authorization request. */
  readonly scope: string;
  /** Further parameters of the authorization request. */
  readonly authorization: Pairs;
  /** Further parameters of the token request that redeems the code. */
  readonly token: Pairs;
}

/** `requestedScope` as the client sent it; `resources` those of `selectResources`. */
export function buildAuthorizationParameters(
  config: ProviderParametersConfig,
  requestedScope: string | undefined,
  resources: readonly string[],
): AuthorizationParameters {
  const target = buildResourceParameters(config, resources);
  const { ownScopesOnly = false } = config.provider.quirks;
  const scopes = ownScopesOnly ? config.addedScopes : listGrantedScopes(config, requestedScope);
  return {
    scope: scopes.join(' '),
    authorization: [...config.addedParameters, ...target],
    token: target,
  };
}

/** What a client is granted: what it asked for, then what was added, each once. Most providers are asked for just that. */
export function listGrantedScopes(
  config: ProviderParametersConfig,
  requestedScope: string | undefined,
): readonly string[] {
  const requested = selectAllowedScopes(config, requestedScope);
  return addScopes(config, requested.length > 0 ? requested : DEFAULT_SCOPES);
}

/**
 * Further parameters of a refresh; `resources` those that the grant was made with. RFC 6749 §6:
 * `scope` may be left out, but not everywhere.
 */
export function buildRefreshParameters(
  config: ProviderParametersConfig,
  requestedScope: string | undefined,
  resources: readonly string[],
): Pairs {
  const requested = selectAllowedScopes(config, requestedScope);
  const { refreshNeedsScope = false } = config.provider.quirks;
  const namesScope = requested.length > 0 || refreshNeedsScope;
  return [
    ...(namesScope ? [['scope', addScopes(config, requested).join(' ')] as const] : []),
    ...buildResourceParameters(config, resources),
  ];
}

/** A provider's answer of RFC 6749 §5.1. */
export type ProviderTokenResponse = Readonly<Record<string, unknown>>;

/**
 * The answer as a client gets it, always without the ID token: that was made for this service.
 *
 * @throws GatewayError `upstream_failed` when the token to hand out is not in it.
 */
export function selectClientTokens(
  providerTokens: ProviderTokenResponse,
  { accessToken }: Pick<ProviderConfig, 'accessToken'>,
): ProviderTokenResponse & { readonly access_token: string } {
  const { id_token: _, ...rest } = providerTokens;
  const token = providerTokens[accessToken];
  if (typeof token === 'string' && token !== '') return { ...rest, access_token: token };
  const cause = new Error(`The provider's answer has no ${accessToken}`);
  return fail('upstream_failed', { cause });
}

/** Whatever else a client names, it must not borrow what the service's own client may do. */
const selectAllowedScopes = (
  { allowedScopes }: Pick<BrokerConfig, 'allowedScopes'>,
  scope: string | undefined,
): readonly string[] =>
  parseScope(scope).filter((name) => allowedScopes.includes('*') || allowedScopes.includes(name));

function addScopes(
  { addedScopes, provider }: ProviderParametersConfig,
  requested: readonly string[],
): readonly string[] {
  // OpenID Connect Core §3.1.2.1: no ID token without it.
  const openid = provider.accessToken === 'id_token' ? ['openid'] : [];
  return [...new Set([...requested, ...openid, ...addedScopes])];
}

const buildResourceParameters = (
  { resourceParameter: name }: Pick<BrokerConfig, 'resourceParameter'>,
  resources: readonly string[],
): Pairs => (name === 'none' ? [] : resources.map((one) => [name, one] as const));

/** RFC 3986 §4.3: what RFC 8707 §2 takes for a resource. */
const isAbsoluteUri = (text: string): boolean =>
  /^[a-z][a-z0-9+.-]*:[^\s#]+$/i.test(text) && URL.canParse(text);
