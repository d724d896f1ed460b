// Parameters that the gateway adds when it asks the provider. Pure: the broker sends and receives.
import type { BrokerConfig } from '../../config/groups/oauth.ts';
import { DEFAULT_SCOPES, parseScope } from '../../config/rules.ts';
import type { FormPair } from '../../http/oauth-client/client-authentication.ts';
import { hashSha256 } from '../../platform/ids.ts';
import type { JsonObject } from '../../platform/json.ts';
import { MAX_SCOPES } from '../grants/token-codec.ts';

export type ProviderParametersConfig = Pick<
  BrokerConfig,
  'provider' | 'allowedScopes' | 'addedScopes'
>;

export const buildCallbackUrl = (baseUrl: string): string => `${baseUrl}/oauth/callback`;

/** RFC 7636 §4.2: by S256, the only method there is here. */
export const createCodeChallenge = (verifier: string): string => hashSha256(verifier);

/** The scopes that the provider is asked for; `requestedScope` as the client sent it. */
export function buildProviderScope(
  config: ProviderParametersConfig,
  requestedScope: string | undefined,
): string {
  const { ownScopesOnly = false } = config.provider.quirks;
  const requested = ownScopesOnly ? [] : selectAllowedScopes(config, requestedScope);
  return [...new Set([...requested, ...listOwnScopes(config)])].join(' ');
}

/** The scopes that a client is granted, which are those that its user is shown: what it asked for, then those added, each once. */
export function listGrantedScopes(
  config: ProviderParametersConfig,
  requestedScope: string | undefined,
): readonly string[] {
  const requested = selectAllowedScopes(config, requestedScope);
  const granted = requested.length > 0 ? requested : DEFAULT_SCOPES;
  // Where there are too many, those that the file adds stay: rules may rely on them.
  const kept = [...new Set([...config.addedScopes, ...granted])].slice(0, MAX_SCOPES);
  return [...new Set([...granted, ...kept])].filter((name) => kept.includes(name));
}

/** Further parameters of a refresh. RFC 6749 §6: `scope` may be left out, but not everywhere. */
export function buildRefreshParameters(config: ProviderParametersConfig): readonly FormPair[] {
  const { refreshNeedsScope = false } = config.provider.quirks;
  return refreshNeedsScope ? [['scope', listOwnScopes(config).join(' ')]] : [];
}

/** A provider's answer of RFC 6749 §5.1. */
export type ProviderTokenResponse = JsonObject;

/** Whatever clients ask for, the provider has to say who logs in, by scopes that it knows. */
const listOwnScopes = ({ addedScopes, provider }: ProviderParametersConfig) =>
  provider.quirks.ownScopesOnly ? addedScopes : [...new Set([...DEFAULT_SCOPES, ...addedScopes])];

/** Whatever else a client names, it must not borrow what the service's own client may do. */
const selectAllowedScopes = (
  { allowedScopes }: ProviderParametersConfig,
  scope: string | undefined,
): readonly string[] =>
  [...new Set(parseScope(scope))]
    .filter((name) => allowedScopes.includes('*') || allowedScopes.includes(name))
    .slice(0, MAX_SCOPES);
