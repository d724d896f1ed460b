// Auth0: an issuer that ends in a slash, opaque access tokens unless an API is asked for, and refresh tokens of which a
// used one ends its whole family.
//
// https://auth0.com/docs/get-started/applications/configure-applications-with-oidc-discovery (paths, the slash)
// https://auth0.com/docs/secure/tokens/access-tokens/get-access-tokens (audience, opaque tokens)
// https://auth0.com/docs/secure/tokens/refresh-tokens/refresh-token-rotation (offline_access, rotation, reuse detection)
// https://auth0.com/docs/authenticate/login/logout/back-channel-logout (logout tokens)
// https://community.auth0.com/t/unknown-or-invalid-refresh-token/73706 (invalid_grant comes with status 403)
import { randomBytes } from 'node:crypto';
import { type Habits, readSeconds } from './habits.ts';
import { OPENID_HABITS } from './openid-habits.ts';

export const AUTH0: Habits = {
  ...OPENID_HABITS,
  title: 'Auth0',
  settings: { OIDC_PROVIDER: 'auth0' },
  issuerPath: '/',
  paths: {
    keys: '/.well-known/jwks.json',
    authorize: '/authorize',
    token: '/oauth/token',
    userinfo: '/userinfo',
    revoke: '/oauth/revoke',
    endSession: '/oidc/logout',
  },
  idTokenMembers: ['sid'],
  expiresIn: 86_400,
  usedRefreshToken: 'ends the login',
  spentRefusal: {
    status: 403,
    error: 'invalid_grant',
    error_description: 'Unknown or invalid refresh token.',
  },
  revocationEnds: 'all of the user',
  logoutTokenNames: ['sid', 'sub'],
  createAccessToken({ person, asked, scopes }, here) {
    const audience = asked.get('audience');
    if (audience === null) return randomBytes(24).toString('base64url');
    const now = readSeconds(here);
    return here.issuer.sign({
      sub: person.sub,
      aud: [audience, `${here.origin}/userinfo`],
      azp: here.clientId,
      scope: scopes.join(' '),
      iat: now,
      exp: now + 86_400,
    });
  },
  createRefreshToken: () => `v1.${randomBytes(42).toString('base64url')}`,
};
