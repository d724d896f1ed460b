// §13.2 for GitHub, which has no ID tokens: its API says who the access token is of, and in which organizations and teams.
// https://docs.github.com/rest/users/users#get-the-authenticated-user
// https://docs.github.com/rest/users/emails#list-email-addresses-for-the-authenticated-user
// https://docs.github.com/rest/orgs/orgs#list-organizations-for-the-authenticated-user
// https://docs.github.com/rest/teams/teams#list-teams-for-the-authenticated-user

import type { IdentityConfig } from '../../../config/groups/own-tokens.ts';
import { catalogue } from '../../../errors/catalogue.ts';
import { fail } from '../../../errors/gateway-error.ts';
import { buildGithubUrls } from '../../../http/oauth-client/provider-metadata.ts';
import type { Fetch } from '../../../platform/fetch-with-limits.ts';
import { isObject, type JsonObject } from '../../../platform/json.ts';
import type { Log } from '../../../platform/log.ts';
import { quote } from '../../../platform/text.ts';
import type { UserIdentity } from '../../grants/grant.ts';
import { checkClaimSize } from '../claims.ts';
import type { ReadIdentity } from '../read-identity.ts';
import { createWarnOnce } from '../warn-once.ts';
import { createGithubApi, type GithubAnswer } from './github-api.ts';

export interface GithubIdentityDeps {
  readonly config: IdentityConfig;
  /** `GITHUB_URL`. */
  readonly issuer: string;
  /** Claims that rules name, as they stand now. */
  readonly listNamedClaims: () => readonly string[];
  readonly fetch: Fetch;
  readonly log: Log;
}

export function createReadGithubIdentity(deps: GithubIdentityDeps): ReadIdentity {
  const { config, issuer, listNamedClaims, fetch, log } = deps;
  const api = createGithubApi(buildGithubUrls(issuer).apiUrl, fetch);
  const warnOnce = createWarnOnce(log);

  /** Without it nobody knows who may log in, or what they may. */
  const isNamed = (names: readonly string[]): boolean =>
    [...listNamedClaims(), ...config.allowedClaims.map(([name]) => name)].some((name) =>
      names.includes(name),
    );

  return async function readGithubIdentity(answer, { earlier, isHeldToken = false }) {
    const { access_token: accessToken } = answer;
    if (typeof accessToken !== 'string') return failIdentity('access_token', undefined);
    const [found, ...lists] = await Promise.all([
      api.get('/user', accessToken),
      api.list('/user/emails', accessToken),
      api.list('/user/orgs', accessToken),
      api.list('/user/teams', accessToken),
    ]);
    if ([found, ...lists].some(({ kind }) => kind === 'ended')) {
      return isHeldToken ? undefined : failWithNewToken();
    }
    if (found.kind !== 'found') return failForbidden('/user', found);
    const profile = isObject(found.value) ? found.value : {};
    const user = readUser(profile);
    if (earlier !== undefined) checkEarlierUser(user, earlier.user);
    const [emails, orgs, teams] = lists;
    const claims = {
      ...readProfile(profile, user),
      ...readEmail(emails),
      ...readGroups(orgs, teams),
    };
    checkClaimSize(claims);
    return { user, claims, userinfoClaims: [], sid: undefined };
  };

  function readUser({ id }: JsonObject): UserIdentity {
    // A name at GitHub can be changed, and taken by somebody else then; the number stays.
    if (!Number.isSafeInteger(id)) return failIdentity('id', id);
    return { issuer, sub: String(id) };
  }

  /** The primary address alone: the others are for the user to know. */
  function readEmail(answer: GithubAnswer | undefined): JsonObject {
    const items = readItems(answer, {
      path: '/user/emails',
      isNeeded: isNamed(['email', 'email_verified']) || config.allowedEmails.length > 0,
      advice:
        'an OAuth app the scope user:email, a GitHub App the account permission "Email addresses"',
      without: 'Users have no e-mail address here.',
    });
    const primary = items.find(({ primary: isPrimary }) => isPrimary === true);
    return typeof primary?.email === 'string'
      ? { email: primary.email, email_verified: primary.verified === true }
      : {};
  }

  function readGroups(orgs: GithubAnswer | undefined, teams: GithubAnswer | undefined): JsonObject {
    const need = {
      isNeeded: isNamed(['groups']) || config.allowedGroups.length > 0,
      advice:
        'an OAuth app the scope read:org, a GitHub App the organization permission "Members", and the organization has to allow the app',
      without: 'Users have no groups here.',
    };
    const names = [
      ...readItems(orgs, { ...need, path: '/user/orgs' }).map(({ login }) => login),
      ...readItems(teams, { ...need, path: '/user/teams' }).map(({ slug, organization }) => {
        const org = isObject(organization) ? organization.login : undefined;
        return typeof org === 'string' && typeof slug === 'string' ? `${org}/${slug}` : undefined;
      }),
    ];
    return { groups: [...new Set(names.filter((name) => typeof name === 'string'))] };
  }

  function readItems(answer: GithubAnswer | undefined, need: Need): readonly JsonObject[] {
    if (answer?.kind === 'found') {
      return Array.isArray(answer.value)
        ? answer.value.filter(isObject)
        : failIdentity(need.path, answer.value);
    }
    if (need.isNeeded) failForbidden(need.path, answer, need.advice);
    warnOnce(need.path, `GitHub does not let the app read ${need.path}. ${need.without}`, {
      needed: need.advice,
    });
    return [];
  }
}

/** What a list is for. */
interface Need {
  readonly path: string;
  /** Whether nobody knows without it what a user may. */
  readonly isNeeded: boolean;
  /** What the app needs for it. */
  readonly advice: string;
  readonly without: string;
}

/** OpenID Connect Core §5.1 has the names. */
function readProfile(
  { login, name, avatar_url: picture, html_url: profile }: JsonObject,
  { sub }: UserIdentity,
): JsonObject {
  const said = Object.entries({ preferred_username: login, name, picture, profile });
  return { sub, ...Object.fromEntries(said.filter(([, value]) => isText(value))) };
}

const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';

function checkEarlierUser(user: UserIdentity, earlier: UserIdentity): void {
  if (user.sub === earlier.sub && user.issuer === earlier.issuer) return;
  failIdentity('id', user.sub);
}

/** @throws GatewayError always. */
function failIdentity(member: string, found: unknown): never {
  return fail('unusable_identity', {
    details: `${catalogue.unusable_identity.details} GitHub's answer has an unexpected ${member}: ${quote(found)}.`,
    facts: { member, found: quote(found) },
  });
}

function failForbidden(path: string, answer: GithubAnswer | undefined, advice?: string): never {
  const status = answer?.kind === 'forbidden' ? answer.status : undefined;
  const needed = advice === undefined ? '' : ` It needs ${advice}.`;
  return fail('unusable_identity', {
    details: `${catalogue.unusable_identity.details} GitHub does not let the app read ${path} (${status}).${needed}`,
    facts: { member: path, found: status },
  });
}

const failWithNewToken = (): never =>
  fail('upstream_failed', {
    details: 'GitHub does not accept the access token that it has just given.',
    cause: new Error("GitHub's API answered 401"),
  });
