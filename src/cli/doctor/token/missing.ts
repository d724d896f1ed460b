import { type Finding, unknown } from '../finding.ts';

/** What only a token of the provider can show. */
export const reportMissingToken = (): Finding =>
  unknown(
    'token',
    'whether the tokens of the provider are accepted (audience, issuer, JWT or opaque): none was given.',
    {
      remedy:
        'give an access token of a login, if clients log in and then get 401: --token "$TOKEN".',
    },
  );
