// Who may log in, and where the provider says which groups somebody is in.
import { anyText, listOrNone, type Rule } from '../rules.ts';
import { defineSetting, type Read } from '../setting.ts';

export interface LoginPolicyConfig {
  /** The name of a claim, or a path of names with dots between them. */
  readonly groupsClaim: string;
  /** Each list that is not empty has to be met. Globs, in lower case. */
  readonly allowedEmails: readonly string[];
  readonly allowedGroups: readonly string[];
  readonly allowedClaims: readonly RequiredClaim[];
}

export interface RequiredClaim {
  readonly name: string;
  readonly value: string;
}

const emailGlob: Rule<string> = {
  parse: (text) => (/^[^\s@,]+@[^\s@,]+$/.test(text) ? text.toLowerCase() : undefined),
  allowed: 'an e-mail address, with * for any characters',
};

const requiredClaim: Rule<string> = {
  parse: (text) => (/^[^=]+=[^=]/.test(text) ? text : undefined),
  allowed: 'name=value',
};

function parseRequiredClaim(text: string): RequiredClaim {
  const at = text.indexOf('=');
  return { name: text.slice(0, at).trim(), value: text.slice(at + 1).trim() };
}

export const loginPolicySettings = {
  groupsClaim: defineSetting({
    variable: 'OIDC_GROUPS_CLAIM',
    rule: anyText,
    default: { value: 'groups' },
    summary: 'The claim that has the groups of a user.',
    details:
      'A name is looked for as it is first, with its dots or as a URL; then as a path, such as `realm_access.roles`. Only with OAUTH_TOKENS=gateway.',
    mode: 'broker',
  }),
  allowedEmails: defineSetting<readonly string[]>({
    variable: 'LOGIN_ALLOWED_EMAILS',
    rule: listOrNone(emailGlob, 'a comma-separated list such as *@example.com, or none'),
    default: { value: [], text: 'everybody' },
    summary: 'Who may log in, by e-mail address.',
    details:
      'The provider must say that the address is verified (`email_verified`). Everybody who is not in the list is told so on a page. Only with OAUTH_TOKENS=gateway.',
    mode: 'broker',
  }),
  allowedGroups: defineSetting<readonly string[]>({
    variable: 'LOGIN_ALLOWED_GROUPS',
    rule: listOrNone(anyText, 'a comma-separated list of groups, or none'),
    default: { value: [], text: 'everybody' },
    summary: 'Who may log in, by group.',
    details: 'One of them is enough. Only with OAUTH_TOKENS=gateway.',
    mode: 'broker',
  }),
  allowedClaims: defineSetting<readonly string[]>({
    variable: 'LOGIN_ALLOWED_CLAIMS',
    rule: listOrNone(requiredClaim, 'a comma-separated list such as hd=example.com, or none'),
    default: { value: [], text: 'everybody' },
    summary: 'Who may log in, by what the provider says of them.',
    details:
      'Of each name that is listed, one of the values must be there. Only with OAUTH_TOKENS=gateway.',
    mode: 'broker',
  }),
};

export const readLoginPolicy = (read: Read): LoginPolicyConfig => ({
  groupsClaim: read(loginPolicySettings.groupsClaim),
  allowedEmails: read(loginPolicySettings.allowedEmails),
  allowedGroups: read(loginPolicySettings.allowedGroups),
  allowedClaims: read(loginPolicySettings.allowedClaims).map(parseRequiredClaim),
});
