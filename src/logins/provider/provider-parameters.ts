// Parameters of the gateway's requests to the provider. Pure.
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

/** RFC 7636 §4.2: by S256, the only supported method. */
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

/** The scopes that a client is granted, and its user is shown: those that it asked for, then the added ones, each once. */
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

/** A provider's token response (RFC 6749 §5.1). */
export type ProviderTokenResponse = JsonObject;

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
