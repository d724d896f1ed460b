// §13.2: the identity of a user: expectations about the provider's answer, and the claims that are stored: their size, those that a
// renewal keeps, and groups, from the claim that OIDC_GROUPS_CLAIM names, or from Microsoft Graph.
import { catalogue } from '../../errors/catalogue.ts';
import { fail } from '../../errors/gateway-error.ts';
import {
  type Fetch,
  FetchError,
  type FetchedResponse,
  type FetchInit,
  fetchWithLimits,
} from '../../platform/fetch-with-limits.ts';
import {
  hasLevels,
  isObject,
  isStringArray,
  type JsonObject,
  parseObject,
} from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import type { UserIdentity } from '../grants/grant.ts';

/** A non-empty string; undefined for anything else. */
export const readText = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

/** A user, as the provider describes it. */
export interface Identity {
  readonly user: UserIdentity;
  /** All claims, at most 16 KiB; `groups` comes from OIDC_GROUPS_CLAIM. */
  readonly claims: JsonObject;
  /** Claims that only the userinfo endpoint gave. */
  readonly userinfoClaims: readonly string[];
  /** OpenID Connect Back-Channel Logout §2.1. */
  readonly sid: string | undefined;
}

/** The provider's answer must match it. */
export interface ExpectedIdentity {
  /** OpenID Connect Core §3.1.3.7: nonce of the login. */
  readonly nonce: string | undefined;
  /**
   * OpenID Connect Core §12.2: the former identity, which must have the same user; its claims are kept if the answer has none.
   */
  readonly earlier: EarlierIdentity | undefined;
  /** There was no token request: the stored access token may have been revoked. */
  readonly isHeldToken?: boolean;
}

export interface EarlierIdentity extends Pick<Identity, 'user' | 'claims'> {
  /** If undefined, all claims count as those of the ID token. */
  readonly userinfoClaims?: readonly string[] | undefined;
}

/** Claims by source; undefined for a source that was not asked, or did not answer. */
interface ClaimSources {
  readonly idToken: JsonObject | undefined;
  readonly userinfo: JsonObject | undefined;
}

/** The ID token is signed, and takes precedence. */
export function joinClaims({ idToken = {}, userinfo = {} }: ClaimSources): JsonObject {
  // It does not apply to an address that only userinfo has.
  if (idToken.email === undefined && typeof userinfo.email === 'string')
    return { ...userinfo, ...select(idToken, isNotAboutEmail) };
  const isOfOther = userinfo.email !== idToken.email;
  return { ...(isOfOther ? select(userinfo, isNotAboutEmail) : userinfo), ...idToken };
}

/** Claims that describe one address: verified, and hosted by an organization (Google). */
const ABOUT_EMAIL = new Set(['email_verified', 'xms_edov', 'hd']);

const isNotAboutEmail = (name: string) => !ABOUT_EMAIL.has(name);

const select = (claims: JsonObject, isMeant: (name: string) => boolean): JsonObject =>
  Object.fromEntries(Object.entries(claims).filter(([name]) => isMeant(name)));

/**
 * A claim keeps its value if its source does not provide it now: a refresh may return no ID token, and userinfo may be
 * unavailable. If the source answers without the claim, the claim is removed. Claims about an address go with it. `kept` lists
 * the claims that keep their former value.
 */
export function mergeRenewedClaims(earlier: EarlierIdentity, sources: ClaimSources) {
  const renewed = joinClaims(sources);
  const fromUserinfo = new Set(earlier.userinfoClaims);
  const isKept = (name: string) => {
    const place = fromUserinfo.has(name) ? sources.userinfo : sources.idToken;
    return place === undefined && !Object.hasOwn(renewed, name);
  };
  const { email } = earlier.claims;
  const keepsEmail = email !== undefined && isKept('email');
  const isOfSameEmail = keepsEmail || renewed.email === email;
  const keptClaims = select(earlier.claims, (name) =>
    isNotAboutEmail(name)
      ? isKept(name)
      : isOfSameEmail && (isKept(name) || (keepsEmail && Object.hasOwn(renewed, name))),
  );
  const said = keepsEmail ? select(renewed, isNotAboutEmail) : renewed;
  return { claims: { ...keptClaims, ...said }, kept: Object.keys(keptClaims) };
}

const MAX_BYTES = 16_384;
const MAX_LEVELS = 32;
/** Number of claims that an error names. */
const MAX_NAMED = 3;

/** @throws GatewayError `unusable_identity` that names the size and the largest claims. */
export function checkClaimSize(claims: JsonObject): void {
  const deep = Object.keys(claims).find((name) => !hasLevels(claims[name], MAX_LEVELS));
  if (deep !== undefined)
    failIdentity(`The claim ${quote(deep)} has more than ${MAX_LEVELS} levels.`, { deep });
  const bytes = countBytes(claims);
  if (bytes <= MAX_BYTES) return;
  const largest = Object.entries(claims)
    .map(([name, value]) => ({ name, bytes: countBytes(value) }))
    .sort((a, b) => b.bytes - a.bytes)
    .slice(0, MAX_NAMED);
  const list = largest.map(({ name, bytes: size }) => `${quote(name, 100)} (${size} bytes)`);
  failIdentity(
    `The claims of the user have ${bytes} bytes; at most ${MAX_BYTES} are kept. The largest are ${list.join(', ')}: have the provider send less in them.`,
    { bytes, largest },
  );
}

const countBytes = (value: unknown) => Buffer.byteLength(JSON.stringify(value) ?? '');

/** `problem` is a sentence to follow that of the catalogue. @throws GatewayError `unusable_identity`, always. */
export const failIdentity = (problem: string, facts: JsonObject, cause?: unknown): never =>
  fail('unusable_identity', {
    details: `${catalogue.unusable_identity.details} ${problem}`,
    facts,
    cause,
  });

// Finds a claim by its name in settings.

/**
 * A member with exactly this name takes precedence, even one with dots, such as a URL. Otherwise the name is a path: the part
 * before its first dot, and the rest within it by the same rule. Undefined if there is none; inherited members are ignored.
 */
export function findClaim(claims: JsonObject, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  const dot = name.indexOf('.');
  if (dot === -1) return undefined;
  const head = name.slice(0, dot);
  const inner = Object.hasOwn(claims, head) ? claims[head] : undefined;
  return isObject(inner) ? findClaim(inner, name.slice(dot + 1)) : undefined;
}

// Further APIs, for data that the provider itself does not return.

const LIMITS = { timeoutMs: 5000, maxBytes: 1_048_576 };

/** @throws GatewayError `upstream_failed` if there is no response. */
export const askApi = (fetch: Fetch, url: string, request: FetchInit): Promise<FetchedResponse> =>
  fetchWithLimits(fetch, url, request, LIMITS).catch((cause: unknown) => {
    if (cause instanceof FetchError) fail('upstream_failed', { cause });
    throw cause;
  });

// Groups.

/** The claim as a list; a single string becomes a one-element list. Undefined for anything else. */
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

/** @throws GatewayError `unusable_identity`, or `upstream_failed` for a temporary failure. */
export async function askForGroups(
  fetch: Fetch,
  endpoint: string,
  accessToken: string | undefined,
): Promise<readonly string[]> {
  const url = resolveGraphUrl(endpoint);
  if (url === undefined || accessToken === undefined)
    return failGroups(`The address ${quote(endpoint)} is not one of Microsoft Graph.`);
  const { status, body } = await askApi(fetch, url, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${accessToken}`,
      'Content-Type': 'application/json',
      Accept: 'application/json',
    },
    body: JSON.stringify({ securityEnabledOnly: false }),
  });
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
