// Slack: OpenID Connect at paths of its own. What it refuses it refuses with 200 and `ok: false`, and what it says of a
// person stands under names that are URLs.
//
// https://docs.slack.dev/authentication/sign-in-with-slack/ (paths, claims, answers)
// https://slack.com/.well-known/openid-configuration (scopes, no revocation endpoint, no offline_access)
// https://docs.slack.dev/reference/methods/openid.connect.token (errors, with 200)
// https://docs.slack.dev/reference/methods/openid.connect.userInfo
import { randomBytes } from 'node:crypto';
import { type Habits, type Login, sendJson } from './habits.ts';
import { OPENID_HABITS } from './openid-habits.ts';

/** Slack's own names for what RFC 6749 §5.2 calls otherwise. */
const ERRORS: Readonly<Record<string, string>> = {
  invalid_grant: 'invalid_code',
  invalid_client: 'bad_client_secret',
  unsupported_grant_type: 'invalid_grant_type',
  invalid_token: 'token_revoked',
};

const describeSlackUser = ({ person, scopes }: Login) => ({
  sub: person.sub,
  'https://slack.com/user_id': person.sub,
  'https://slack.com/team_id': 'T0LAB',
  ...(scopes.includes('email') && {
    email: person.email,
    email_verified: person.isEmailVerified,
  }),
  ...(scopes.includes('profile') && {
    name: person.name,
    locale: 'en-US',
    'https://slack.com/team_name': 'Lab',
    'https://slack.com/team_domain': 'lab',
  }),
});

export const SLACK: Habits = {
  ...OPENID_HABITS,
  title: 'Slack',
  settings: { OIDC_PROVIDER: 'slack' },
  paths: {
    keys: '/openid/connect/keys',
    authorize: '/openid/connect/authorize',
    token: '/api/openid.connect.token',
    userinfo: '/api/openid.connect.userInfo',
  },
  document: {
    code_challenge_methods_supported: undefined,
    response_modes_supported: ['form_post'],
  },
  scopes: ['openid', 'profile', 'email'],
  refusesUnknownScopes: true,
  idTokenMembers: ['at_hash', 'auth_time'],
  // Without token rotation, which Sign in with Slack does not have.
  expiresIn: undefined,
  givesRefreshToken: () => false,
  describeInIdToken: describeSlackUser,
  describeInUserinfo: (login) => ({ ok: true, ...describeSlackUser(login) }),
  createAccessToken: () => `xoxp-${randomBytes(16).toString('hex')}`,
  renderTokens: ({ scope: _, ...answer }) => ({ ok: true, ...answer }),
  renderRefusal: ({ error }) => ({
    status: 200,
    body: { ok: false, error: ERRORS[error] ?? error },
  }),
  // https://docs.slack.dev/reference/methods/auth.revoke: not RFC 7009.
  createRoutes: (here) => ({
    '/api/auth.revoke': (req, res, form) => {
      const [, bearer] = /^Bearer (.+)$/i.exec(req.headers.authorization ?? '') ?? [];
      const token = bearer ?? form.get('token') ?? '';
      const isKnown = here.findLogin(token) !== undefined;
      if (isKnown) here.revoke(token);
      sendJson(
        res,
        200,
        isKnown ? { ok: true, revoked: true } : { ok: false, error: 'invalid_auth' },
      );
    },
  }),
};
