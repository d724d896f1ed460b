// Assertions of an identity provider about its users (ID-JAG), right ones and changed ones, and clients that bring them.
import { randomUUID } from 'node:crypto';
import type { TestGateway, TestResponse } from '../gateway/gateway.ts';
import type { Issuer, SignOptions } from './issuer.ts';
import { askForToken, basic, type Members, SECRET, type TokenRequest } from './machine-clients.ts';
import { BASE } from './own-tokens.ts';

export const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
export const ID_JAG_TYPE = 'oauth-id-jag+jwt';

export const ID_JAG_ENV = { ID_JAG: 'true' };

/** `now` in epoch milliseconds; members that are undefined are left out. */
export const claimsOfUser = (issuer: string, now: number, change: Members = {}): Members => ({
  iss: issuer,
  sub: 'user-1',
  name: 'Ada',
  email: 'ada@example.com',
  email_verified: true,
  aud: BASE,
  client_id: 'agent',
  resource: `${BASE}/mcp`,
  scope: 'read write',
  iat: Math.floor(now / 1000),
  exp: Math.floor(now / 1000) + 300,
  jti: randomUUID(),
  ...change,
});

export interface Change {
  readonly claims?: Members;
  readonly header?: Members;
  readonly sign?: SignOptions;
}

/** An assertion as the issuer makes it, but for `change`. */
export const assertUser = (
  issuer: Issuer,
  now: number,
  { claims = {}, header = {}, sign = {} }: Change = {},
): Promise<string> =>
  issuer.sign(claimsOfUser(issuer.url, now, claims), {
    ...sign,
    header: { typ: ID_JAG_TYPE, ...header },
  });

/** The token request of a client that has a secret, unless `request` says otherwise. */
export const bringAssertion = (
  gateway: Pick<TestGateway, 'request'>,
  assertion: string,
  { form = {}, authorization = basic('agent', SECRET), ...request }: TokenRequest = {},
): Promise<TestResponse> =>
  askForToken(gateway, {
    form: { grant_type: JWT_BEARER, assertion, ...form },
    authorization,
    ...request,
  });
