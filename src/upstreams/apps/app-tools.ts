// §30: what a tool says of its app: ext-apps, "Resource Discovery".
import type { RawItem } from '../../mcp/catalog/catalog.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { isAppUri, toSharedUri } from './shared-uris.ts';

/** Members of `_meta` that name an app by its URI: before `ui.resourceUri` was agreed on, hosts had names of their own. */
const OLDER_MEMBERS = ['ui/resourceUri', 'openai/outputTemplate'] as const;

/** `_meta` with the server's name in the URIs of apps; the same object where it names none. */
function toSharedMeta(server: string, meta: unknown): unknown {
  if (!isObject(meta)) return meta;
  const changed: Record<string, unknown> = {};
  for (const name of OLDER_MEMBERS) {
    const uri = meta[name];
    if (typeof uri === 'string' && isAppUri(uri)) changed[name] = toSharedUri(server, uri);
  }
  const { ui } = meta;
  if (isObject(ui) && typeof ui.resourceUri === 'string' && isAppUri(ui.resourceUri)) {
    changed.ui = { ...ui, resourceUri: toSharedUri(server, ui.resourceUri) };
  }
  return Object.keys(changed).length === 0 ? meta : { ...meta, ...changed };
}

/** The same of whatever has `_meta`. */
export function withSharedMeta<Item extends JsonObject>(server: string, item: Item): Item {
  const { _meta: meta } = item;
  const shared = toSharedMeta(server, meta);
  return shared === meta ? item : { ...item, _meta: shared };
}

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
