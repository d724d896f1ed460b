// §13.2, §13.3: where the groups of a user come from, and who may log in at all.
import { MAX_GLOB_LENGTH } from '../../platform/glob.ts';
import type { EmailAuthority } from '../provider-profiles.ts';
import { flag, list, names, type Rule } from '../rules.ts';
import { defineSetting, type Read, readAll } from '../setting.ts';
import { readProfile } from './provider.ts';

export interface IdentityConfig {
  /** The claim that names a user's groups: a name taken whole, else a path of names with dots. */
  readonly groupsClaim: string;
  /** Whether Microsoft Graph is asked where Entra leaves the groups out of a token. */
  readonly followsGroupsOverage: boolean;
  /** Globs; with none any address will do. */
  readonly allowedEmails: readonly string[];
  readonly allowedGroups: readonly string[];
  /** Of each name one of its values. */
  readonly allowedClaims: readonly AllowedClaim[];
  /** Clients of the provider whose tokens get in whatever the lists say (OAUTH_ACCEPT_PROVIDER_TOKENS). */
  readonly exemptClients: readonly string[];
  /** Undefined where email_verified says it. */
  readonly emailAuthority: EmailAuthority | undefined;
}

export type AllowedClaim = readonly [name: string, value: string];

const CLAIM_NAME = /^[^\s\p{C}]+$/u;

const claimName: Rule<string> = {
  parse: (text) => (CLAIM_NAME.test(text) ? text : undefined),
  allowed:
    'the name of a claim, such as groups or https://example.com/groups, or a path, such as realm_access.roles',
};

/** With one @, so that `*@example.com` means a domain and nothing that only ends like it. */
const emailGlob: Rule<string> = {
  parse: (text) =>
    text.length <= MAX_GLOB_LENGTH && /^[^@\s]+@[^@\s]+$/.test(text) ? text : undefined,
  allowed: 'an address',
};

const emailGlobs = list(
  emailGlob,
  'a comma-separated list of addresses, each with one @, in which * stands for any text, such as *@example.com',
);

const NAME_AND_VALUE = /^([^\s=]+)=(.*\S.*)$/;

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
    default: { value: 'groups' },
    summary: 'The claim that names the groups of a user.',
    details:
      'A list of texts, or one text. A claim of exactly this name comes first, also one with dots such as a URL; else it is a path, such as `realm_access.roles`. Where the ID token has no such claim, the userinfo endpoint is asked.',
    mode: 'broker',
  }),
  followsGroupsOverage: defineSetting('OIDC_GROUPS_OVERAGE', flag, {
    default: { value: false },
    summary: 'Asks Microsoft Graph for groups that Entra leaves out of a token.',
    details:
      'Entra leaves them out where there are more than 200. The gateway then asks with the access token of the login, which needs a permission of Microsoft Graph such as `GroupMember.Read.All`.',
    mode: 'broker',
  }),
  allowedEmails: defineSetting('LOGIN_ALLOWED_EMAILS', emailGlobs, {
    default: { value: [], text: '' },
    summary: 'Who may log in, by e-mail address.',
    details:
      'In any case; `*` is any text. The provider must say that the address is verified (`email_verified`). With `OIDC_PROVIDER=google` it must also be one of Gmail or of an organization at Google (`hd`). Where several LOGIN_ALLOWED settings are set, all of them must hold.',
    mode: 'broker',
  }),
  allowedGroups: defineSetting(
    'LOGIN_ALLOWED_GROUPS',
    names('groups, as OIDC_GROUPS_CLAIM names them'),
    {
      default: { value: [], text: '' },
      summary: 'Who may log in, by group: one of them is enough.',
      details:
        'Character by character. Where a name has a comma, write a JSON array: `["CN=staff,OU=groups"]`.',
      mode: 'broker',
    },
  ),
  allowedClaims: defineSetting('LOGIN_ALLOWED_CLAIMS', claimPairs, {
    default: { value: [], text: '' },
    summary: 'Who may log in, by other claims.',
    details:
      'Such as `hd=example.com`. A name that is there several times must have one of its values; several names must all hold. Names are read as those of OIDC_GROUPS_CLAIM.',
    mode: 'broker',
  }),
  exemptClients: defineSetting('LOGIN_EXEMPT_CLIENTS', names('client IDs of the provider'), {
    default: { value: [], text: '' },
    summary: 'Clients of the provider for whose tokens the LOGIN_ALLOWED settings do not hold.',
    details:
      'For service accounts, which have no address. With OAUTH_ACCEPT_PROVIDER_TOKENS the LOGIN_ALLOWED settings hold for tokens of the provider, too, but for those of these clients: as the first of `azp`, `client_id`, `cid` and `appid` in the token names them.',
    mode: 'broker',
  }),
};

export const readIdentityConfig = (read: Read): IdentityConfig => ({
  ...readAll(loginPolicySettings, read),
  emailAuthority: readProfile(read).emailAuthority,
});
