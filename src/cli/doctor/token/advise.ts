// Why a token is refused, by the reason that the gateway has for it (§7.1), and what to change.
import type { Provider } from '../../../config/provider-profiles.ts';
import type { Advice } from '../finding.ts';
import { adviseOnAudience, adviseOnOpaqueToken } from '../provider/audience-advice.ts';
import { readTokenParts } from './describe.ts';

export interface RefusedToken {
  readonly reason: string | undefined;
  readonly token: string;
  readonly provider: Provider;
  /** What it should name. */
  readonly audience: readonly string[];
}

export interface TokenAdvice {
  /** Undefined where it has no name of its own. */
  readonly check?: string;
  readonly advice: Advice;
}

export function adviseOnToken({ reason, token, provider, audience }: RefusedToken): TokenAdvice {
  const parts = readTokenParts(token);
  if (parts === undefined)
    return {
      check: 'token.opaque',
      advice: {
        setting: 'OIDC_AUDIENCE, OAUTH_ACCESS_TOKEN',
        remedy: adviseOnOpaqueToken(provider),
      },
    };
  switch (reason) {
    case 'invalid_audience':
      return {
        check: parts.claims.aud === undefined ? 'token.audience-missing' : 'token.audience',
        advice: {
          ...(parts.claims.aud === undefined && {
            why: 'It names no audience at all: the mapper, or the API, that adds one is missing at the provider.',
          }),
          setting: 'OIDC_AUDIENCE',
          remedy: adviseOnAudience(provider, { expected: audience[0], found: parts.claims.aud }),
        },
      };
    case 'invalid_issuer':
      return {
        check: 'token.issuer',
        advice: {
          why: 'Issuers are compared character by character; a slash at the end counts.',
          setting: 'OIDC_ISSUER',
          remedy: `set OIDC_ISSUER=${String(parts.claims.iss)} if this is the provider that is meant.`,
        },
      };
    case 'expired_token':
      return {
        check: 'token.expired',
        advice: {
          remedy:
            'get a new token. If this one is new, a clock is wrong: compare those of the provider and of the gateway.',
        },
      };
    case 'missing_claim':
      return {
        check: 'token.sub',
        advice: {
          remedy: 'have the provider put sub into access tokens (Keycloak: client scope basic).',
        },
      };
    default:
      return {
        advice: { remedy: 'send the access token that this provider issued for the gateway.' },
      };
  }
}
