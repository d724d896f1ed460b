// --claims FILE: what the token of a user says.
import { readEmail, type UserContext } from '../../endpoint/user-context.ts';
import { isStringArray, parseObject } from '../../platform/json.ts';
import { UsageError } from '../command/errors.ts';

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
