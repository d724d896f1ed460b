// GitLab: OpenID Connect with groups of two kinds, and refresh tokens for everybody.
//
// https://docs.gitlab.com/integration/openid_connect_provider/ (groups in userinfo, groups_direct in the ID token)
// https://docs.gitlab.com/api/oauth2/ (two hours; each refresh brings another refresh token)
// https://gitlab.com/.well-known/openid-configuration (paths, scopes: no offline_access)
import type { Habits } from './habits.ts';
import { describePerson, OPENID_HABITS } from './openid-habits.ts';

export const GITLAB: Habits = {
  ...OPENID_HABITS,
  title: 'GitLab',
  settings: { OIDC_PROVIDER: 'gitlab' },
  paths: {
    keys: '/oauth/discovery/keys',
    authorize: '/oauth/authorize',
    token: '/oauth/token',
    userinfo: '/oauth/userinfo',
    revoke: '/oauth/revoke',
  },
  scopes: ['openid', 'profile', 'email', 'read_user', 'api'],
  refusesUnknownScopes: true,
  idTokenMembers: ['auth_time'],
  expiresIn: 7200,
  usedRefreshToken: 'is refused',
  givesRefreshToken: () => true,
  describeInIdToken: (login) => ({
    ...describePerson(login),
    groups_direct: login.person.groups.filter((group) => !group.includes('/')),
  }),
  describeInUserinfo: (login) => ({ ...describePerson(login), groups: login.person.groups }),
};
