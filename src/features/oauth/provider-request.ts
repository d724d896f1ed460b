// What the provider needs beside what a client asks for, and which token of its answer the client
// gets. Pure: the broker sends and receives.
import { PROVIDER_PROFILES, type ProviderSettings } from '../../core/config/provider-profiles.ts';
import { fail } from '../../core/errors/gateway-error.ts';

export interface ProviderRequestSettings extends ProviderSettings {
  readonly oauthAllowedScopes: readonly string[];
  readonly oidcAudience: readonly string[];
}

type Pairs = readonly (readonly [name: string, value: string])[];

export interface AuthorizationExtras {
  /** For the authorization request: what was asked for, then what was added, each once. */
  readonly scope: string;
  /** Further parameters of the authorization request. */
  readonly authorization: Pairs;
  /** Further parameters of the token request that redeems the code. */
  readonly token: Pairs;
}

/** Spec §4.9 lists them; a client that names none wants them all. */
const DEFAULT_SCOPES = ['openid', 'profile', 'email'];

/** `requestedScope` and `resources` as the client sent them; RFC 8707 §2 allows several. */
export function authorizationExtras(
  settings: ProviderRequestSettings,
  requestedScope: string | undefined,
  resources: readonly string[],
): AuthorizationExtras {
  const requested = allowed(settings, requestedScope);
  return {
    scope: withAdded(settings, requested.length > 0 ? requested : DEFAULT_SCOPES),
    authorization: [...settings.oauthAddedParameters, ...target(settings, resources)],
    token: keptResources(settings, resources),
  };
}

/** Further parameters of a refresh. RFC 6749 §6: `scope` may be left out, but not everywhere. */
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
    ...keptResources(settings, resources),
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
): TokenAnswer {
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
): readonly string[] => scopesOf(scope).filter((one) => known.includes('*') || known.includes(one));

const scopesOf = (scope: string | undefined): readonly string[] =>
  (scope ?? '').split(' ').filter((one) => one !== '');

function withAdded(
  { oauthAddedScopes, oauthAccessToken }: ProviderSettings,
  requested: readonly string[],
): string {
  // OpenID Connect Core §3.1.2.1: no ID token without it.
  const openid = oauthAccessToken === 'id_token' ? ['openid'] : [];
  return [...new Set([...requested, ...openid, ...oauthAddedScopes])].join(' ');
}

function target(settings: ProviderRequestSettings, resources: readonly string[]): Pairs {
  if (settings.oauthResourceParameter !== 'audience') return keptResources(settings, resources);
  const { oidcAudience } = settings;
  // Never another than ours, and never none: the provider would make a token for itself.
  const audience = resources.find((one) => oidcAudience.includes(one)) ?? oidcAudience[0];
  return audience === undefined ? [] : [['audience', audience]];
}

const keptResources = (
  { oauthResourceParameter }: ProviderSettings,
  resources: readonly string[],
): Pairs =>
  oauthResourceParameter === 'resource' ? resources.map((one) => ['resource', one] as const) : [];
