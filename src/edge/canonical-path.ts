// §4.1: the path that is served, of one as it came in.

export interface CanonicalPathOptions {
  readonly baseUrl: string;
  /** Whether there is an endpoint at the path as it is. */
  readonly hasEndpoint: (path: string) => boolean;
}

/** Nothing is decoded, and no two slashes are one: what a proxy may read in another way leads nowhere. */
export type CanonicalizePath = (path: string) => string;

/**
 * An MCP endpoint may have a slash behind it. The path of BASE_URL is there where the proxy in front does not remove it, and
 * in the well-known addresses, which begin at the host (RFC 8414 §3.1, RFC 9728 §3.1).
 */
export function createCanonicalizePath(options: CanonicalPathOptions): CanonicalizePath {
  const basePath = new URL(options.baseUrl).pathname.replace(/\/$/, '');
  if (basePath === '') return removeSlash;
  const { hasEndpoint } = options;

  return function canonicalizePath(path) {
    const literal = removeSlash(path);
    // A proxy has removed the path of BASE_URL: what is left may begin alike.
    if (hasEndpoint(literal)) return literal;
    const below = removeBasePath(path, basePath);
    // Proxies that remove the path close this one by its public name, which must not have a second one.
    return below === undefined || below === METRICS ? literal : removeSlash(below);
  };
}

const METRICS = '/metrics';

/** With the documents that clients find by adding this path to that of the document. */
const MCP_WITH_SLASH = /^(?:\/\.well-known\/oauth-protected-resource)?\/mcp\/(?:[^/]+\/)?$/;

const removeSlash: CanonicalizePath = (path) =>
  path.endsWith('/') && MCP_WITH_SLASH.test(path) ? path.slice(0, -1) : path;

const METADATA =
  /^\/\.well-known\/(?:oauth-protected-resource|oauth-authorization-server|openid-configuration)(?=\/)/;

/** Undefined where the path of BASE_URL is neither at the start nor behind the name of a document. */
function removeBasePath(path: string, basePath: string): string | undefined {
  const [start = ''] = METADATA.exec(path) ?? [];
  const rest = path.slice(start.length);
  if (rest !== basePath && !rest.startsWith(`${basePath}/`)) return undefined;
  return start + rest.slice(basePath.length) || '/';
}
