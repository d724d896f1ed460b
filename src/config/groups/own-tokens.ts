// Broker mode: settings of the tokens that the gateway issues, and of how long logins last.

import { MAX_GLOB_LENGTH } from '../../platform/glob.ts';
import type { Parameter } from '../provider-profiles.ts';
import {
  flag,
  integer,
  listOf,
  matching,
  NONE,
  names,
  ONE_YEAR_SECONDS,
  oneOf,
  type Rule,
  scope,
  textWith,
} from '../rules.ts';
import { defineSetting, type Read, readAll } from '../setting.ts';
import { chooseByProvider, providerSettings, readProfile } from './provider.ts';

const ONE_HOUR_SECONDS = 3600;

/** Some clients refresh on every session check once an access token has less than five minutes left. */
const MIN_ACCESS_SECONDS = 600;

/** §5.11: the gateway issues its own tokens. */
export const ownTokenSettings = {
  acceptsProviderTokens: defineSetting('OAUTH_ACCEPT_PROVIDER_TOKENS', flag, {
    default: false,
    summary: 'Accept access tokens from the provider in addition to the gateway’s own.',
    details:
      'For service accounts and CI that get a JWT for OIDC_AUDIENCE directly from the provider.',
    mode: 'broker',
  }),
  accessSeconds: defineSetting('OAUTH_ACCESS_TTL_SECONDS', integer(MIN_ACCESS_SECONDS, 86_400), {
    default: ONE_HOUR_SECONDS,
    summary: 'Lifetime of the gateway’s own access tokens, in seconds.',
    details: 'Ending a login takes effect at the next call, without waiting for tokens to expire.',
    mode: 'broker',
  }),
  grantMaxSeconds: defineSetting('OAUTH_GRANT_MAX_SECONDS', integer(0, ONE_YEAR_SECONDS * 10), {
    default: 0,
    summary:
      'Seconds after which a user must log in again, however often the client refreshes; 0 for never.',
    details: 'An unused login ends after OAUTH_REFRESH_TTL_SECONDS.',
    mode: 'broker',
  }),
  grantUnrenewedSeconds: defineSetting(
    'OAUTH_GRANT_UNRENEWED_SECONDS',
    integer(MIN_ACCESS_SECONDS, ONE_YEAR_SECONDS),
    {
      default: 28_800,
      summary: 'Lifetime of a login in seconds if the provider issued no refresh token.',
      details: 'The gateway cannot check with such a provider whether the user may still log in.',
      mode: 'broker',
    },
  ),
  renewalSeconds: defineSetting('OAUTH_RENEWAL_SECONDS', integer(0, 86_400), {
    default: ONE_HOUR_SECONDS,
    summary:
      'Seconds after which a refresh checks with the provider whether the user may still log in; 0 checks on every refresh.',
    details:
      'This also updates claims and groups. A user who was disabled at the provider loses access after at most this time plus OAUTH_ACCESS_TTL_SECONDS.',
    mode: 'broker',
  }),
  renewalGraceSeconds: defineSetting('OAUTH_RENEWAL_GRACE_SECONDS', integer(0, 86_400 * 7), {
    default: ONE_HOUR_SECONDS,
    summary: 'Seconds for which refreshes continue while the provider cannot be reached.',
    details: 'After that they get 503 until the provider is back. No user is logged out.',
    mode: 'broker',
  }),
  backchannelEnds: defineSetting('OAUTH_BACKCHANNEL_ENDS', oneOf('session', 'all'), {
    default: 'session',
    summary: 'Which logins end if the provider reports that a user logged out there.',
    details:
      '`session`: those that began in that session at the provider, or all of the user’s logins if the provider names no session. `all`: all of the user’s logins. The provider reports it to /oauth/backchannel-logout, if you register that address there: see [Providers](providers.md#logout-from-the-provider).',
    mode: 'broker',
  }),
  endsConnections: defineSetting('CONNECTIONS_END_WITH_LOGOUT', flag, {
    default: false,
    summary: 'End a user’s connections to servers when the user is logged out everywhere.',
    details:
      'Users are logged out everywhere by themselves at /account, by an operator, or by a logout at the provider. The tokens are revoked at the servers, and deleted here. If false, connections stay for the next login: see [Servers that require a login](server-logins.md#when-a-user-leaves).',
    mode: 'broker',
  }),
};

export const readTokensConfig = (read: Read) => ({
  ...readAll(ownTokenSettings, read),
  /** Tolerated clock skew of the provider when ID tokens are checked. */
  clockToleranceSeconds: read(providerSettings.clockToleranceSeconds),
});

// Settings of requests to the provider with OAUTH_MODE=broker.

const scopes: Rule<readonly string[]> = {
  parse(text) {
    if (text === NONE) return [];
    const read = text.split(/[\s,]+/).filter((one) => one !== '');
    return read.length > 0 && read.every(scope.parse) ? read : undefined;
  },
  allowed: 'a list of scopes, separated by spaces or commas, or none',
};

/** Parameters that the gateway sets itself, or that could smuggle in a second request. */
const RESERVED =
  /^(client_.*|redirect_uri|response_.*|state|nonce|scope|resource|code_.*|request.*|registration)$/;

const parameters: Rule<readonly Parameter[]> = {
  parse(text) {
    if (text === NONE) return [];
    const pairs = [...new URLSearchParams(text)];
    const given = new Set(pairs.map(([name]) => name));
    const isGood = ([name, value]: Parameter) =>
      /^[\w.-]+$/.test(name) && value !== '' && !RESERVED.test(name);
    return pairs.length > 0 && given.size === pairs.length && pairs.every(isGood)
      ? pairs
      : undefined;
  },
  allowed:
    'name=value&name=value, each name once and none that the gateway sends itself (such as client_id, redirect_uri, state, scope), or none',
};

const allowedScopes = listOf(scope, 'a comma-separated list of scopes, or * for any');

const refreshTtl = integer(3600, ONE_YEAR_SECONDS * 10);
const NINETY_DAYS_SECONDS = 7_776_000;

export const brokerSettings = {
  allowedScopes: defineSetting('OAUTH_ALLOWED_SCOPES', allowedScopes, {
    default: ['openid', 'profile', 'email', 'offline_access'],
    summary: 'The scopes that clients may request.',
    details:
      'Other scopes are removed from the request to the provider. All clients share the permissions of your client at the provider: add only scopes that all of them may have. Those in OAUTH_ADDED_SCOPES are always requested.',
    mode: 'broker',
  }),
  addedScopes: defineSetting('OAUTH_ADDED_SCOPES', scopes, {
    computed: chooseByProvider(
      (profile) => profile.scopes,
      (given) => given.join(' ') || NONE,
    ),
    summary: 'Scopes to request in addition to those that the client names.',
    mode: 'broker',
  }),
  addedParameters: defineSetting('OAUTH_ADDED_PARAMETERS', parameters, {
    computed: chooseByProvider(
      (profile) => profile.parameters,
      (pairs) => pairs.map((pair) => pair.join('=')).join('&') || NONE,
    ),
    summary: 'Additional parameters for the authorization request to the provider.',
    details:
      'Not those that the gateway sends itself: `client_id`, `redirect_uri`, `response_type`, `response_mode`, `state`, `nonce`, `scope`, `resource`, `code_challenge`, `request` and similar.',
    mode: 'broker',
  }),
  refreshTtlSeconds: defineSetting('OAUTH_REFRESH_TTL_SECONDS', refreshTtl, {
    default: NINETY_DAYS_SECONDS,
    summary: 'Lifetime of a login after its last refresh, in seconds.',
    details: 'Each refresh restarts it.',
    mode: 'broker',
  }),
};

// §13.2, §13.3: the source of a user's groups, and which users may log in.

type AllowedClaim = readonly [name: string, value: string];

const claimName = matching(
  /^[^\s\p{C}]+$/u,
  'the name of a claim, such as groups or https://example.com/groups, or a path, such as realm_access.roles',
);

/** Exactly one @, so that `*@example.com` matches addresses of that domain, and not any string with this ending. */
const emailGlob = textWith(
  (text) => text.length <= MAX_GLOB_LENGTH && /^[^@\s]+@[^@\s]+$/.test(text),
  'an address',
);

const emailGlobs = listOf(
  emailGlob,
  'a comma-separated list of addresses, each with one @, in which * stands for any text, such as *@example.com',
);

const NAME_AND_VALUE = /^([^\s=]+)=(.*\S.*)$/;

/** For each claim name, the user needs one of the values. */
const claimPairs: Rule<readonly AllowedClaim[]> = {
  parse(text) {
    const pairs = text.split(',').map((pair): AllowedClaim => {
      const [, name = '', value = ''] = NAME_AND_VALUE.exec(pair.trim()) ?? [];
      return [name, value];
    });
    return pairs.every(([name]) => name !== '' && name !== 'email') ? pairs : undefined;
  },
  allowed:
    'a comma-separated list of name=value, such as hd=example.com,hd=example.org; each name must have one of its values',
  explain: (text) =>
    /(^|,)\s*email=/.test(text)
      ? 'E-mail addresses have their own setting, which also checks email_verified: LOGIN_ALLOWED_EMAILS.'
      : undefined,
};

export const loginPolicySettings = {
  groupsClaim: defineSetting('OIDC_GROUPS_CLAIM', claimName, {
    default: 'groups',
    summary: 'The claim that names the groups of a user.',
    details:
      'A list of strings, or one string. A claim with exactly this name comes first, even one with dots such as a URL; otherwise the name is a path, such as `realm_access.roles`. If the ID token has no such claim, the userinfo endpoint is queried.',
    mode: 'broker',
  }),
  followsGroupsOverage: defineSetting('OIDC_GROUPS_OVERAGE', flag, {
    default: false,
    summary: 'Use Microsoft Graph to read groups that Entra omits from a token.',
    details:
      'Entra omits them if there are more than 200. The gateway then queries them with the access token of the login, which needs a Microsoft Graph permission such as `GroupMember.Read.All`.',
    mode: 'broker',
  }),
  allowedEmails: defineSetting('LOGIN_ALLOWED_EMAILS', emailGlobs, {
    default: [],
    summary: 'Who may log in, by e-mail address.',
    details:
      'Case is ignored; `*` is any text. The provider must confirm that the address is verified (`email_verified`). With `OIDC_PROVIDER=google` it must also be a Gmail address or belong to an organization at Google (`hd`). If several LOGIN_ALLOWED settings are set, all of them must match.',
    mode: 'broker',
  }),
  allowedGroups: defineSetting(
    'LOGIN_ALLOWED_GROUPS',
    names('groups, as OIDC_GROUPS_CLAIM names them'),
    {
      default: [],
      summary: 'Who may log in, by group: one of them is enough.',
      details:
        'Compared character by character. If a name has a comma, write a JSON array: `["CN=staff,OU=groups"]`.',
      mode: 'broker',
    },
  ),
  allowedClaims: defineSetting('LOGIN_ALLOWED_CLAIMS', claimPairs, {
    default: [],
    summary: 'Who may log in, by other claims.',
    details:
      'For example `hd=example.com`. A name that is listed several times must have one of its values; several names must all match. Names are read like OIDC_GROUPS_CLAIM.',
    mode: 'broker',
  }),
  exemptClients: defineSetting('LOGIN_EXEMPT_CLIENTS', names('client IDs of the provider'), {
    default: [],
    summary: 'Clients at the provider whose tokens are exempt from the LOGIN_ALLOWED settings.',
    details:
      'For service accounts, which have no address. With OAUTH_ACCEPT_PROVIDER_TOKENS the LOGIN_ALLOWED settings also apply to tokens from the provider, except for those of these clients, identified by the first of `azp`, `client_id`, `cid` and `appid` in the token.',
    mode: 'broker',
  }),
};

export type IdentityConfig = ReturnType<typeof readIdentityConfig>;

export const readIdentityConfig = (read: Read) => ({
  ...readAll(loginPolicySettings, read),
  /** Undefined if email_verified suffices. */
  emailAuthority: readProfile(read).emailAuthority,
});
