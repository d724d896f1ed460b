const SCHEME = 'bearer ';

/** RFC 6750 §2.1: the token of an Authorization header; undefined for any other header. */
export function readBearerToken(authorization = ''): string | undefined {
  if (authorization.slice(0, SCHEME.length).toLowerCase() !== SCHEME) return undefined;
  let start = SCHEME.length;
  while (authorization[start] === ' ') start += 1;
  const token = authorization.slice(start);
  // One expression for all of it would take a microsecond for a token.
  return token === '' || /\s/.test(token) ? undefined : token;
}
