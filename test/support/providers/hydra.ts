// Ory Hydra: opaque access tokens, a refresh token of which a used one ends the whole grant, Basic alone, and a state that has
// to be long.
//
// https://www.ory.com/docs/oauth2-oidc/jwt-access-token (opaque by default)
// https://www.ory.com/docs/oauth2-oidc/refresh-token-grant (offline, offline_access, rotation)
// https://github.com/ory/hydra/discussions/3652 (reuse ends the grant)
// https://github.com/ory/fosite/blob/master/authorize_request_handler.go (state of eight characters at least)
// https://github.com/ory/fosite/blob/master/client_authentication.go (one method for each client)
// https://www.ory.com/docs/oauth2-oidc/logout (logout tokens with sid alone; logout revokes no tokens)
import { randomBytes } from 'node:crypto';
import type { Habits } from './habits.ts';
import { OPENID_HABITS } from './openid-habits.ts';

const LEAST_STATE = 8;

export const HYDRA: Habits = {
  ...OPENID_HABITS,
  title: 'Hydra',
  settings: { OAUTH_CLIENT_AUTH: 'basic' },
  paths: {
    keys: '/.well-known/jwks.json',
    authorize: '/oauth2/auth',
    token: '/oauth2/token',
    userinfo: '/userinfo',
    revoke: '/oauth2/revoke',
    endSession: '/oauth2/sessions/logout',
  },
  clientAuth: ['basic'],
  scopes: ['openid', 'profile', 'email', 'offline', 'offline_access'],
  refusesUnknownScopes: true,
  idTokenMembers: ['at_hash', 'auth_time', 'sid'],
  usedRefreshToken: 'ends the login',
  spentRefusal: {
    error: 'invalid_grant',
    error_description:
      'The provided authorization grant or refresh token is invalid, expired or revoked. The refresh token was already used.',
  },
  logoutTokenNames: ['sid'],
  // https://github.com/ory/hydra/blob/master/consent/strategy_default.go (executeBackChannelLogout: no exp)
  logoutTokenSeconds: undefined,
  survivesLogout: () => true,
  givesRefreshToken: ({ scopes }) =>
    scopes.includes('offline') || scopes.includes('offline_access'),
  refuseAuthorization: (asked) =>
    (asked.get('state') ?? '').length >= LEAST_STATE
      ? undefined
      : {
          error: 'invalid_state',
          error_description: `The state is missing or does not have enough characters and is therefore considered too weak. Request parameter 'state' must be at least be ${LEAST_STATE} characters long to ensure sufficient entropy.`,
        },
  createAccessToken: () => `ory_at_${randomBytes(48).toString('base64url')}`,
  createRefreshToken: () => `ory_rt_${randomBytes(48).toString('base64url')}`,
};
