// What a token says of itself, in a few words, and what its lifetime means. Never the token.
import { type JsonObject, parseObject } from '../../../platform/json.ts';
import { quote } from '../../../platform/text.ts';
import { type Finding, unknown, warning } from '../finding.ts';

interface TokenParts {
  readonly header: JsonObject;
  readonly claims: JsonObject;
}

/** Undefined for what is no JWT: an opaque token. Nothing is verified. */
export function readTokenParts(token: string): TokenParts | undefined {
  const parts = token.split('.');
  const [header, claims] = parts.map((part) => parseObject(Buffer.from(part, 'base64url')));
  return parts.length === 3 && header !== undefined && claims !== undefined
    ? { header, claims }
    : undefined;
}

/** `says` is the gateway's own sentence. Of an opaque token it says at length what the advice says. */
export const describeRefusal = (
  verb: 'refuses' | 'would refuse',
  token: string,
  says: string,
): string =>
  readTokenParts(token) === undefined
    ? `The gateway ${verb} the token, which is no JWT but opaque: only the provider can read it.`
    : `The gateway ${verb} the token: ${says}`;

/** Begins with a colon; empty for what cannot be read. */
export function describeToken(token: string, now: number): string {
  const parts = readTokenParts(token);
  if (parts === undefined) return '';
  const { sub, aud, exp, scope, scp, groups } = parts.claims;
  const minutes = typeof exp === 'number' ? Math.round((exp - now / 1000) / 60) : undefined;
  const facts = [
    `sub ${quote(sub, 80)}`,
    `aud ${quote(aud, 160)}`,
    ...(minutes === undefined ? [] : [`${minutes} min left`]),
    `scope ${quote(scope ?? scp, 120)}`,
    // Rules and the operators' page look at them, so that a token without any explains what is missing.
    groups === undefined ? 'no groups' : `groups ${quote(groups, 160)}`,
  ];
  return `: ${facts.join(', ')}`;
}

/**
 * Some clients refresh whenever less than five minutes of an access token are left. With twice those five minutes, half of
 * its life is free of refreshes.
 */
const MIN_SECONDS = 600;

/** Nothing for a token that does not say when it was issued. */
export function judgeLifetime(token: string): readonly Finding[] {
  const { iat, exp } = readTokenParts(token)?.claims ?? {};
  if (typeof iat !== 'number' || typeof exp !== 'number' || exp - iat >= MIN_SECONDS) return [];
  return [
    warning('token.lifetime', `Access tokens live ${describeSpan(exp - iat)} only.`, {
      why: 'VS Code and others ask for a new one all the time once less than five minutes are left.',
      remedy:
        'have the provider issue access tokens that live 10 minutes or longer (in Keycloak: Realm settings, Tokens, Access Token Lifespan).',
    }),
  ];
}

const describeSpan = (seconds: number): string =>
  seconds % 60 === 0 && seconds >= 120 ? `${seconds / 60} minutes` : `${seconds} s`;

/** What only a token of the provider can show. */
export const reportMissingToken = (baseUrl: string): Finding =>
  unknown(
    'token',
    "whether the provider's tokens are accepted (audience, issuer, JWT or opaque), without one.",
    {
      remedy: `log in at ${baseUrl}/playground, which says what is wrong with the token, or give one of a user: --token-file FILE`,
    },
  );
