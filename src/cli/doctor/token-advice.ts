// Advice about a token: what it says of itself, why it is refused, and what to change. The token itself is never printed.

import type { Provider } from '../../config/provider-profiles.ts';
import { isOwnToken } from '../../http/endpoint/bearer.ts';

import { parseObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import { type Advice, type Finding, unknown, warning } from './finding.ts';

/** `reason` is the one that the gateway has for its refusal (§7.1), `expected` the audience that the token should name. */
export function adviseOnToken(
  reason: string | undefined,
  token: string,
  provider: Provider = 'generic',
  [expected = 'what the gateway expects']: readonly string[] = [],
): Advice & { readonly check?: string } {
  const parts = readTokenParts(token);
  if (parts === undefined)
    return {
      check: 'token.opaque',
      setting: 'OAUTH_MODE, OIDC_AUDIENCE',
      remedy: `${OPAQUE[provider] ?? 'have the provider issue JWTs as access tokens for this API (RFC 9068; in Ory Hydra: strategies.access_token=jwt).'} Or have the gateway issue tokens of its own, for which the provider's may be opaque: OAUTH_MODE=broker.`,
    };
  const { aud, iss } = parts.claims;
  const found: unknown = Array.isArray(aud) && aud.length === 1 ? aud[0] : aud;
  switch (reason) {
    case 'invalid_audience':
      return {
        check: aud === undefined ? 'token.audience-missing' : 'token.audience',
        ...(aud === undefined && {
          why: 'It names no audience at all: the mapper, or the API, that adds one is missing at the provider.',
        }),
        setting: 'OIDC_AUDIENCE',
        remedy: ADVICE[provider](expected, typeof found === 'string' ? found : undefined),
      };
    case 'invalid_issuer':
      return {
        check: 'token.issuer',
        why: 'Issuers are compared character by character; a slash at the end counts.',
        setting: 'OIDC_ISSUER',
        remedy: `set OIDC_ISSUER=${String(iss)} if this is the provider that is meant.`,
      };
    case 'expired_token':
      return {
        check: 'token.expired',
        remedy:
          'get a new token. If this one is new, a clock is wrong: compare those of the provider and of the gateway.',
      };
    case 'missing_claim':
      return {
        check: 'token.sub',
        remedy: 'have the provider put sub into access tokens (Keycloak: client scope basic).',
      };
    case 'user_not_allowed':
      return {
        setting: 'LOGIN_ALLOWED_EMAILS, LOGIN_ALLOWED_GROUPS, LOGIN_ALLOWED_CLAIMS',
        remedy:
          'compare the claims of the token with these settings. If it is that of a service account, name its client in LOGIN_EXEMPT_CLIENTS.',
      };
    default:
      return { remedy: 'send the access token that this provider issued for the gateway.' };
  }
}

/** After "The token is for another audience": why, and what to click. docs/provider-*.md say it at length. */
const ADVICE: Readonly<Record<Provider, (expected: string, found: string | undefined) => string>> =
  {
    generic: (expected, found) =>
      `register ${expected} as an API (audience, resource) at the provider, or ${
        found === undefined
          ? "set OIDC_AUDIENCE to what the provider's tokens name for this gateway alone."
          : `set OIDC_AUDIENCE=${found} if that names this gateway alone.`
      }`,
    entra: () =>
      'set OIDC_AUDIENCE to the application (client) ID of the API whose scope is in OAUTH_ADDED_SCOPES. An aud of 00000003-0000-0000-c000-000000000000 is Microsoft Graph: no scope of your API was asked for.',
    okta: () =>
      'set OIDC_AUDIENCE to the Audience of the custom authorization server (Security → API).',
    auth0: (expected) =>
      `create an API whose identifier is ${expected} (Applications → APIs), or set OIDC_AUDIENCE to the identifier of the one that you have.`,
    keycloak: (expected) =>
      `add an Audience mapper with the Included Custom Audience ${expected} to the client (Client scopes → <client>-dedicated → Add mapper). An aud of "account", or none, means that this mapper is missing.`,
    google: () => 'set OAUTH_CLIENT_ID to the client whose ID tokens these are.',
    cognito: () => 'set OAUTH_CLIENT_ID to the app client that the token was issued to.',
    authentik: () => 'set OAUTH_CLIENT_ID to the client ID of the provider in authentik.',
    dex: () => 'set OAUTH_CLIENT_ID to the id of the static client that the gateway uses.',
    github: () => OWN_TOKENS_ONLY,
    gitlab: () => OWN_TOKENS_ONLY,
    slack: () => OWN_TOKENS_ONLY,
  };

const OWN_TOKENS_ONLY = 'send a token of the gateway: none of this provider is accepted.';

/** Why access tokens of a provider are opaque. */
const OPAQUE: Partial<Readonly<Record<Provider, string>>> = {
  auth0:
    'Auth0 issues opaque tokens where no API was asked for: create an API and set OIDC_AUDIENCE to its identifier.',
  okta: 'The org authorization server issues tokens that only Okta can read: use a custom one (OIDC_ISSUER=https://<org>.okta.com/oauth2/<id>).',
  google: "Google's access tokens are opaque: send its ID token instead.",
};

/** Undefined for what is no JWT: an opaque token. Nothing is verified. */
export function readTokenParts(token: string) {
  const parts = token.split('.');
  const [header, claims] = parts.map((part) => parseObject(Buffer.from(part, 'base64url')));
  return parts.length === 3 && header !== undefined && claims !== undefined
    ? { header, claims }
    : undefined;
}

/** `says` is the gateway's own sentence. Of an opaque token it says at length what the advice says. */
export const describeTokenRefusal = (
  verb: 'refuses' | 'would refuse',
  token: string,
  says: string,
): string =>
  readTokenParts(token) === undefined
    ? `The gateway ${verb} the token, which is no JWT but opaque: only the provider can read it.`
    : `The gateway ${verb} the token: ${says}`;

/** Renders what follows "the token"; empty for what cannot be read. */
export function describeToken(token: string, now: number): string {
  if (isOwnToken(token)) return ", which is one of the gateway's own";
  const parts = readTokenParts(token);
  if (parts === undefined) return '';
  const { sub, aud, exp, scope, scp, groups } = parts.claims;
  const minutes = typeof exp === 'number' ? Math.round((exp - now / 1000) / 60) : undefined;
  const facts = [
    `sub ${quote(sub, 80)}`,
    `aud ${quote(aud, 160)}`,
    minutes !== undefined && `${minutes} min left`,
    `scope ${quote(scope ?? scp, 120)}`,
    // Rules and the operators' page look at them, so that a token without any explains what is missing.
    groups === undefined ? 'no groups' : `groups ${quote(groups, 160)}`,
  ];
  return `: ${facts.filter(Boolean).join(', ')}`;
}

/**
 * Some clients refresh whenever less than five minutes of an access token are left. With twice those five minutes, half of
 * its life is free of refreshes.
 */
const MIN_SECONDS = 600;

/** Nothing for a token that does not say when it was issued. */
export function judgeLifetime(token: string): Finding | undefined {
  const { iat, exp } = readTokenParts(token)?.claims ?? {};
  if (typeof iat !== 'number' || typeof exp !== 'number' || exp - iat >= MIN_SECONDS)
    return undefined;
  const seconds = exp - iat;
  const span = seconds % 60 === 0 && seconds >= 120 ? `${seconds / 60} minutes` : `${seconds} s`;
  return warning('token.lifetime', {
    what: `Access tokens live ${span} only.`,
    why: 'VS Code and others ask for a new one all the time once less than five minutes are left.',
    remedy:
      'have the provider issue access tokens that live 10 minutes or longer (in Keycloak: Realm settings, Tokens, Access Token Lifespan).',
  });
}

/** Reports what only a token of the provider can show. */
export const reportMissingToken = (baseUrl: string): Finding =>
  unknown('token', {
    what: "whether the provider's tokens are accepted (audience, issuer, JWT or opaque), without one.",
    remedy: `log in at ${baseUrl}/playground, which says what is wrong with the token, or give one of a user: --token-file FILE`,
  });
