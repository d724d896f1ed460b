// Spec §4.8, decisions 0.3 and 6: what a redirect URI may be.

const MAX_LENGTH = 2048;

/** RFC 8252 §7.3; only these literal hosts may use http. */
const HTTP_HOSTS = new Set(['localhost', '127.0.0.1']);

/**
 * Why a redirect URI is refused at registration; undefined when it is allowed.
 *
 * The address must mean the same to every reader: it has to survive WHATWG parsing unchanged but
 * for the host's case, a default port and an added trailing slash. Browsers would otherwise go
 * where nobody looked (`https:\evil`, `http://0x7f000001`, a tab inside the scheme).
 */
export function redirectUriProblem(uri: string): string | undefined {
  if (uri.length > MAX_LENGTH) return `is longer than ${MAX_LENGTH} characters`;
  if (/[^\x21-\x7E]|\\/.test(uri)) {
    return 'contains white space, a control character, a backslash or a character beyond ASCII';
  }
  if (uri.includes('#')) return 'has a fragment';
  if (!URL.canParse(uri)) return 'is not a valid URL';
  const url = new URL(uri);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'is not https';
  if (url.username || url.password || authorityOf(uri).includes('@')) return 'has user info';
  if (url.protocol === 'http:' && !HTTP_HOSTS.has(url.hostname)) {
    return 'is http with a host other than localhost and 127.0.0.1';
  }
  if (url.hostname.endsWith('.')) return 'has a host that ends with a dot';
  return survives(uri, url) ? undefined : 'is not in its normal form';
}

function survives(uri: string, url: URL): boolean {
  const written = /^(https?):\/\/([^/?]*)(.*)$/s.exec(uri);
  if (written === null) return false;
  const [, scheme, authority = '', rest = ''] = written;
  const defaultPort = scheme === 'https' ? ':443' : ':80';
  const host = authority.toLowerCase();
  const normalHost = host.endsWith(defaultPort) ? host.slice(0, -defaultPort.length) : host;
  const normalRest = rest.startsWith('/') ? rest : `/${rest}`;
  return `${scheme}://${normalHost}${normalRest}` === url.href;
}

const authorityOf = (uri: string): string => /^[^:]*:\/*([^/?]*)/.exec(uri)?.[1] ?? '';
