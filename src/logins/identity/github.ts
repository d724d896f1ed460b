// §13.2 for GitHub, which has no ID tokens: reads the user of an access token, with organizations and teams, from its API.
// https://docs.github.com/rest/users/users#get-the-authenticated-user
// https://docs.github.com/rest/users/emails#list-email-addresses-for-the-authenticated-user
// https://docs.github.com/rest/orgs/orgs#list-organizations-for-the-authenticated-user
// https://docs.github.com/rest/teams/teams#list-teams-for-the-authenticated-user

import { fail } from '../../errors/gateway-error.ts';
import { createBasicAuthorization } from '../../http/oauth-client/client-authentication.ts';
import { type RevokeTokens, requireClientId } from '../../http/oauth-client/provider-api.ts';
import { findGithubApi } from '../../http/oauth-client/provider-metadata.ts';
import {
  type Fetch,
  type FetchedResponse,
  fetchWithLimits,
} from '../../platform/fetch-with-limits.ts';
import { isObject, type JsonObject, parseJson } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import { createWarnOnce } from '../../platform/throttle.ts';
import type { BrokerRuntime } from '../broker/runtime.ts';
import { askApi, checkClaimSize, failIdentity, readText } from './identity.ts';
import type { ReadIdentity } from './read-identity.ts';

export function createReadGithubIdentity({
  oauth,
  fetch,
  log,
  servers,
}: BrokerRuntime): ReadIdentity {
  const { identity: config, provider } = oauth;
  const { issuer } = provider;
  const api = createGithubApi(findGithubApi(issuer), fetch);
  const warnOnce = createWarnOnce(log);

  /** True if settings or rules need the claim. */
  const isNamed = (names: readonly string[]) =>
    [...servers.listNamedClaims(), ...config.allowedClaims.map(([name]) => name)].some((name) =>
      names.includes(name),
    );

  return async function readGithubIdentity(answer, { earlier, isHeldToken = false }) {
    const { access_token: accessToken } = answer;
    if (typeof accessToken !== 'string') return failMember('access_token', undefined);
    const [found, emails, orgs, teams] = await Promise.all([
      api.get('/user', accessToken),
      api.list('/user/emails', accessToken),
      api.list('/user/orgs', accessToken),
      api.list('/user/teams', accessToken),
    ]);
    if ([found, emails, orgs, teams].some(({ kind }) => kind === 'ended'))
      return isHeldToken
        ? undefined
        : fail('upstream_failed', {
            details: 'GitHub does not accept the access token that it has just issued.',
            cause: new Error("GitHub's API answered 401"),
          });
    if (found.kind !== 'found') return failForbidden('/user', found);
    const profile = isObject(found.value) ? found.value : {};
    const { id } = profile;
    // GitHub usernames can be changed, and then taken by another user; the numeric ID stays the same.
    if (!Number.isSafeInteger(id)) return failMember('id', id);
    const user = { issuer, sub: String(id) };
    if (earlier && (user.sub !== earlier.user.sub || issuer !== earlier.user.issuer))
      failMember('id', user.sub);
    const { login, name, avatar_url: picture, html_url } = profile;
    // Claim names of OpenID Connect Core §5.1.
    const said = { preferred_username: login, name, picture, profile: html_url };
    const claims = {
      sub: user.sub,
      ...Object.fromEntries(Object.entries(said).filter(([, value]) => readText(value))),
      ...readEmail(emails),
      ...readGroups(orgs, teams),
    };
    checkClaimSize(claims);
    return { user, claims, userinfoClaims: [], sid: undefined };
  };

  /** Only the primary address: the others are private. */
  function readEmail(answer: GithubAnswer): JsonObject {
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

  function readGroups(orgs: GithubAnswer, teams: GithubAnswer): JsonObject {
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

  function readItems(answer: GithubAnswer, { path, isNeeded, advice, without }: Need) {
    if (answer.kind === 'found')
      return Array.isArray(answer.value)
        ? answer.value.filter(isObject)
        : failMember(path, answer.value);
    if (isNeeded) failForbidden(path, answer, advice);
    warnOnce(path, `GitHub does not let the app read ${path}. ${without}`, { needed: advice });
    return [];
  }
}

/** Purpose of a list. */
interface Need {
  readonly path: string;
  /** Without it, rules cannot decide on the user. */
  readonly isNeeded: boolean;
  /** A sentence about the permission that the app needs for it. */
  readonly advice: string;
  readonly without: string;
}

/** @throws GatewayError always. */
const failMember = (member: string, found: unknown): never =>
  failIdentity(`GitHub's answer has an unexpected ${member}: ${quote(found)}.`, {
    member,
    found: quote(found),
  });

function failForbidden(path: string, answer: GithubAnswer, advice?: string): never {
  const status = answer.kind === 'forbidden' ? answer.status : undefined;
  const needed = advice === undefined ? '' : ` It needs ${advice}.`;
  return failIdentity(`GitHub does not let the app read ${path} (${status}).${needed}`, {
    member: path,
    found: status,
  });
}

// Revokes a token in GitHub's own way, which is not RFC 7009.
// https://docs.github.com/rest/apps/oauth-applications#delete-an-app-token

export function createRevokeGithubToken({ oauth, fetch }: BrokerRuntime): RevokeTokens {
  const { provider, providerClient } = oauth;

  return async function revokeGithubToken({ accessToken }) {
    if (accessToken === undefined) return;
    try {
      const id = requireClientId(providerClient);
      const url = `${findGithubApi(provider.issuer)}/applications/${encodeURIComponent(id)}/token`;
      const headers = {
        ...HEADERS,
        Authorization: createBasicAuthorization(id, providerClient.secret ?? ''),
        'Content-Type': 'application/json',
      };
      const body = JSON.stringify({ access_token: accessToken });
      await fetchWithLimits(fetch, url, { method: 'DELETE', headers, body }, REVOCATION_LIMITS);
    } catch {
      // GitHub may be down: users can still revoke the app in their settings there.
    }
  };
}

const HEADERS = { Accept: 'application/vnd.github+json', 'User-Agent': 'postern' };
const REVOCATION_LIMITS = { timeoutMs: 10_000, maxBytes: 65_536 };

// Client for GitHub's REST API with a user's access token: single resources, and lists over all pages.
// https://docs.github.com/rest/using-the-rest-api/getting-started-with-the-rest-api (headers)
// https://docs.github.com/rest/using-the-rest-api/using-pagination-in-the-rest-api (Link)
// https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api (403 and 429)

type GithubAnswer =
  | { readonly kind: 'found'; readonly value: unknown }
  /** The access token is no longer valid. */
  | { readonly kind: 'ended' }
  /** The app lacks a scope or a permission. */
  | { readonly kind: 'forbidden'; readonly status: number };

const PAGE_ITEMS = 100;
/** A user in more than a thousand teams would exceed the size of a grant, too. */
const MAX_PAGES = 10;

/** `apiUrl` has no slash at the end. */
function createGithubApi(apiUrl: string, fetch: Fetch) {
  const ask = (url: string, accessToken: string) =>
    askApi(fetch, url, {
      headers: {
        ...HEADERS,
        Authorization: `Bearer ${accessToken}`,
        'X-GitHub-Api-Version': '2022-11-28',
      },
    });

  return {
    /** @throws GatewayError `upstream_failed` if a later try may succeed. */
    async get(path: string, accessToken: string) {
      return readAnswer(await ask(apiUrl + path, accessToken), path);
    },
    /** The same; `value` has the items of all pages that were read. */
    async list(path: string, accessToken: string): Promise<GithubAnswer> {
      const items: unknown[] = [];
      let url: string | undefined = `${apiUrl}${path}?per_page=${PAGE_ITEMS}`;
      for (let page = 0; url !== undefined && page < MAX_PAGES; page += 1) {
        const response: FetchedResponse = await ask(url, accessToken);
        const answer = readAnswer(response, path);
        if (answer.kind !== 'found' || !Array.isArray(answer.value)) return answer;
        items.push(...answer.value);
        const link = response.headers.get('link') ?? '';
        const [, next = ''] = /<([^>]*)>\s*;\s*rel="next"/.exec(link) ?? [];
        // RFC 8288. Must be of the API itself: the access token goes nowhere else.
        url = next.startsWith(`${apiUrl}/`) ? next : undefined;
      }
      return { kind: 'found', value: items };
    },
  };
}

function readAnswer(response: FetchedResponse, path: string): GithubAnswer {
  const { status, headers, body } = response;
  if (status === 200) return { kind: 'found', value: parseJson(body) };
  if (status === 401) return { kind: 'ended' };
  // 403 may mean a rate limit.
  const isRateLimited =
    status === 429 ||
    headers.get('x-ratelimit-remaining') === '0' ||
    headers.get('retry-after') !== null ||
    /rate limit/i.test(body.toString('utf8'));
  if (status < 500 && !isRateLimited) return { kind: 'forbidden', status };
  return fail('upstream_failed', { cause: new Error(`GitHub answered ${path} with ${status}`) });
}
