// §13.3: the LOGIN_ALLOWED settings: which of the provider's users may log in. All lists that are set must match.
import type { IdentityConfig } from '../../config/groups/own-tokens.ts';
import { fail } from '../../errors/gateway-error.ts';
import { escapeHtml } from '../../http/endpoint/html-page.ts';
import {
  type Reply,
  readClaimedClient,
  readEmail,
  type UserContext,
} from '../../http/endpoint/message.ts';
import { renderLoggedIn, renderPage } from '../../http/endpoint/own-page-parts.ts';
import { renderReturnLink } from '../../http/endpoint/render-error.ts';
import { compileGlob } from '../../platform/glob.ts';
import { UNSEEN } from '../../platform/invisible.ts';
import { isScalar, isStringArray, type JsonObject } from '../../platform/json.ts';
import { quote, shorten } from '../../platform/text.ts';
import { findClaim, type Identity, readGroups, readText } from './identity.ts';

/** Refusal of a user whom the provider knows: the client gets `access_denied`. */
export interface LoginRefusal {
  /** A sentence that names setting, found and allowed. */
  readonly forLog: string;
  /** For the user. `retryUrl` starts the login again, with a choice of account; `clientUrl` tells the client `access_denied`. */
  renderPage(retryUrl: string, clientUrl: string): Reply;
}

/** `service` is `SERVICE_DISPLAY_NAME`. */
export function createFindLoginRefusal(config: IdentityConfig, service: string) {
  const findProblem = createFindProblem(config);

  /** Undefined for a user who may log in. Called at each login, and again at each renewal. */
  return function findLoginRefusal({
    user,
    claims,
  }: Pick<Identity, 'user' | 'claims'>): LoginRefusal | undefined {
    const problem = findProblem(claims);
    if (problem === undefined) return undefined;
    const { forLog, advice } = problem;
    const { email, preferred_username: login, name } = claims;
    // The name that the user knows the account by, an address or a name; otherwise the provider's.
    const who = readText(email) ?? readText(login) ?? readText(name) ?? user.sub;
    return {
      forLog,
      renderPage(retryUrl, clientUrl) {
        const shown = shorten(who.replace(INVISIBLE, '\u{fffd}'), MAX_WHO);
        const page = {
          status: 403,
          title: 'You may not use this gateway',
          body: `<p>${renderLoggedIn(shown)}, who may not use this gateway.</p>
<p>${escapeHtml(advice)}</p>
<p><a class="button" href="${escapeHtml(retryUrl)}">Use another account</a></p>${renderReturnLink(clientUrl)}`,
        };
        return renderPage({ displayName: service }, page);
      },
    };
  };
}

/** The lists apply to provider tokens, too, except for LOGIN_EXEMPT_CLIENTS. */
export function createCheckTokenUser(config: IdentityConfig) {
  const findProblem = createFindProblem(config);
  const exempt = new Set(config.exemptClients);

  /** @throws GatewayError `user_not_allowed`. */
  return function checkTokenUser({ claims }: UserContext) {
    const client = readClaimedClient(claims);
    if (client !== undefined && exempt.has(client)) return;
    const problem = findProblem({ ...claims, groups: readGroups(claims, config.groupsClaim) });
    if (problem !== undefined) fail('user_not_allowed', { facts: { problem: problem.forLog } });
  };
}

/** The first list that does not match. */
function createFindProblem(config: IdentityConfig) {
  const { allowedEmails, allowedGroups, allowedClaims } = config;
  const findEmailProblem = allowedEmails.length > 0 ? createEmailCheck(config) : undefined;
  const claimNames = [...new Set(allowedClaims.map(([name]) => name))];

  return function findProblem(claims: JsonObject): Problem | undefined {
    const problem = findEmailProblem?.(claims);
    if (problem !== undefined) return problem;
    if (allowedGroups.length > 0 && !isInAllowedGroup(claims, config))
      return {
        forLog: `LOGIN_ALLOWED_GROUPS allows ${allowedGroups.join(', ')}; the groups of the user (OIDC_GROUPS_CLAIM=${config.groupsClaim}) are ${quote(claims.groups)}.`,
        advice: ASK_ADMINISTRATOR,
      };
    for (const name of claimNames) {
      const allowed = allowedClaims.filter(([one]) => one === name);
      const found = findClaim(claims, name);
      if (allowed.some(([, value]) => hasValue(found, value))) continue;
      return {
        forLog: `LOGIN_ALLOWED_CLAIMS allows ${allowed.map((pair) => pair.join('=')).join(', ')}; the claim of the user is ${quote(found)}.`,
        advice: ASK_ADMINISTRATOR,
      };
    }
    return undefined;
  };
}

interface Problem {
  readonly forLog: string;
  /** A sentence about what the person can do. */
  readonly advice: string;
}

const isInAllowedGroup = ({ groups }: JsonObject, { allowedGroups }: IdentityConfig) =>
  isStringArray(groups) && groups.some((group) => allowedGroups.includes(group));

/** In a list, one is enough. */
const hasValue = (found: unknown, value: string) =>
  [found].flat().some((one) => isScalar(one) && String(one) === value);

const ASK_ADMINISTRATOR =
  'If you have another account, use that one. Otherwise ask the administrator of this gateway for access.';

function createEmailCheck({ allowedEmails, emailAuthority }: IdentityConfig) {
  const globs = allowedEmails.map((glob) => compileGlob(lowerAscii(glob)));

  return function findEmailProblem(claims: JsonObject): Problem | undefined {
    const { email, emailVerified = false } = readEmail(claims);
    const address = lowerAscii(email ?? '');
    // With several @, parsers disagree on the domain.
    const isAllowed = /^[^@\s]+@[^@\s]+$/.test(address) && globs.some((fits) => fits(address));
    if (!isAllowed)
      return {
        forLog: `LOGIN_ALLOWED_EMAILS allows ${allowedEmails.join(', ')}; the email of the user is ${quote(email)}.`,
        advice: ASK_ADMINISTRATOR,
      };
    const organization = emailAuthority && findClaim(claims, emailAuthority.organizationClaim);
    const isVouchedFor =
      emailAuthority === undefined ||
      emailAuthority.ownDomains.some((domain) => address.endsWith(domain)) ||
      readText(organization) !== undefined;
    if (emailVerified && isVouchedFor) return undefined;
    const missing = emailAuthority
      ? `not one of ${emailAuthority.ownDomains.join(', ')}, and email_verified and ${emailAuthority.organizationClaim} do not say that an organization at the provider has it`
      : `not verified: email_verified is ${quote(claims.email_verified)}`;
    return {
      forLog: `LOGIN_ALLOWED_EMAILS allows ${quote(email)}, but the address is ${missing}.`,
      advice:
        'The identity provider does not say that this e-mail address is yours. Have it verified there, or use another account.',
    };
  };
}

/** Only ASCII letters: some others become ASCII in lower case, which would match another address. */
const lowerAscii = (text: string) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

/** Characters. */
const MAX_WHO = 200;

const INVISIBLE = new RegExp(`[${UNSEEN}]`, 'gu');
