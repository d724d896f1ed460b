// GitHub's REST API, asked with the access token of a user: one thing, or a list over its pages.
// https://docs.github.com/rest/using-the-rest-api/getting-started-with-the-rest-api (headers)
// https://docs.github.com/rest/using-the-rest-api/using-pagination-in-the-rest-api (Link)
// https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api (403 and 429)
import { fail } from '../../../errors/gateway-error.ts';
import {
  type Fetch,
  FetchError,
  type FetchedResponse,
  fetchWithLimits,
} from '../../../platform/fetch-with-limits.ts';
import { parseJson } from '../../../platform/json.ts';

export type GithubAnswer =
  | { readonly kind: 'found'; readonly value: unknown }
  /** The access token is good no more. */
  | { readonly kind: 'ended' }
  /** What the app may not see: it lacks a scope or a permission. */
  | { readonly kind: 'forbidden'; readonly status: number };

export interface GithubApi {
  /** @throws GatewayError `upstream_failed` where a later try may go better. */
  get(path: string, accessToken: string): Promise<GithubAnswer>;
  /** Likewise; `value` is the items of all pages, as far as they are read. */
  list(path: string, accessToken: string): Promise<GithubAnswer>;
}

const LIMITS = { timeoutMs: 5000, maxBytes: 1_048_576 };
const PAGE_ITEMS = 100;
/** Who is in more than a thousand teams has more than fit into a grant, too. */
const MAX_PAGES = 10;

/** `apiUrl` has no slash at the end. */
export function createGithubApi(apiUrl: string, fetch: Fetch): GithubApi {
  async function ask(url: string, accessToken: string): Promise<FetchedResponse> {
    const headers = {
      Accept: 'application/vnd.github+json',
      Authorization: `Bearer ${accessToken}`,
      'User-Agent': 'postern',
      'X-GitHub-Api-Version': '2022-11-28',
    };
    try {
      return await fetchWithLimits(fetch, url, { headers }, LIMITS);
    } catch (cause) {
      if (cause instanceof FetchError) fail('upstream_failed', { cause });
      throw cause;
    }
  }

  return {
    async get(path, accessToken) {
      return readAnswer(await ask(apiUrl + path, accessToken), path);
    },
    async list(path, accessToken) {
      const items: unknown[] = [];
      let url: string | undefined = `${apiUrl}${path}?per_page=${PAGE_ITEMS}`;
      for (let page = 0; url !== undefined && page < MAX_PAGES; page += 1) {
        const response: FetchedResponse = await ask(url, accessToken);
        const answer = readAnswer(response, path);
        if (answer.kind !== 'found') return answer;
        if (!Array.isArray(answer.value)) return answer;
        items.push(...answer.value);
        url = findNextPage(response.headers.get('link'), apiUrl);
      }
      return { kind: 'found', value: items };
    },
  };
}

function readAnswer(response: FetchedResponse, path: string): GithubAnswer {
  const { status, body } = response;
  if (status === 200) return { kind: 'found', value: parseJson(body) };
  if (status === 401) return { kind: 'ended' };
  if (status < 500 && status !== 429 && !isRateLimited(response)) {
    return { kind: 'forbidden', status };
  }
  return fail('upstream_failed', { cause: new Error(`GitHub answered ${path} with ${status}`) });
}

/** 403 means that, too. */
const isRateLimited = ({ headers, body }: FetchedResponse): boolean =>
  headers.get('x-ratelimit-remaining') === '0' ||
  headers.get('retry-after') !== null ||
  /rate limit/i.test(body.toString('utf8'));

/** RFC 8288. Of the API itself: the access token goes nowhere else. */
function findNextPage(link: string | null, apiUrl: string): string | undefined {
  const [, url = ''] = /<([^>]*)>\s*;\s*rel="next"/.exec(link ?? '') ?? [];
  return url.startsWith(`${apiUrl}/`) ? url : undefined;
}
