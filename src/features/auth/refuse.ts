// Decisions 10: a refusal of a token says what was found and what is allowed, to its bearer and to
// the log alike. Never put a token, or a part of one, here.
import type { ErrorKey } from '../../core/errors/catalogue.ts';
import { fail } from '../../core/errors/gateway-error.ts';

export interface Found {
  /** Of the token's own choosing: it is cut where it is long. */
  readonly found: unknown;
  readonly expected: unknown;
}

/** @throws GatewayError `invalid_token`, or `key`, always. */
export function refuse(
  details: string,
  { found, expected }: Found,
  key: ErrorKey = 'invalid_token',
): never {
  const isShort = textOf(found).length <= SHOWN_CHARACTERS;
  return fail(key, { details, facts: { found: isShort ? found : quote(found), expected } });
}

const SHOWN_CHARACTERS = 400;

/** A value of a token's, as it is shown in a sentence. */
export function quote(value: unknown): string {
  const text = textOf(value);
  return text.length <= SHOWN_CHARACTERS ? text : `${text.slice(0, SHOWN_CHARACTERS)}…`;
}

/** JSON nests as deep as it likes when it is parsed, not when it is written. */
function textOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? 'nothing';
  } catch {
    return 'a value that is nested too deep';
  }
}
