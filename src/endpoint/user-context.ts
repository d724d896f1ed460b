import { hashSha256 } from '../platform/ids.ts';
import type { JsonObject } from '../platform/json.ts';

/** §2.3: what a verified token says of its user. Built anew for every request. */
export interface UserContext {
  /** The subject: the user's id at the provider. Never empty. */
  readonly sub: string;
  readonly email?: string;
  /** Whether the provider says that `email` is the user's; undefined where it does not say. False is a reason not to use it. */
  readonly emailVerified?: boolean;
  readonly name?: string;
  readonly groups?: readonly string[];
  /** All claims of the token, as the provider signed them. */
  readonly claims: Readonly<Record<string, unknown>>;
  /**
   * The original JWT, for tools that call other services on the user's behalf. A secret. Absent where the gateway's own
   * token let the user in.
   */
  readonly token?: string;
  /** Where the gateway's own token let the user in: whether that still holds is asked in the step that counts the call. */
  readonly grant?: GrantCheck;
}

/** What tells the user's credential from every other: for what is remembered of it. Nothing of a token can be read from it. */
export const identifyCredential = ({ token, grant }: UserContext): string =>
  grant === undefined ? hashSha256(token ?? '') : `${grant.id}.${grant.version}`;

/** A grant as this process knows it. It holds for a call when the store, asked by its key, has the same version. */
export interface GrantCheck {
  readonly id: string;
  /** The OAuth client that it was given to. */
  readonly clientId: string;
  /** Under which it lies in the store. */
  readonly key: string;
  /** What the value there begins with: `GRANT_VERSION_LENGTH` characters (store.ts), others after each change. */
  readonly version: string;
}

/**
 * The provider's access token for a user: the one that let it in, or the one of its grant, renewed where it is about to
 * expire. Undefined where there is none that is good now.
 */
export type GetProviderToken = (user: UserContext) => Promise<string | undefined>;

/** Where clients get the provider's tokens. */
export const getOriginalToken: GetProviderToken = async ({ token }) => token;

// §2.3: what a token says of its user's e-mail address, and whether somebody checked that it is the user's.

type UserEmail = Pick<UserContext, 'email' | 'emailVerified'>;

/**
 * Nothing without an address. Whether it was verified is left open where the token does not say: many companies'
 * providers, which alone set the addresses of their users, have no claim for it. What is there and does not say yes is a no.
 */
export function readEmail(claims: Readonly<Record<string, unknown>>): UserEmail {
  const { email, email_verified: verified, xms_edov: domainVerified } = claims;
  if (typeof email !== 'string') return {};
  // Microsoft Entra has a claim of its own: the owner of the address's domain was verified.
  const said = verified === undefined ? domainVerified : verified;
  return said === undefined ? { email } : { email, emailVerified: YES.has(said) };
}

/** OpenID Connect Core §5.1 has a boolean; Amazon Cognito and Apple write text, Entra a number or text, too. */
const YES: ReadonlySet<unknown> = new Set([true, 'true', 1, '1']);

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
