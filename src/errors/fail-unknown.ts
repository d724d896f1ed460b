// §7.1: a name that nobody has, in the same words wherever it is looked for: what is denied, and what one server or another
// does not have, cannot be told from each other. Many clients show nothing but the message.
import { quote, shorten } from '../platform/text.ts';
import { toVisibleJson } from '../platform/visible-json.ts';
import { fail } from './gateway-error.ts';

export interface UnknownItem {
  /** Such as `tool`. */
  readonly noun: string;
  /** In the caller's words, but for what no log may have. */
  readonly name: string;
  /** What may have been meant: of what this caller sees. */
  readonly nearest?: string | undefined;
  /** Further members of `data`. */
  readonly data?: Readonly<Record<string, unknown>>;
  /** For the log only. */
  readonly facts?: Readonly<Record<string, unknown>>;
}

/** Characters of a name that the message shows, and that `details` does. */
const MAX_IN_MESSAGE = 100;
const MAX_IN_DETAILS = 200;

/** @throws GatewayError `invalid_params`. */
export function failUnknown({ noun, name, nearest, data, facts }: UnknownItem): never {
  const suggestion = nearest === undefined ? '' : ` Did you mean ${nearest}?`;
  return fail('invalid_params', {
    message: `Unknown ${noun}: ${showName(name)}.${suggestion}`,
    details: `Unknown ${noun} ${quote(name, MAX_IN_DETAILS)}`,
    ...(data && { data }),
    ...(facts && { facts }),
  });
}

/** Without quotation marks, and with nothing that is invisible or turns other text around. */
function showName(name: string): string {
  // No character takes more than two units: of a long text nobody has to read the rest.
  const piece = shorten(name.slice(0, 2 * (MAX_IN_MESSAGE + 1)), MAX_IN_MESSAGE);
  return piece === '' ? '""' : toVisibleJson(piece).slice(1, -1);
}
