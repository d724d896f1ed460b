// §5.11: who may log in at all. Asked at each login, and again whenever one is renewed.
import { findClaim, readGroups } from '../../auth/claim-path.ts';
import type { LoginPolicyConfig } from '../../config/groups/login-policy.ts';
import { escapeHtml, ICONS, renderHtmlPage } from '../../endpoint/html-page.ts';
import type { Reply } from '../../endpoint/message.ts';
import { readEmail } from '../../endpoint/user-context.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { FindLoginRefusal, LoginRefusalLinks } from '../gateway-tokens/log-in.ts';

/** What the ID token, or userinfo, has to say. Pages and tools show name and address. */
export const listNamedClaims = ({
  groupsClaim,
  allowedEmails,
  allowedGroups,
  allowedClaims,
}: LoginPolicyConfig): readonly string[] => [
  'name',
  'email',
  ...(allowedEmails.length > 0 ? ['email_verified'] : []),
  ...(allowedGroups.length > 0 ? [groupsClaim] : []),
  ...allowedClaims.map(({ name }) => name),
];

/** What does not fit, as a sentence for the log; undefined where all does. */
type CheckClaims = (claims: JsonObject) => string | undefined;

export function createFindLoginRefusal(
  config: LoginPolicyConfig,
  displayName: string,
): FindLoginRefusal {
  const checks = createChecks(config);

  return function findLoginRefusal({ user, claims }) {
    for (const check of checks) {
      const problem = check(claims);
      if (problem === undefined) continue;
      const name = readEmail(claims).email ?? user.sub;
      return {
        forLog: `${name} may not log in: ${problem}`,
        renderPage: (links) => renderRefusal(name, displayName, links),
      };
    }
    return undefined;
  };
}

const createChecks = ({
  groupsClaim,
  allowedEmails,
  allowedGroups,
  allowedClaims,
}: LoginPolicyConfig): readonly CheckClaims[] => [
  ...(allowedEmails.length > 0 ? [createEmailCheck(allowedEmails)] : []),
  ...(allowedGroups.length > 0 ? [createGroupsCheck(allowedGroups, groupsClaim)] : []),
  ...[...new Set(allowedClaims.map(({ name }) => name))].map((name) =>
    createClaimCheck(
      name,
      allowedClaims.filter((one) => one.name === name).map(({ value }) => value),
    ),
  ),
];

function createEmailCheck(globs: readonly string[]): CheckClaims {
  const patterns = globs.map(toPattern);

  return function checkEmail(claims) {
    const { email, emailVerified } = readEmail(claims);
    if (email === undefined) {
      return 'the provider gives no e-mail address (LOGIN_ALLOWED_EMAILS).';
    }
    if (emailVerified !== true) {
      return 'the provider does not say that the e-mail address is verified (email_verified, LOGIN_ALLOWED_EMAILS).';
    }
    return patterns.some((pattern) => pattern.test(email.toLowerCase()))
      ? undefined
      : 'the e-mail address is none of LOGIN_ALLOWED_EMAILS.';
  };
}

const toPattern = (glob: string): RegExp =>
  new RegExp(`^${glob.split('*').map(escapeRegExp).join('.*')}$`);

const escapeRegExp = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

const createGroupsCheck =
  (allowed: readonly string[], groupsClaim: string): CheckClaims =>
  (claims) => {
    const groups = readGroups(claims, groupsClaim);
    if (groups === undefined) {
      return `the provider names no groups in the claim ${groupsClaim} (OIDC_GROUPS_CLAIM, LOGIN_ALLOWED_GROUPS).`;
    }
    return groups.some((group) => allowed.includes(group))
      ? undefined
      : 'none of the user’s groups is in LOGIN_ALLOWED_GROUPS.';
  };

const createClaimCheck =
  (name: string, allowed: readonly string[]): CheckClaims =>
  (claims) => {
    const found = findClaim(claims, name);
    const values: readonly unknown[] = Array.isArray(found) ? found : [found];
    return values.some((value) => allowed.includes(String(value)))
      ? undefined
      : `the claim ${name} is not one of ${allowed.join(', ')} (LOGIN_ALLOWED_CLAIMS).`;
  };

function renderRefusal(
  name: string,
  displayName: string,
  { retryUrl, clientUrl }: LoginRefusalLinks,
): Reply {
  const page = renderHtmlPage(
    'This account may not log in here',
    `<p>You are logged in as <strong><bdi>${escapeHtml(name)}</bdi></strong>, and this account may not use
${escapeHtml(displayName)}. If you have another account, use that one. If you think that you should get in, ask
whoever runs this gateway.</p>
<p><a class="button primary" href="${escapeHtml(retryUrl)}">Use another account</a></p>
<p><a class="button" href="${escapeHtml(clientUrl)}">Back to the app</a></p>`,
    { before: `<div class="mark">${ICONS.warning}</div>` },
  );
  return { status: 403, ...page };
}
