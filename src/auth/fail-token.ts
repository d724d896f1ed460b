// A refusal of a token says what was found and what is allowed, to its bearer and to the log alike.
// Never put a token, or a part of one, here.
import type { ErrorKey } from '../errors/catalogue.ts';
import { fail } from '../errors/gateway-error.ts';
import { MAX_QUOTED, quote } from '../platform/text.ts';

export interface FoundAndExpected {
  /** Of the token's own choosing: it is cut where it is long. */
  readonly found: unknown;
  readonly expected: unknown;
}

/** @throws GatewayError `invalid_token`, or `key`, always. */
export function failToken(
  details: string,
  { found, expected }: FoundAndExpected,
  key: ErrorKey = 'invalid_token',
): never {
  const quoted = quote(found);
  const facts = { found: quoted.length <= MAX_QUOTED ? found : quoted, expected };
  return fail(key, { details, facts });
}
