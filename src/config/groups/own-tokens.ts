// Broker mode: the tokens of the gateway's own that clients get, and how long what they stand for lives.

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

/** Some clients refresh at each look at a session once an access token has less than five minutes left. */
const MIN_ACCESS_SECONDS = 600;

/** §5.11: the gateway issues tokens of its own. */
export const ownTokenSettings = {
  acceptsProviderTokens: defineSetting('OAUTH_ACCEPT_PROVIDER_TOKENS', flag, {
    default: false,
    summary: 'Accept tokens of the provider beside the gateway’s own.',
    details: 'For service accounts and CI that get a JWT for OIDC_AUDIENCE at the provider itself.',
    mode: 'broker',
  }),
  accessSeconds: defineSetting('OAUTH_ACCESS_TTL_SECONDS', integer(MIN_ACCESS_SECONDS, 86_400), {
    default: ONE_HOUR_SECONDS,
    summary: 'Seconds for which an access token of the gateway’s own lives.',
    details: 'Ending a login does not wait for it: it holds at the next call.',
    mode: 'broker',
  }),
  grantMaxSeconds: defineSetting('OAUTH_GRANT_MAX_SECONDS', integer(0, ONE_YEAR_SECONDS * 10), {
    default: 0,
    summary:
      'Seconds after which a user must sign in again, however often the client refreshes; 0 for never.',
    details: 'A login that nobody uses ends after OAUTH_REFRESH_TTL_SECONDS.',
    mode: 'broker',
  }),
  grantUnrenewedSeconds: defineSetting(
    'OAUTH_GRANT_UNRENEWED_SECONDS',
    integer(MIN_ACCESS_SECONDS, ONE_YEAR_SECONDS),
    {
      default: 28_800,
      summary: 'Seconds for which a login lives where the provider gave no refresh token.',
      details: 'The gateway cannot ask such a provider whether the user still may.',
      mode: 'broker',
    },
  ),
  renewalSeconds: defineSetting('OAUTH_RENEWAL_SECONDS', integer(0, 86_400), {
    default: ONE_HOUR_SECONDS,
    summary:
      'Seconds after which a refresh asks the provider whether the user still may; 0 for each refresh.',
    details:
      'Claims and groups are taken anew then. A user who was disabled at the provider is out after these seconds and OAUTH_ACCESS_TTL_SECONDS at most.',
    mode: 'broker',
  }),
  renewalGraceSeconds: defineSetting('OAUTH_RENEWAL_GRACE_SECONDS', integer(0, 86_400 * 7), {
    default: ONE_HOUR_SECONDS,
    summary: 'Seconds for which refreshes go on while the provider cannot be asked.',
    details: 'Afterwards they are answered with 503 until it can. Nobody is signed out by that.',
    mode: 'broker',
  }),
  backchannelEnds: defineSetting('OAUTH_BACKCHANNEL_ENDS', oneOf('session', 'all'), {
    default: 'session',
    summary: 'Which logins end where the provider says that somebody signed out there.',
    details:
      '`session`: those that the session at the provider led to, or all of the user where the provider names no session. `all`: all of the user. The provider says it to /oauth/backchannel-logout, if you register that address there: see [Providers](providers.md#logout-from-the-provider).',
    mode: 'broker',
  }),
  endsConnections: defineSetting('CONNECTIONS_END_WITH_LOGOUT', flag, {
    default: false,
    summary: 'End the connections to servers of a user who is signed out everywhere.',
    details:
      'That is: by the user at /account, by an operator, or by a logout at the provider. Their tokens are revoked at the servers, and deleted here. Without it, connections stay for the next login: see [Servers that require a login](server-logins.md#when-somebody-leaves).',
    mode: 'broker',
  }),
};

export const readTokensConfig = (read: Read) => ({
  ...readAll(ownTokenSettings, read),
  /** The difference that the provider's clock may have, in ID tokens. */
  clockToleranceSeconds: read(providerSettings.clockToleranceSeconds),
});

// The requests of OAUTH_MODE=broker to the provider.

const scopes: Rule<readonly string[]> = {
  parse(text) {
    if (text === NONE) return [];
    const read = text.split(/[\s,]+/).filter((one) => one !== '');
    return read.length > 0 && read.every(scope.parse) ? read : undefined;
  },
  allowed: 'a list of scopes, separated by spaces or commas, or none',
};

/** Parameters that the gateway decides on itself, or that could carry another request past it. */
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
    summary: 'The scopes that clients may ask for.',
    details:
      'Others are left out of the request to the provider. All clients use what your client at the provider may do: add only what all of them may have. Those of OAUTH_ADDED_SCOPES are always asked for.',
    mode: 'broker',
  }),
  addedScopes: defineSetting('OAUTH_ADDED_SCOPES', scopes, {
    computed: chooseByProvider(
      (profile) => profile.scopes,
      (given) => given.join(' ') || NONE,
    ),
    summary: 'Scopes to ask for beside those that the client names.',
    mode: 'broker',
  }),
  addedParameters: defineSetting('OAUTH_ADDED_PARAMETERS', parameters, {
    computed: chooseByProvider(
      (profile) => profile.parameters,
      (pairs) => pairs.map((pair) => pair.join('=')).join('&') || NONE,
    ),
    summary: 'Further parameters of the authorization request to the provider.',
    details:
      'Not those that the gateway sends itself: `client_id`, `redirect_uri`, `response_type`, `response_mode`, `state`, `nonce`, `scope`, `resource`, `code_challenge`, `request` and the like.',
    mode: 'broker',
  }),
  refreshTtlSeconds: defineSetting('OAUTH_REFRESH_TTL_SECONDS', refreshTtl, {
    default: NINETY_DAYS_SECONDS,
    summary: 'Seconds after its last refresh for which a login lives.',
    details: 'Each use starts them again.',
    mode: 'broker',
  }),
};

// §13.2, §13.3: where the groups of a user come from, and who may log in at all.

type AllowedClaim = readonly [name: string, value: string];

const claimName = matching(
  /^[^\s\p{C}]+$/u,
  'the name of a claim, such as groups or https://example.com/groups, or a path, such as realm_access.roles',
);

/** With one @, so that `*@example.com` means a domain and nothing that only ends like it. */
const emailGlob = textWith(
  (text) => text.length <= MAX_GLOB_LENGTH && /^[^@\s]+@[^@\s]+$/.test(text),
  'an address',
);

const emailGlobs = listOf(
  emailGlob,
  'a comma-separated list of addresses, each with one @, in which * stands for any text, such as *@example.com',
);

const NAME_AND_VALUE = /^([^\s=]+)=(.*\S.*)$/;

/** For each name one of its values is needed. */
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
      ? 'Addresses have a setting of their own, which looks at email_verified, too: LOGIN_ALLOWED_EMAILS.'
      : undefined,
};

export const loginPolicySettings = {
  groupsClaim: defineSetting('OIDC_GROUPS_CLAIM', claimName, {
    default: 'groups',
    summary: 'The claim that names the groups of a user.',
    details:
      'A list of texts, or one text. A claim of exactly this name comes first, also one with dots such as a URL; else it is a path, such as `realm_access.roles`. Where the ID token has no such claim, the userinfo endpoint is asked.',
    mode: 'broker',
  }),
  followsGroupsOverage: defineSetting('OIDC_GROUPS_OVERAGE', flag, {
    default: false,
    summary: 'Asks Microsoft Graph for groups that Entra leaves out of a token.',
    details:
      'Entra leaves them out where there are more than 200. The gateway then asks with the access token of the login, which needs a permission of Microsoft Graph such as `GroupMember.Read.All`.',
    mode: 'broker',
  }),
  allowedEmails: defineSetting('LOGIN_ALLOWED_EMAILS', emailGlobs, {
    default: [],
    summary: 'Who may sign in, by e-mail address.',
    details:
      'In any case; `*` is any text. The provider must say that the address is verified (`email_verified`). With `OIDC_PROVIDER=google` it must also be one of Gmail or of an organization at Google (`hd`). Where several LOGIN_ALLOWED settings are set, all of them must hold.',
    mode: 'broker',
  }),
  allowedGroups: defineSetting(
    'LOGIN_ALLOWED_GROUPS',
    names('groups, as OIDC_GROUPS_CLAIM names them'),
    {
      default: [],
      summary: 'Who may sign in, by group: one of them is enough.',
      details:
        'Character by character. Where a name has a comma, write a JSON array: `["CN=staff,OU=groups"]`.',
      mode: 'broker',
    },
  ),
  allowedClaims: defineSetting('LOGIN_ALLOWED_CLAIMS', claimPairs, {
    default: [],
    summary: 'Who may sign in, by other claims.',
    details:
      'Such as `hd=example.com`. A name that is there several times must have one of its values; several names must all hold. Names are read as those of OIDC_GROUPS_CLAIM.',
    mode: 'broker',
  }),
  exemptClients: defineSetting('LOGIN_EXEMPT_CLIENTS', names('client IDs of the provider'), {
    default: [],
    summary: 'Clients of the provider for whose tokens the LOGIN_ALLOWED settings do not hold.',
    details:
      'For service accounts, which have no address. With OAUTH_ACCEPT_PROVIDER_TOKENS the LOGIN_ALLOWED settings hold for tokens of the provider, too, but for those of these clients: as the first of `azp`, `client_id`, `cid` and `appid` in the token names them.',
    mode: 'broker',
  }),
};

export type IdentityConfig = ReturnType<typeof readIdentityConfig>;

export const readIdentityConfig = (read: Read) => ({
  ...readAll(loginPolicySettings, read),
  /** Undefined where email_verified says it. */
  emailAuthority: readProfile(read).emailAuthority,
});
