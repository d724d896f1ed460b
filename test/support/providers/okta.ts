// Okta's org authorization server: its access tokens are for Okta alone, its ID tokens are thin, and the client authenticates
// itself by Basic.
//
// https://developer.okta.com/docs/concepts/auth-servers/#org-authorization-server (issuer without a path, tokens that
//   nobody else can validate)
// https://developer.okta.com/docs/api/openapi/okta-oauth/oauth/orgas/ (paths, scopes, errors)
// https://developer.okta.com/docs/concepts/oauth-openid/#retrieve-additional-claims (claims that only userinfo has)
// https://developer.okta.com/docs/guides/refresh-tokens/main/ (offline_access, rotation, its grace period of 30 seconds, reuse)
import { randomBytes } from 'node:crypto';
import { type Habits, readSeconds } from './habits.ts';
import { describePerson, describeWithGroups, OPENID_HABITS } from './openid-habits.ts';

export const OKTA: Habits = {
  ...OPENID_HABITS,
  title: 'Okta',
  settings: { OIDC_PROVIDER: 'okta' },
  paths: {
    keys: '/oauth2/v1/keys',
    authorize: '/oauth2/v1/authorize',
    token: '/oauth2/v1/token',
    userinfo: '/oauth2/v1/userinfo',
    revoke: '/oauth2/v1/revoke',
    endSession: '/oauth2/v1/logout',
  },
  clientAuth: ['basic'],
  scopes: ['openid', 'profile', 'email', 'address', 'phone', 'offline_access', 'groups'],
  refusesUnknownScopes: true,
  idTokenMembers: ['at_hash', 'auth_time'],
  usedRefreshToken: 'ends the login',
  reuseSeconds: 30,
  spentRefusal: {
    error: 'invalid_grant',
    error_description: 'The refresh token is invalid or expired.',
  },
  describeInIdToken: ({ person, scopes }) => ({
    sub: person.sub,
    ver: 1,
    ...(scopes.includes('profile') && { name: person.name, preferred_username: person.email }),
  }),
  describeInUserinfo: (login) =>
    login.scopes.includes('groups') ? describeWithGroups(login) : describePerson(login),
  // By a key that is not in the key set.
  createAccessToken({ person, scopes }, here) {
    const now = readSeconds(here);
    const claims = { ver: 1, aud: here.origin, cid: here.clientId, sub: person.sub, scp: scopes };
    return here.issuer.sign({ ...claims, iat: now, exp: now + 3600 }, { kid: 'not-published' });
  },
  createRefreshToken: () => randomBytes(32).toString('base64url'),
};
