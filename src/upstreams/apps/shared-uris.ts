// §18.2, §30.1: URIs of servers as clients see them where several servers share a path, and back.
//
// A `ui://` URI gets the server's name in front of what the server wrote behind the scheme, so that no two are the same and none
// looks like another server's. Any other URI keeps its form, unless another server has it, too: then it becomes `<server>+<uri>`.

/** In any case: whoever compares schemes as RFC 3986 does must not take `UI://` for something else. */
const SCHEME = /^ui:\/\//i;
const SCHEME_LENGTH = 5;

export const isAppUri = (uri: string): boolean => SCHEME.test(uri);

/** The server's own URI, or template, with its name in it; any other URI is the same everywhere. */
export const toSharedUri = (server: string, ownUri: string): string =>
  isAppUri(ownUri)
    ? `${ownUri.slice(0, SCHEME_LENGTH)}${server}/${ownUri.slice(SCHEME_LENGTH)}`
    : ownUri;

export interface SharedUri {
  /** Maybe the name of no server. */
  readonly server: string;
  readonly ownUri: string;
}

/** Undefined for what `toSharedUri` would never write. */
export function readSharedUri(uri: string): SharedUri | undefined {
  const slash = isAppUri(uri) ? uri.indexOf('/', SCHEME_LENGTH) : -1;
  if (slash === -1) return undefined;
  return {
    server: uri.slice(SCHEME_LENGTH, slash),
    ownUri: uri.slice(0, SCHEME_LENGTH) + uri.slice(slash + 1),
  };
}

/** For a URI, or template, that another server has, too. */
export const toMovedUri = (server: string, ownUri: string): string => `${server}+${ownUri}`;

/** The lists of all servers decide by which of them clients see it. */
export const listClientUris = (server: string, ownUri: string): readonly string[] => [
  toSharedUri(server, ownUri),
  toMovedUri(server, ownUri),
];

/** The server's own URI for one that clients see. */
export function toOwnUri(server: string, uri: string): string {
  const shared = readSharedUri(uri);
  if (shared?.server === server) return shared.ownUri;
  return uri.startsWith(`${server}+`) ? uri.slice(server.length + 1) : uri;
}
