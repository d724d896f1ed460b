import { failUnknown } from '../errors/fail-unknown.ts';
import { stripUri } from '../platform/strip-uri.ts';
import { LIST_KINDS, type ListKind } from './list-kinds.ts';

/** Beside the name. */
export interface UnknownItemDetails {
  /** What may have been meant: of what this caller sees. */
  readonly nearest?: string | undefined;
  /** For the log only. */
  readonly facts?: Readonly<Record<string, unknown>>;
}

/** What is denied looks the same, but in the log. @throws GatewayError `invalid_params`. */
export function failUnknownItem(
  list: ListKind,
  name: string,
  { nearest, facts }: UnknownItemDetails = {},
): never {
  const { ruled, noun } = LIST_KINDS[list];
  return failUnknown({
    noun,
    name: ruled === 'resource' ? stripUri(name) : name,
    nearest,
    ...(facts && { facts }),
    ...(list === 'resources' && { data: { uri: name } }),
  });
}
