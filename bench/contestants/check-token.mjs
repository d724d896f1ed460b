// As the documentation of both MCP libraries shows it: jose checks the token on every request.
import { createRemoteJWKSet, jwtVerify } from 'jose';

const { ISSUER, AUDIENCE } = process.env;
const keySet = createRemoteJWKSet(new URL(`${ISSUER}/jwks`));

/** The token's claims. Throws when it is missing or not good. */
export async function checkToken({ authorization = '' }) {
  const token = authorization.replace(/^Bearer /, '');
  const { payload } = await jwtVerify(token, keySet, { issuer: ISSUER, audience: AUDIENCE });
  return payload;
}
