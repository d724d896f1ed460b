// §30: what a tool says of its app: ext-apps, "Resource Discovery".
import type { RawItem } from '../../mcp/catalog/catalog.ts';
import { editValue } from '../../platform/edit-json.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import type { JsonPath } from '../../platform/splice-json.ts';
import { isAppUri, toSharedUri } from './shared-uris.ts';

/** Members of `_meta` that name an app by its URI: before `ui.resourceUri` was agreed on, hosts had names of their own. */
const OLDER_MEMBERS = ['ui/resourceUri', 'openai/outputTemplate'] as const;

interface AppUri {
  /** In `_meta`. */
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

/** An entry of a list with the server's name in the URIs of apps; the same object where it names none. */
export const withSharedMeta = (server: string, item: RawItem): RawItem =>
  editValue(
    item,
    listAppUris(item._meta).map(({ path, uri }) => ({
      path: ['_meta', ...path],
      rewrite: () => JSON.stringify(toSharedUri(server, uri)),
    })),
  );

const readUi = ({ _meta: meta }: RawItem): JsonObject =>
  isObject(meta) && isObject(meta.ui) ? meta.ui : NOTHING;

const NOTHING: JsonObject = {};

/** Whether hosts show an app with its results. */
export function hasApp(tool: RawItem): boolean {
  const { _meta: meta } = tool;
  const named = [
    readUi(tool).resourceUri,
    ...(isObject(meta) ? OLDER_MEMBERS.map((name) => meta[name]) : []),
  ];
  return named.some((uri) => typeof uri === 'string' && isAppUri(uri));
}

/** `visibility`; both unless it says so. */
const isVisibleTo = (audience: 'model' | 'app', tool: RawItem): boolean => {
  const { visibility } = readUi(tool);
  return !Array.isArray(visibility) || visibility.includes(audience);
};

/** Whether it is for apps alone: hosts do not show it to their model. */
export const isForAppsAlone = (tool: RawItem): boolean => !isVisibleTo('model', tool);

/** Whether an app may call it. */
export const isForApps = (tool: RawItem): boolean => isVisibleTo('app', tool);
