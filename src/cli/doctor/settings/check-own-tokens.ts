// What tokens of the gateway's own (§5.11) need of the provider, and what they do not.

import type { Config } from '../../../config/config.ts';
import type { BrokerConfig } from '../../../config/groups/oauth.ts';
import type { Provider } from '../../../config/provider-profiles.ts';
import type { ProviderDocument } from '../../../http/oauth-client/provider-metadata.ts';
import { algorithms } from '../../../logins/auth/jwk.ts';
import { type Finding, type Found, failure, ok, warning } from '../finding.ts';
import { isDiscovered } from './check-discovery.ts';
import type { SettingsAtHand } from './settings-at-hand.ts';

/** Undefined in proxy mode, where clients get tokens of the provider. */
export const findBrokerConfig = ({ oauth }: Pick<Config, 'oauth'>): BrokerConfig | undefined =>
  oauth.mode === 'broker' ? oauth : undefined;

export async function checkTokenKind({ config }: SettingsAtHand): Promise<Found> {
  const oauth = findBrokerConfig(config);
  if (oauth === undefined) return [];
  const useless = oauth.tokens.acceptsProviderTokens ? '' : ', and the gateway no OIDC_AUDIENCE';
  return [
    ok('tokens', {
      what: "Clients get tokens of the gateway's own, which any OpenID provider allows.",
      why: 'A login ends at the next call once somebody ends it.',
    }),
    ok(
      'tokens.not-needed',
      `Own tokens: the provider need not issue JWT access tokens. It needs no API, audience, mapper or signing algorithm for them${useless}.`,
    ),
  ];
}

/** What the discovery document says of what a login comes to. */
export async function checkLoginAbilities({ access, config }: SettingsAtHand): Promise<Found> {
  const oauth = findBrokerConfig(config);
  if (oauth === undefined || access === undefined || !(await isDiscovered(access))) return [];
  // Where settings name all that it would, nobody needs the document.
  const document = await access.metadata.get().catch(() => undefined);
  if (document === undefined) return [];
  if (access.metadata.isFixed) return [judgeRefreshTokens(document, oauth)];
  return [
    ...judgeOpenId(document),
    ...judgeIdTokenAlgorithms(document),
    judgeRefreshTokens(document, oauth),
    judgeRevocation(document, oauth),
  ];
}

/** OpenID Connect Core §3.1.2.1. A provider may leave it out of its list all the same (Discovery §3). */
function judgeOpenId({ scopes_supported: scopes }: ProviderDocument): readonly Finding[] {
  if (scopes === undefined || scopes.includes('openid')) return [];
  return [
    warning('provider.openid', {
      what: 'The provider does not list the scope openid.',
      why: 'Without it there is no ID token, which says who logs in: every login would fail.',
      setting: 'OIDC_ISSUER',
      remedy:
        'check that it is the issuer of an OpenID provider, and not of an authorization server for APIs alone; or allow the scope openid there.',
    }),
  ];
}

function judgeIdTokenAlgorithms({
  id_token_signing_alg_values_supported: listed,
}: ProviderDocument): readonly Finding[] {
  if (listed === undefined || listed.some((name) => algorithms.has(name))) return [];
  return [
    failure('provider.id-token', {
      what: `The provider signs ID tokens with ${listed.join(', ')} only.`,
      why: 'The gateway checks them by the public keys of the provider, and does not know such an algorithm.',
      setting: 'OIDC_ISSUER',
      remedy: `have the provider sign ID tokens with a key pair, for example RS256 (${[...algorithms.keys()].join(', ')}). In authentik, choose a signing key.`,
    }),
  ];
}

const REFRESH_CHECK = 'provider.offline-access';

/** Those that give refresh tokens without the scope `offline_access`. */
const NEED_NO_SCOPE: ReadonlySet<Provider> = new Set(['keycloak', 'google', 'cognito', 'gitlab']);

function judgeRefreshTokens(
  { scopes_supported: scopes = [] }: ProviderDocument,
  { provider, addedScopes, tokens }: BrokerConfig,
): Finding {
  const isAsked = [...scopes, ...addedScopes].includes('offline_access');
  if (isAsked || NEED_NO_SCOPE.has(provider.name)) {
    const how = isAsked
      ? 'The gateway asks for offline_access, and gets refresh tokens'
      : 'The provider gives refresh tokens, and needs no scope for that';
    return ok(
      REFRESH_CHECK,
      `${how}: the gateway asks it again every ${tokens.renewalSeconds} s whether a user still may.`,
    );
  }
  if (provider.quirks.accessTokensLast) {
    return ok(
      REFRESH_CHECK,
      `The provider's access tokens live until they are revoked, unless it gives refresh tokens: by either the gateway asks it again every ${tokens.renewalSeconds} s whether a user still may.`,
    );
  }
  return warning(REFRESH_CHECK, {
    what: 'The provider does not list the scope offline_access, so it may give the gateway no refresh token.',
    why: `The gateway could not ask it again whether a user still may: each login would end after OAUTH_GRANT_UNRENEWED_SECONDS (${tokens.grantUnrenewedSeconds} s), and the user log in once more.`,
    setting: 'OAUTH_ADDED_SCOPES, OAUTH_GRANT_UNRENEWED_SECONDS',
    remedy:
      'allow refresh tokens for the client at the provider. If it knows the scope without listing it, set OAUTH_ADDED_SCOPES=offline_access.',
  });
}

function judgeRevocation(
  { revocation_endpoint: found }: ProviderDocument,
  { endpoints }: BrokerConfig,
): Finding {
  const url = endpoints.revocationUrl ?? found;
  return ok(
    'provider.revocation',
    url === undefined
      ? 'The provider has no revocation endpoint: a login that ends here ends here all the same, and its refresh token there dies of age.'
      : "Where a login ends here, the provider's refresh token is revoked, too.",
  );
}
