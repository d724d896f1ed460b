// dex: an access token that is an ID token, groups by a scope, and a used refresh token that is an invalid request.
//
// https://dexidp.io/docs/configuration/custom-scopes-claims-clients/ (scopes, aud)
// https://github.com/dexidp/dex/blob/master/server/oauth2.go (access tokens are made as ID tokens are, with at_hash;
//   unrecognized scopes are refused)
// https://github.com/dexidp/dex/blob/master/server/refreshhandlers.go (invalid_request for a token that is not known)
import { randomUUID } from 'node:crypto';
import { type Habits, type Login, readSeconds } from './habits.ts';
import { describePerson, describeWithGroups, OPENID_HABITS } from './openid-habits.ts';

const describeDexUser = (login: Login) =>
  login.scopes.includes('groups') ? describeWithGroups(login) : describePerson(login);

export const DEX: Habits = {
  ...OPENID_HABITS,
  title: 'dex',
  settings: { OIDC_PROVIDER: 'dex' },
  issuerPath: '/dex',
  paths: {
    keys: '/dex/keys',
    authorize: '/dex/auth',
    token: '/dex/token',
    userinfo: '/dex/userinfo',
  },
  scopes: ['openid', 'email', 'groups', 'profile', 'offline_access'],
  refusesUnknownScopes: true,
  idTokenMembers: ['at_hash'],
  expiresIn: 86_399,
  usedRefreshToken: 'is refused',
  spentRefusal: {
    error: 'invalid_request',
    error_description: 'Refresh token is invalid or has already been claimed by another client.',
  },
  describeInIdToken: describeDexUser,
  describeInUserinfo: describeDexUser,
  createAccessToken(login, here) {
    const now = readSeconds(here);
    return here.issuer.sign({
      aud: here.clientId,
      at_hash: randomUUID().slice(0, 22),
      iat: now,
      exp: now + 86_400,
      ...describeDexUser(login),
    });
  },
};
