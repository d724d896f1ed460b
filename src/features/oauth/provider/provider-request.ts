// What the provider needs beside what a client asks for, and which token of its answer the client
// gets. Pure: the broker sends and receives.
import {
  PROVIDER_PROFILES,
  type ProviderSettings,
} from '../../../core/config/provider-profiles.ts';
import { fail } from '../../../core/errors/gateway-error.ts';
import { DEFAULT_SCOPES, parseScope } from '../../../core/scope.ts';

export interface ProviderRequestSettings extends ProviderSettings {
  readonly baseUrl: string;
  readonly oauthAllowedScopes: readonly string[];
  readonly oidcAudience: readonly string[];
}

type Pairs = readonly (readonly [name: string, value: string])[];

/**
 * RFC 8707 §2: what the provider is asked to make a token for, be the client's request silent or not.
 * Without it some make one for an API of their own, which the consent page never spoke of. What the
 * client names counts as far as the gateway would accept a token for it.
 */
export function resourcesToRequest(
  settings: ProviderRequestSettings,
  requested: readonly string[],
): readonly string[] {
  const { oauthResourceParameter, oidcAudience } = settings;
  if (oauthResourceParameter === 'none') return [];
  const accepted = requested.filter((one) => oidcAudience.includes(one));
  const resources = accepted.length > 0 ? accepted : [usualResource(settings)];
  return oauthResourceParameter === 'audience' ? resources.slice(0, 1) : resources;
}

function usualResource({
  oauthResourceParameter,
  oidcAudience,
  baseUrl,
}: ProviderRequestSettings): string {
  // An audience may be any name that the provider knows its API by; a resource is a URI.
  const name = oauthResourceParameter === 'audience' ? oidcAudience[0] : undefined;
  return oidcAudience.find(isAbsoluteUri) ?? name ?? `${baseUrl}/mcp`;
}

export interface AuthorizationExtras {
  /** For the authorization request: what was asked for, then what was added, each once. */
  readonly scope: string;
  /** Further parameters of the authorization request. */
  readonly authorization: Pairs;
  /** Further parameters of the token request that redeems the code. */
  readonly token: Pairs;
}

/** `requestedScope` as the client sent it; `resources` those of `resourcesToRequest`. */
export function authorizationExtras(
  settings: ProviderRequestSettings,
  requestedScope: string | undefined,
  resources: readonly string[],
): AuthorizationExtras {
  const requested = allowed(settings, requestedScope);
  const target = resourceParameters(settings, resources);
  return {
    scope: withAdded(settings, requested.length > 0 ? requested : DEFAULT_SCOPES),
    authorization: [...settings.oauthAddedParameters, ...target],
    token: target,
  };
}

/**
 * Further parameters of a refresh; `resources` those that the grant was made with. RFC 6749 §6:
 * `scope` may be left out, but not everywhere.
 */
export function refreshExtras(
  settings: ProviderRequestSettings,
  requestedScope: string | undefined,
  resources: readonly string[],
): Pairs {
  const requested = allowed(settings, requestedScope);
  const { refreshNeedsScope = false } = PROVIDER_PROFILES[settings.oidcProvider];
  const names = requested.length > 0 || refreshNeedsScope;
  return [
    ...(names ? [['scope', withAdded(settings, requested)] as const] : []),
    ...resourceParameters(settings, resources),
  ];
}

/** A provider's answer of RFC 6749 §5.1. */
export type TokenAnswer = Readonly<Record<string, unknown>>;

/**
 * The answer as a client gets it, always without the ID token: that was made for this service.
 *
 * @throws GatewayError `upstream_failed` when the token to hand out is not in it.
 */
export function handedOut(
  answer: TokenAnswer,
  { oauthAccessToken }: Pick<ProviderSettings, 'oauthAccessToken'>,
): TokenAnswer & { readonly access_token: string } {
  const { id_token: _, ...rest } = answer;
  const token = answer[oauthAccessToken];
  if (typeof token === 'string' && token !== '') return { ...rest, access_token: token };
  const cause = new Error(`The provider's answer has no ${oauthAccessToken}`);
  return fail('upstream_failed', { cause });
}

/** Whatever else a client names, it must not borrow what the service's own client may do. */
const allowed = (
  { oauthAllowedScopes: known }: Pick<ProviderRequestSettings, 'oauthAllowedScopes'>,
  scope: string | undefined,
): readonly string[] =>
  parseScope(scope).filter((one) => known.includes('*') || known.includes(one));

function withAdded(
  { oauthAddedScopes, oauthAccessToken }: ProviderSettings,
  requested: readonly string[],
): string {
  // OpenID Connect Core §3.1.2.1: no ID token without it.
  const openid = oauthAccessToken === 'id_token' ? ['openid'] : [];
  return [...new Set([...requested, ...openid, ...oauthAddedScopes])].join(' ');
}

const resourceParameters = (
  { oauthResourceParameter: name }: ProviderSettings,
  resources: readonly string[],
): Pairs => (name === 'none' ? [] : resources.map((one) => [name, one] as const));

/** RFC 3986 §4.3: what RFC 8707 §2 takes for a resource. */
const isAbsoluteUri = (text: string): boolean =>
  /^[a-z][a-z0-9+.-]*:[^\s#]+$/i.test(text) && URL.canParse(text);
