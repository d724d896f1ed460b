// Keycloak: an issuer below a realm, access tokens for "account", refresh tokens that die with the session unless they are
// offline ones, and back-channel logout.
//
// https://www.keycloak.org/securing-apps/oidc-layers (paths)
// https://www.keycloak.org/docs/latest/server_admin/#_timeouts (SSO Session Idle 30 minutes, Max 10 hours)
// https://www.keycloak.org/docs/latest/server_admin/#_offline-access (offline tokens outlive the session, and its logout)
// https://www.keycloak.org/docs/latest/server_admin/#_audience (aud is "account" without a mapper)
// https://www.keycloak.org/docs/latest/server_admin/#_oidc-logout (id_token_hint; back-channel logout with sid)
import { type Habits, type Login, readSeconds } from './habits.ts';
import { describeWithGroups, OPENID_HABITS } from './openid-habits.ts';

const REALM = '/realms/lab';
const PROTOCOL = `${REALM}/protocol/openid-connect`;
const SESSION_IDLE_SECONDS = 1800;
const SESSION_MAX_SECONDS = 36_000;

const isOffline = ({ scopes }: Login): boolean => scopes.includes('offline_access');

export const KEYCLOAK: Habits = {
  ...OPENID_HABITS,
  title: 'Keycloak',
  settings: { OIDC_PROVIDER: 'keycloak' },
  issuerPath: REALM,
  paths: {
    keys: `${PROTOCOL}/certs`,
    authorize: `${PROTOCOL}/auth`,
    token: `${PROTOCOL}/token`,
    userinfo: `${PROTOCOL}/userinfo`,
    revoke: `${PROTOCOL}/revoke`,
    endSession: `${PROTOCOL}/logout`,
  },
  scopes: ['openid', 'profile', 'email', 'offline_access', 'address', 'phone', 'roles'],
  refusesUnknownScopes: true,
  idTokenMembers: ['at_hash', 'auth_time', 'sid'],
  expiresIn: 300,
  spentRefusal: { error: 'invalid_grant', error_description: 'Token is not active' },
  logoutTokenNames: ['sid', 'sub'],
  survivesLogout: isOffline,
  revocationEnds: 'all of the user',
  givesRefreshToken: () => true,
  refuseRefresh(login, _form, here) {
    const now = readSeconds(here);
    const isOver =
      now - login.usedAt > SESSION_IDLE_SECONDS || now - login.authTime > SESSION_MAX_SECONDS;
    return isOver && !isOffline(login)
      ? { error: 'invalid_grant', error_description: 'Session not active' }
      : undefined;
  },
  describeInIdToken: (login, { clientId }) => ({
    typ: 'ID',
    azp: clientId,
    preferred_username: login.person.name.toLowerCase(),
    // As with a mapper of the kind Group Membership.
    ...describeWithGroups(login),
  }),
  describeInUserinfo: describeWithGroups,
  createAccessToken({ person, scopes, sid }, here) {
    const now = readSeconds(here);
    return here.issuer.sign({
      typ: 'Bearer',
      sub: person.sub,
      aud: 'account',
      azp: here.clientId,
      sid,
      scope: scopes.join(' '),
      iat: now,
      exp: now + 300,
    });
  },
};
