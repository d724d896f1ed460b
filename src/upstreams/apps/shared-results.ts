// §30.1: results of servers with the server's name in the `ui://` URIs that clients use: of links, embedded resources, what was read,
// and `_meta`. Texts and structured content are the server's words, and stay as they are.
import type { RawResult } from '../../mcp/catalog/catalog.ts';
import { isObject } from '../../platform/json.ts';
import { isUnread } from '../messages/unread-result.ts';
import type { RelayedRequest } from '../relay/server-request.ts';
import { withSharedMeta } from './app-tools.ts';
import { isAppUri, toSharedUri } from './shared-uris.ts';

/** The same object where nothing is changed: of that its bytes are known. */
export function toSharedResult(
  server: string,
  { method, name }: Pick<RelayedRequest, 'method' | 'name'>,
  result: RawResult,
): RawResult {
  const withMeta = withSharedMeta(server, result);
  // It is known of the others that nothing in them is a resource.
  const isAppRead = method === 'resources/read' && name !== undefined && isAppUri(name);
  if (isUnread(result) && !isAppRead) return withMeta;
  const content = toSharedItems(server, result.content, toSharedContent);
  const messages = toSharedItems(server, result.messages, toSharedMessage);
  const contents = toSharedItems(server, result.contents, toSharedResource);
  return content === undefined && messages === undefined && contents === undefined
    ? withMeta
    : {
        ...withMeta,
        ...(content && { content }),
        ...(messages && { messages }),
        ...(contents && { contents }),
      };
}

type ToShared = (server: string, item: unknown) => unknown;

/** Undefined where the list has nothing that is changed. */
const toSharedItems = (server: string, list: unknown, toShared: ToShared) =>
  Array.isArray(list) && list.some((item) => toShared(server, item) !== item)
    ? list.map((item) => toShared(server, item))
    : undefined;

function toSharedMessage(server: string, message: unknown): unknown {
  if (!isObject(message)) return message;
  const content = toSharedContent(server, message.content);
  return content === message.content ? message : { ...message, content };
}

function toSharedContent(server: string, item: unknown): unknown {
  if (!isObject(item)) return item;
  if (item.type === 'resource_link') return toSharedResource(server, item);
  if (item.type !== 'resource') return item;
  const resource = toSharedResource(server, item.resource);
  return resource === item.resource ? item : { ...item, resource };
}

function toSharedResource(server: string, item: unknown): unknown {
  if (!isObject(item)) return item;
  const { uri } = item;
  const withMeta = withSharedMeta(server, item);
  return typeof uri === 'string' && isAppUri(uri)
    ? { ...withMeta, uri: toSharedUri(server, uri) }
    : withMeta;
}
