// §18.2, §30.1: the URIs that a result of a server names, and where: of links, embedded resources, what was read, and apps. Texts
// and structured content are the server's words, and stay as they are.
import { isObject, type JsonObject } from '../../platform/json.ts';
import type { JsonPath } from '../../platform/splice-json.ts';
import { listAppUris } from '../apps/app-tools.ts';

export interface NamedUri {
  readonly path: JsonPath;
  readonly uri: string;
  /** A result of a tool or a prompt has it: it can be read, whether it is listed or not. */
  readonly isLink: boolean;
}

export function listNamedUris(result: JsonObject): readonly NamedUri[] {
  const named: NamedUri[] = [];
  addApps(result, [], named);
  addItems('content', result.content, (item, path) => addContent(item, path, named));
  addItems('messages', result.messages, (item, path) => {
    if (isObject(item)) addContent(item.content, [...path, 'content'], named);
  });
  addItems('contents', result.contents, (item, path) => addResource(item, path, false, named));
  return named;
}

function addItems(name: string, list: unknown, add: (item: unknown, path: JsonPath) => void): void {
  if (!Array.isArray(list)) return;
  for (let index = 0; index < list.length; index += 1) add(list[index], [name, index]);
}

function addContent(item: unknown, path: JsonPath, named: NamedUri[]): void {
  if (!isObject(item)) return;
  if (item.type === 'resource_link') addResource(item, path, true, named);
  else addApps(item, path, named);
  if (item.type === 'resource') addResource(item.resource, [...path, 'resource'], true, named);
}

function addResource(item: unknown, path: JsonPath, isLink: boolean, named: NamedUri[]): void {
  if (!isObject(item)) return;
  const { uri } = item;
  if (typeof uri === 'string') named.push({ path: [...path, 'uri'], uri, isLink });
  addApps(item, path, named);
}

/** The apps that `_meta` of something names. */
function addApps({ _meta: meta }: JsonObject, path: JsonPath, named: NamedUri[]): void {
  if (meta === undefined) return;
  for (const app of listAppUris(meta)) {
    named.push({ path: [...path, '_meta', ...app.path], uri: app.uri, isLink: false });
  }
}

/** Those of a result in which nothing else names a URI. */
export function listAppsOf(result: JsonObject): readonly NamedUri[] {
  const named: NamedUri[] = [];
  addApps(result, [], named);
  return named;
}
