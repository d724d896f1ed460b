// A provider that does what OpenID Connect promises, and nothing beside: what each of the others says is how it differs.
import { randomUUID } from 'node:crypto';
import { type Habits, type Login, sendJson } from './habits.ts';

export const OPENID_HABITS: Habits = {
  title: 'OpenID Connect',
  settings: {},
  addressSetting: 'OIDC_ISSUER',
  isOpenId: true,
  issuerPath: '',
  paths: {
    keys: '/jwks',
    authorize: '/authorize',
    token: '/token',
    userinfo: '/userinfo',
    revoke: '/revoke',
  },
  document: {},
  clientAuth: ['post', 'basic'],
  scopes: ['openid', 'profile', 'email', 'offline_access'],
  refusesUnknownScopes: false,
  idTokenMembers: [],
  renewsIdToken: true,
  expiresIn: 3600,
  usedRefreshToken: 'stays good',
  reuseSeconds: 0,
  spentRefusal: { error: 'invalid_grant', error_description: 'The refresh token is not good.' },
  revocationEnds: 'the login',
  logoutTokenNames: [],
  logoutTokenSeconds: 120,
  survivesLogout: () => false,
  givesRefreshToken: ({ scopes }) => scopes.includes('offline_access'),
  describeInIdToken: describePerson,
  describeInUserinfo: describePerson,
  createAccessToken: () => `opaque-${randomUUID()}`,
  createRefreshToken: () => `refresh-${randomUUID()}`,
  refuseAuthorization: () => undefined,
  refuseRefresh: () => undefined,
  renderTokens: (answer) => answer,
  renderRefusal: ({ status = 400, ...body }) => ({ status, body }),
  send: (_req, res, status, body) => sendJson(res, status, body),
  createRoutes: () => ({}),
};

/** OpenID Connect Core §5.4: by the scopes that were asked for. */
export function describePerson({ person, scopes }: Login) {
  return {
    sub: person.sub,
    ...(scopes.includes('profile') && { name: person.name }),
    ...(scopes.includes('email') && {
      email: person.email,
      email_verified: person.isEmailVerified,
    }),
  };
}

/** The same with the groups of the person, where the provider was told to say them. */
export const describeWithGroups = (login: Login) => ({
  ...describePerson(login),
  groups: login.person.groups,
});
