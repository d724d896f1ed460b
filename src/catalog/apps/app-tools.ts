// §30: the parts of a tool's metadata about its app (ext-apps, "Resource Discovery").
import type { RawItem } from '../../mcp/catalog/catalog.ts';
import { isObject } from '../../platform/json.ts';
import { editValue } from '../../platform/noted-json.ts';
import type { JsonPath } from '../../platform/splice-json.ts';

/** Members of `_meta` that name an app by its URI: hosts used different names before `ui.resourceUri` was agreed on. */
const OLDER_MEMBERS = ['ui/resourceUri', 'openai/outputTemplate'] as const;

interface AppUri {
  /** The path within `_meta`. */
  readonly path: JsonPath;
  readonly uri: string;
}

/** The apps that `_meta` names. */
export function listAppUris(meta: unknown): readonly AppUri[] {
  if (!isObject(meta)) return NO_APPS;
  const named: AppUri[] = [];
  const add = (path: JsonPath, uri: unknown) => {
    if (typeof uri === 'string' && isAppUri(uri)) named.push({ path, uri });
  };
  for (const name of OLDER_MEMBERS) add([name], meta[name]);
  if (isObject(meta.ui)) add(['ui', 'resourceUri'], meta.ui.resourceUri);
  return named;
}

const NO_APPS: readonly AppUri[] = [];

/** A list entry with the server's name in the URIs of its apps; the same object if it names none. */
export const withSharedMeta = (server: string, item: RawItem): RawItem =>
  editValue(
    item,
    listAppUris(item._meta).map(({ path, uri }) => ({
      path: ['_meta', ...path],
      rewrite: () => JSON.stringify(toSharedUri(server, uri)),
    })),
  );

/** True if hosts show an app along with the tool's results. */
export const hasApp = ({ _meta: meta }: RawItem): boolean => listAppUris(meta).length > 0;

/** Reads `visibility`, which is both by default. Hosts hide tools that are only for apps from their model. */
export function isVisibleTo(audience: 'model' | 'app', { _meta: meta }: RawItem): boolean {
  const visibility = isObject(meta) && isObject(meta.ui) ? meta.ui.visibility : undefined;
  return !Array.isArray(visibility) || visibility.includes(audience);
}

// §18.2, §30.1: maps URIs of servers to the form that clients see where several servers share a path, and back. In a `ui://` URI,
// the server's name is inserted after the scheme, so that no two are the same and none looks like another server's. Any other URI
// is unchanged, unless another server has it as well: then it becomes `<server>+<uri>`.

/** Case-insensitive, since a client that compares schemes as RFC 3986 does takes `UI://` for `ui://`. */
const SCHEME = /^ui:\/\//i;
const SCHEME_LENGTH = 5;

export const isAppUri = (uri: string): boolean => SCHEME.test(uri);

/** The server's own URI or template with its name inserted; any other URI is the same everywhere. */
export const toSharedUri = (server: string, ownUri: string): string =>
  isAppUri(ownUri)
    ? `${ownUri.slice(0, SCHEME_LENGTH)}${server}/${ownUri.slice(SCHEME_LENGTH)}`
    : ownUri;

/** Undefined for a URI that `toSharedUri` would never return. There may be no server of that name. */
export function readSharedUri(uri: string) {
  const slash = isAppUri(uri) ? uri.indexOf('/', SCHEME_LENGTH) : -1;
  if (slash === -1) return undefined;
  return {
    server: uri.slice(SCHEME_LENGTH, slash),
    ownUri: uri.slice(0, SCHEME_LENGTH) + uri.slice(slash + 1),
  };
}

/** The form of a URI or template that another server has as well. */
export const toMovedUri = (server: string, ownUri: string): string => `${server}+${ownUri}`;

/** The forms of a URI that clients may see; the lists of all servers determine which one. */
export const listClientUris = (server: string, ownUri: string): readonly string[] => [
  toSharedUri(server, ownUri),
  toMovedUri(server, ownUri),
];

/** The server's own URI for a URI that clients see. */
export function toOwnUri(server: string, uri: string): string {
  const shared = readSharedUri(uri);
  if (shared?.server === server) return shared.ownUri;
  return uri.startsWith(`${server}+`) ? uri.slice(server.length + 1) : uri;
}
