// §13.2: the groups of a user, from the claim that OIDC_GROUPS_CLAIM names, or from Microsoft Graph.
import { fail } from '../../errors/gateway-error.ts';
import { type Fetch, FetchError, fetchWithLimits } from '../../platform/fetch-with-limits.ts';
import { isObject, isStringArray, type JsonObject, parseObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import { failIdentity, findClaim } from './identity.ts';

/** The claim as a list; a single text is a list of one. Undefined for anything else. */
export function readGroups(claims: JsonObject, name: string): readonly string[] | undefined {
  const found = findClaim(claims, name);
  if (typeof found === 'string') return [found];
  return isStringArray(found) ? found : undefined;
}

// OpenID Connect Core §5.6.2: distributed claims. Microsoft Entra uses them for a user in more groups than fit into a token.

/** The address to request the groups from; undefined if the token has them, or names no source. */
export function findOverageEndpoint(claims: JsonObject, groupsClaim: string): string | undefined {
  const { _claim_names: names, _claim_sources: sources } = claims;
  const source = isObject(names) && Object.hasOwn(names, groupsClaim) ? names[groupsClaim] : '';
  if (typeof source !== 'string' || !isObject(sources) || !Object.hasOwn(sources, source))
    return undefined;
  const { [source]: where } = sources;
  return isObject(where) && typeof where.endpoint === 'string' ? where.endpoint : undefined;
}

/** https://learn.microsoft.com/graph/deployments: each national cloud has its own host. */
const GRAPH_HOSTS = new Set([
  'graph.microsoft.com',
  'graph.microsoft.us',
  'dod-graph.microsoft.us',
  'microsoftgraph.chinacloudapi.cn',
]);

/** The discontinued Azure AD Graph, which tokens still name. Its successor has the same path without the tenant. */
const RETIRED_HOSTS: ReadonlyMap<string, string> = new Map([
  ['graph.windows.net', 'graph.microsoft.com'],
  ['graph.microsoftazure.us', 'graph.microsoft.us'],
  ['graph.chinacloudapi.cn', 'microsoftgraph.chinacloudapi.cn'],
]);

/** Undefined for an address that is not Microsoft's: the access token goes nowhere else. */
function resolveGraphUrl(endpoint: string) {
  if (!URL.canParse(endpoint)) return undefined;
  const { protocol, host, pathname, username, password } = new URL(endpoint);
  if (protocol !== 'https:' || username !== '' || password !== '') return undefined;
  if (GRAPH_HOSTS.has(host)) return `https://${host}${pathname}`;
  const successor = RETIRED_HOSTS.get(host);
  const [, path] = /^\/[^/]+(\/users\/[^/]+\/getMemberObjects)$/.exec(pathname) ?? [];
  return successor && path && `https://${successor}/v1.0${path}`;
}

const LIMITS = { timeoutMs: 5000, maxBytes: 1_048_576 };

/** @throws GatewayError `unusable_identity`, or `upstream_failed` for a temporary failure. */
export async function askForGroups(
  fetch: Fetch,
  endpoint: string,
  accessToken: string | undefined,
): Promise<readonly string[]> {
  const url = resolveGraphUrl(endpoint);
  if (url === undefined || accessToken === undefined)
    return failGroups(`The address ${quote(endpoint)} is not one of Microsoft Graph.`);
  const request = {
    method: 'POST' as const,
    headers: {
      Authorization: `Bearer ${accessToken}`,
      'Content-Type': 'application/json',
      Accept: 'application/json',
    },
    body: JSON.stringify({ securityEnabledOnly: false }),
  };
  const { status, body } = await fetchWithLimits(fetch, url, request, LIMITS).catch(
    (cause: unknown) => {
      if (cause instanceof FetchError) fail('upstream_failed', { cause });
      throw cause;
    },
  );
  if (status >= 500 || status === 429)
    fail('upstream_failed', { cause: new Error(`Microsoft Graph answered ${status}`) });
  const { value: groups } = (status === 200 ? parseObject(body) : undefined) ?? {};
  return isStringArray(groups)
    ? groups
    : failGroups(
        `Microsoft Graph answered ${status}. The gateway's client needs a permission to read them, such as GroupMember.Read.All.`,
      );
}

const failGroups = (problem: string): never =>
  failIdentity(`The groups of the user could not be read (OIDC_GROUPS_OVERAGE). ${problem}`, {
    problem,
  });
