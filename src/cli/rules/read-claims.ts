// --claims FILE: what the token of a user says.
import { isStringArray, parseObject } from '../../core/json.ts';
import type { UserContext } from '../../core/user-context.ts';
import { readEmail } from '../../core/user-context.ts';
import { UsageError } from '../command-line/usage-error.ts';

/** @throws UsageError for what is no JSON object. */
export function readClaims(text: string): UserContext {
  const claims = parseObject(text);
  if (claims === undefined) {
    throw new UsageError(
      '--claims must be a file with a JSON object: the claims of an access token, for example {"sub": "ann", "groups": ["staff"]}.',
    );
  }
  const { sub, name, groups } = claims;
  return {
    sub: typeof sub === 'string' ? sub : '',
    claims,
    token: '',
    ...readEmail(claims),
    ...(typeof name === 'string' && { name }),
    ...(isStringArray(groups) && { groups }),
  };
}
