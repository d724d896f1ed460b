// §2.3: what a token says of its user's e-mail address, and whether somebody checked that it is the user's.
import type { UserContext } from './user-context.ts';

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
