// An app's way to its server: at the server's own path, where everything has the names that the app knows, and nothing is
// another server's. Rules and guards hold there as everywhere.
import { isObject, type JsonObject, readText } from '../json.ts';
import type { McpClient } from '../mcp-client.ts';
import { CallError } from '../messages.ts';

/** The name that the gateway put into the URI; undefined where it has none. */
export const readServerName = (uri: string): string | undefined =>
  /^ui:\/\/([a-z][a-z\d-]*)\//.exec(uri)?.[1];

export interface AppServer {
  readonly client: McpClient;
  readonly tools: readonly JsonObject[];
  /** A result of the tool at the address that all servers share, as the server wrote it. */
  toOwn(result: JsonObject): JsonObject;
}

/** Undefined where the URI names no server: it is the gateway's own. @throws CallError */
export async function openAppServer(
  uri: string,
  openClient: (server: string) => McpClient,
): Promise<AppServer | undefined> {
  const server = readServerName(uri);
  if (server === undefined) return undefined;
  const client = openClient(server);
  try {
    await client.connect();
  } catch (error) {
    // A session that has ended is no reason to give an app the tools of all servers.
    if (error instanceof CallError && error.reason === 'not_found') return undefined;
    throw error;
  }
  return {
    client,
    tools: await client.list('tools/list', 'tools'),
    toOwn: (result) => toOwnUris(result, `ui://${server}/`),
  };
}

function toOwnUris(result: JsonObject, shared: string): JsonObject {
  if (!Array.isArray(result.content)) return result;
  const strip = (item: JsonObject): JsonObject => {
    const uri = readText(item, 'uri');
    return uri?.startsWith(shared) ? { ...item, uri: `ui://${uri.slice(shared.length)}` } : item;
  };
  const content = result.content.map((item: unknown) => {
    if (!isObject(item)) return item;
    return isObject(item.resource) ? { ...item, resource: strip(item.resource) } : strip(item);
  });
  return { ...result, content };
}

/** The longest name in which that of the whole address ends, if there is one. */
export const findOwnTool = (
  tools: readonly JsonObject[],
  sharedName: string,
): JsonObject | undefined =>
  tools
    .filter(({ name }) => typeof name === 'string' && sharedName.endsWith(name))
    .sort((one, other) => String(other.name).length - String(one.name).length)[0];
