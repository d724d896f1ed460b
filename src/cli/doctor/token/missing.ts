import { type Finding, unknown } from '../finding.ts';

/** What only a token of the provider can show. */
export const reportMissingToken = (baseUrl: string): Finding =>
  unknown(
    'token',
    "whether the provider's tokens are accepted (audience, issuer, JWT or opaque), without one.",
    {
      remedy: `log in at ${baseUrl}/playground, which says what is wrong with the token, or give one of a user: --token-file FILE`,
    },
  );
