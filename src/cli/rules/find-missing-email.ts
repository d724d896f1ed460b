// Why rules that name an e-mail address do not hold: of all claims, this one may be there and yet be withheld (§2.3).

import type { UserContext } from '../../endpoint/user-context.ts';
import type { GatewayFile } from '../../gateway/configuration/gateway-file.ts';

/** One line, or none where no rule asks, or all is there. */
export function findMissingEmail({ rules }: GatewayFile, user: UserContext): readonly string[] {
  const whens = rules.map(({ when = '' }) => when);
  const namesAddress =
    whens.some((when) => /\bemail\b/.test(when)) ||
    rules.some(({ who }) => who !== 'everyone' && who.claims?.email !== undefined);
  const namesVerified = whens.some((when) => /\bemail_verified\b/.test(when));
  if (user.email === undefined) {
    const what =
      user.claims.email === undefined ? 'have no "email"' : 'have an "email" that is not text';
    return namesAddress || namesVerified
      ? [`The claims ${what}, so rules see neither user.email nor user.email_verified.`]
      : [];
  }
  if (user.emailVerified === false)
    return namesAddress || namesVerified
      ? [
          `The claims do not say that the address is verified (${describeClaim(user)}), so rules see no user.email.`,
        ]
      : [];
  return user.emailVerified === undefined && namesVerified
    ? [
        'The claims do not say whether the address is verified (no "email_verified", nor "xms_edov" of Microsoft Entra), so rules see user.email, but no user.email_verified.',
      ]
    : [];
}

function describeClaim({ claims }: UserContext): string {
  const name = claims.email_verified === undefined ? 'xms_edov' : 'email_verified';
  return `"${name}" is ${JSON.stringify(claims[name])}`;
}
