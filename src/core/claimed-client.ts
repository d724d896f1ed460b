import type { JsonObject } from './json.ts';

/** RFC 9068 §2.2, OpenID Connect Core §2, and what Okta and Microsoft Entra call it. */
const CLIENT_CLAIMS = ['azp', 'client_id', 'cid', 'appid'] as const;

/** The OAuth client that a token was issued to, as its provider says it. */
export function readClaimedClient(claims: JsonObject): string | undefined {
  for (const name of CLIENT_CLAIMS) {
    const value = Object.hasOwn(claims, name) ? claims[name] : undefined;
    if (typeof value === 'string' && value !== '') return value;
  }
  return undefined;
}
