// --token, --token-file: as whom the servers are asked.
import { readEmail, type UserContext } from '../../endpoint/user-context.ts';
import { isStringArray, parseObject } from '../../platform/json.ts';
import { UsageError } from '../command/errors.ts';

/**
 * Its claims are believed: who has the token reads with it what its user may read, and nobody is let in.
 *
 * @throws UsageError for what is no token, or one that has expired.
 */
export function readUser(token: string, now: number): UserContext {
  const claims = parseObject(Buffer.from(token.split('.')[1] ?? '', 'base64url'));
  const { sub, exp, groups } = claims ?? {};
  if (claims === undefined || typeof sub !== 'string' || sub === '') {
    throw new UsageError('The token is not a JWT with a "sub". Give an access token of a user.');
  }
  if (typeof exp === 'number' && exp * 1000 <= now) {
    throw new UsageError('The token has expired. Give an access token that is valid now.');
  }
  return {
    sub,
    claims,
    token,
    ...readEmail(claims),
    ...(isStringArray(groups) && { groups }),
  };
}
