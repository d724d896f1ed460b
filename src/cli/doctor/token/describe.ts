// What a token says of itself, in a few words. Never the token.
import { type JsonObject, parseObject } from '../../../platform/json.ts';
import { quote } from '../../../platform/text.ts';

export interface TokenParts {
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
