// Google: opaque access tokens, a refresh token only for those who ask in its own way, and one end for all logins of a user.
//
// https://accounts.google.com/.well-known/openid-configuration (paths are others here than hosts there; scopes_supported)
// https://developers.google.com/identity/openid-connect/openid-connect#an-id-tokens-payload (azp, at_hash, hd)
// https://developers.google.com/identity/protocols/oauth2/web-server#offline (access_type, prompt, the first consent only;
//   the answer to a refresh has no other refresh token; errors)
// https://developers.google.com/identity/protocols/oauth2/web-server#tokenrevoke
// https://cloud.google.com/docs/authentication/token-types (access tokens are opaque)
import { randomBytes } from 'node:crypto';
import type { Habits } from './habits.ts';
import { describePerson, OPENID_HABITS } from './openid-habits.ts';

export const GOOGLE: Habits = {
  ...OPENID_HABITS,
  title: 'Google',
  settings: { OIDC_PROVIDER: 'google' },
  paths: {
    keys: '/oauth2/v3/certs',
    authorize: '/o/oauth2/v2/auth',
    token: '/token',
    userinfo: '/v1/userinfo',
    revoke: '/revoke',
  },
  scopes: ['openid', 'email', 'profile'],
  // offline_access among them.
  refusesUnknownScopes: true,
  idTokenMembers: ['at_hash'],
  expiresIn: 3599,
  usedRefreshToken: 'is kept',
  spentRefusal: {
    error: 'invalid_grant',
    error_description: 'Token has been expired or revoked.',
  },
  revocationEnds: 'all of the user',
  givesRefreshToken({ asked }, isFirst) {
    const asksForConsent = asked.get('prompt')?.split(' ').includes('consent') ?? false;
    return asked.get('access_type') === 'offline' && (isFirst || asksForConsent);
  },
  describeInIdToken(login, { clientId }) {
    const [, domain] = login.person.email.split('@');
    return {
      azp: clientId,
      ...describePerson(login),
      // Of a Workspace; an account at gmail.com has none.
      ...(domain !== 'gmail.com' && { hd: domain }),
    };
  },
  createAccessToken: () => `ya29.${randomBytes(64).toString('base64url')}`,
  createRefreshToken: () => `1//${randomBytes(48).toString('base64url')}`,
};
