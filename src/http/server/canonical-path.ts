// §4.1: turns a path as received into the one that the router knows.

/** Decodes nothing and joins no slashes, so that a path which a proxy may read in another way leads nowhere. */
export type CanonicalizePath = (path: string) => string;

/**
 * Removes the slash behind an MCP endpoint, and the path of BASE_URL: from the start, where the proxy in front leaves it, and from
 * well-known addresses, which begin at the host (RFC 8414 §3.1, RFC 9728 §3.1).
 */
export function createCanonicalizePath(
  baseUrl: string,
  hasEndpoint: (path: string) => boolean,
): CanonicalizePath {
  const basePath = new URL(baseUrl).pathname.replace(/\/$/, '');
  if (basePath === '') return removeSlash;

  return function canonicalizePath(path) {
    const literal = removeSlash(path);
    // If a proxy has removed the path of BASE_URL, the rest may begin with the same segment.
    if (hasEndpoint(literal)) return literal;
    const below = removeBasePath(path, basePath);
    // Proxies block /metrics by its public path, so it must have no second one.
    return below === undefined || below === METRICS ? literal : removeSlash(below);
  };
}

const METRICS = '/metrics';

/** The documents too, since clients append the path of the endpoint to theirs. */
const MCP_WITH_SLASH = /^(?:\/\.well-known\/oauth-protected-resource)?\/mcp\/(?:[^/]+\/)?$/;

const removeSlash: CanonicalizePath = (path) =>
  path.endsWith('/') && MCP_WITH_SLASH.test(path) ? path.slice(0, -1) : path;

const METADATA =
  /^\/\.well-known\/(?:oauth-protected-resource|oauth-authorization-server|openid-configuration)(?=\/)/;

/** Undefined if the path of BASE_URL is neither at the start nor behind the name of a document. */
function removeBasePath(path: string, basePath: string): string | undefined {
  const [start = ''] = METADATA.exec(path) ?? [];
  const rest = path.slice(start.length);
  if (rest !== basePath && !rest.startsWith(`${basePath}/`)) return undefined;
  return start + rest.slice(basePath.length) || '/';
}
