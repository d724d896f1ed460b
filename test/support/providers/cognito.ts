// Amazon Cognito: access tokens that name the client in `client_id` and have no `aud`, groups under a name with a colon, and
// refreshes without another refresh token.
//
// https://docs.aws.amazon.com/cognito/latest/developerguide/amazon-cognito-user-pools-using-the-access-token.html (client_id)
// https://docs.aws.amazon.com/cognito/latest/developerguide/amazon-cognito-user-pools-using-the-id-token.html (cognito:groups)
// https://docs.aws.amazon.com/cognito/latest/developerguide/authorization-endpoint.html (invalid_scope)
// https://docs.aws.amazon.com/cognito/latest/developerguide/token-endpoint.html (no refresh token in the answer to a refresh)
// https://docs.aws.amazon.com/cognito/latest/developerguide/userinfo-endpoint.html (email_verified is a text there)
import { randomBytes } from 'node:crypto';
import { type Habits, readSeconds } from './habits.ts';
import { describePerson, OPENID_HABITS } from './openid-habits.ts';

const POOL = '/eu-north-1_LabLabLab';

export const COGNITO: Habits = {
  ...OPENID_HABITS,
  title: 'Cognito',
  settings: { OIDC_PROVIDER: 'cognito', OIDC_GROUPS_CLAIM: 'cognito:groups' },
  issuerPath: POOL,
  paths: {
    keys: `${POOL}/.well-known/jwks.json`,
    authorize: '/oauth2/authorize',
    token: '/oauth2/token',
    userinfo: '/oauth2/userInfo',
    revoke: '/oauth2/revoke',
    endSession: '/logout',
  },
  scopes: ['openid', 'email', 'phone', 'profile'],
  // offline_access among them.
  refusesUnknownScopes: true,
  idTokenMembers: ['at_hash', 'auth_time'],
  usedRefreshToken: 'is kept',
  givesRefreshToken: () => true,
  describeInIdToken: (login) => ({
    ...describePerson(login),
    token_use: 'id',
    'cognito:username': login.person.sub,
    'cognito:groups': login.person.groups,
  }),
  describeInUserinfo: (login) => ({
    ...describePerson(login),
    username: login.person.sub,
    ...(login.scopes.includes('email') && {
      email_verified: String(login.person.isEmailVerified),
    }),
  }),
  createAccessToken({ person, scopes, authTime }, here) {
    const now = readSeconds(here);
    return here.issuer.sign({
      sub: person.sub,
      aud: undefined,
      client_id: here.clientId,
      token_use: 'access',
      scope: scopes.join(' '),
      auth_time: authTime,
      username: person.sub,
      'cognito:groups': person.groups,
      iat: now,
      exp: now + 3600,
    });
  },
  createRefreshToken: () => `eyJjdHkiOiJKV1Qi.${randomBytes(48).toString('base64url')}`,
};
