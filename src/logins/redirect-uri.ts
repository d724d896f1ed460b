// §4.8: validates and compares redirect URIs.

import { isLoopbackHost, LOOPBACK_HOSTS } from '../platform/address.ts';
import { isStringArray } from '../platform/json.ts';

const MAX_LENGTH = 2048;
const MAX_PORT = 65_535;

/** The client's list of redirect URIs, or why it is refused. */
type RedirectUriList =
  | { readonly uris: readonly string[]; readonly problem?: undefined }
  /** `isUri`: one of the URIs is the problem; `problem` is a clause that begins with `redirect_uris`. */
  | { readonly uris?: undefined; readonly problem: string; readonly isUri: boolean };

const MAX_REDIRECT_URIS = 10;

/** `redirect_uris` of a registration or of a metadata document. */
export function parseRedirectUris(value: unknown, rules: RedirectUriRules): RedirectUriList {
  if (!isStringArray(value) || value.length === 0 || value.length > MAX_REDIRECT_URIS) {
    const problem = `redirect_uris must be an array of 1 to ${MAX_REDIRECT_URIS} strings`;
    return { problem, isUri: false };
  }
  for (const [at, uri] of value.entries()) {
    const problem = findRedirectUriProblem(uri, rules);
    if (problem !== undefined) return { problem: `redirect_uris[${at}] ${problem}`, isUri: true };
  }
  return { uris: value };
}

/** Redirect URIs that are allowed in addition to §4.8. */
export interface RedirectUriRules {
  /** The gateway's own URL. */
  readonly baseUrl: string;
  /** Private-use schemes (RFC 8252 §7.1), without the colon. */
  readonly schemes: readonly string[];
  /**
   * In broker mode `http://[::1]` is equivalent to 127.0.0.1, and parameters of the response are not allowed in the query: a client may
   * take the first.
   */
  readonly isBroker: boolean;
}

/** RFC 6749 §4.1.2, RFC 9207 §2. */
const RESPONSE_PARAMETERS = ['code', 'state', 'iss', 'error', 'error_description', 'error_uri'];

const IPV6_LOOPBACK = '[::1]';

const listHttpHosts = ({ isBroker }: RedirectUriRules): readonly string[] =>
  LOOPBACK_HOSTS.filter((host) => isBroker || host !== IPV6_LOOPBACK);

export function describeRedirectUriRules(rules: RedirectUriRules): string {
  const hosts = listHttpHosts(rules);
  const httpHosts = `${hosts.slice(0, -1).join(', ')} or ${hosts.at(-1)}`;
  const schemes =
    rules.schemes.length === 0
      ? ''
      : `, and the schemes ${rules.schemes.join(', ')} (OAUTH_REDIRECT_SCHEMES)`;
  return `Allowed are https, and http with the host ${httpHosts}, without a fragment${schemes}.`;
}

/**
 * Says why a redirect URI is refused at registration; undefined if it is allowed.
 *
 * All readers must read the address the same way: it must survive WHATWG parsing unchanged, except for the case of the host, a
 * default port and an added trailing slash. Otherwise browsers would go to an address that was never checked (`https:\evil`,
 * `http://0x7f000001`, a tab inside the scheme).
 */
function findRedirectUriProblem(uri: string, rules: RedirectUriRules): string | undefined {
  if (uri.length > MAX_LENGTH) return `is longer than ${MAX_LENGTH} characters`;
  if (/[^\x21-\x7E]|\\/.test(uri))
    return 'contains white space, a control character, a backslash or a character beyond ASCII';
  if (uri.includes('#')) return 'has a fragment';
  if (!URL.canParse(uri)) return 'is not a valid URL';
  const url = new URL(uri);
  const [, authority = ''] = /^[^:]*:\/*([^/?]*)/.exec(uri) ?? [];
  if (url.username || url.password || authority.includes('@')) return 'has user info';
  const parameter =
    rules.isBroker && RESPONSE_PARAMETERS.find((name) => url.searchParams.has(name));
  if (parameter) return `has the parameter ${parameter}, which the response sets`;
  if (rules.schemes.includes(url.protocol.slice(0, -1)))
    return url.href === uri ? undefined : 'is not in its normal form';
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'is not https';
  const httpHosts = listHttpHosts(rules);
  if (url.protocol === 'http:' && !httpHosts.includes(url.hostname))
    return `is http with a host other than ${httpHosts.join(' and ')}`;
  if (url.hostname.endsWith('.')) return 'has a host that ends with a dot';
  if (isAtOrigin(uri, rules.baseUrl)) return "is at this gateway's own origin";
  return isNormalized(uri, url) ? undefined : 'is not in its normal form';
}

/**
 * True if a valid address is at the origin of another: its owner would be mistaken for the gateway itself. All names of this
 * computer count as one.
 */
export function isAtOrigin(uri: string, other: string): boolean {
  const [first, second] = [new URL(uri), new URL(other)];
  if (first.protocol !== second.protocol || first.port !== second.port) return false;
  const areLoopback = [first, second].every(({ hostname }) => isLoopbackHost(hostname));
  return areLoopback || first.hostname === second.hostname;
}

/** Compares exact strings (RFC 9700 §4.1.3); on loopback, if allowed, without their ports. */
export function isSameRedirectUri(
  registered: string,
  requested: string,
  { allowsAnyLoopbackPort }: { readonly allowsAnyLoopbackPort: boolean },
): boolean {
  if (registered === requested) return true;
  if (!allowsAnyLoopbackPort) return false;
  const [one, other] = [stripLoopbackPort(registered), stripLoopbackPort(requested)];
  return one !== undefined && one === other;
}

/** Works on strings: parsing would make different addresses equal. Undefined for other hosts. */
function stripLoopbackPort(uri: string) {
  const [, host = '', port = '0', rest] =
    /^http:\/\/(\[[^\]]*\]|[^:/?]*)(?::(\d{1,5}))?((?:[/?].*)?)$/.exec(uri) ?? [];
  return isLoopbackHost(host) && Number(port) <= MAX_PORT ? `http://${host}${rest}` : undefined;
}

function isNormalized(uri: string, url: URL) {
  const written = /^(https?):\/\/([^/?]*)(.*)$/s.exec(uri);
  if (written === null) return false;
  const [, scheme, authority = '', rest = ''] = written;
  const defaultPort = scheme === 'https' ? ':443' : ':80';
  const host = authority.toLowerCase();
  const normalHost = host.endsWith(defaultPort) ? host.slice(0, -defaultPort.length) : host;
  const normalRest = rest.startsWith('/') ? rest : `/${rest}`;
  return `${scheme}://${normalHost}${normalRest}` === url.href;
}

// RFC 6749 §4.1.2: the redirect back to the client.

type Pairs = readonly (readonly [name: string, value: string | undefined])[];

/** Adds `pairs` to the client's registered address, which is kept unchanged. */
export function addToRedirectUri(redirectUri: string, pairs: Pairs): string {
  const query = new URLSearchParams();
  for (const [name, value] of pairs) if (value !== undefined) query.append(name, value);
  const separator = redirectUri.includes('?') ? '&' : '?';
  return `${redirectUri}${separator}${query}`;
}
