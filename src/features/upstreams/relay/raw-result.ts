// §18.3: results are passed on as they came, without what belongs to the way between the gateway and the server.
import { isObject, type JsonObject } from '../../../core/json.ts';
import type { Context, RawResult } from '../../mcp/catalog/catalog.ts';
import type { CacheHint } from '../../mcp/catalog/content.ts';
import type { RelayedRequest } from './relayed-call.ts';

const SERVER_INFO = 'io.modelcontextprotocol/serverInfo';

export function toRawResult(
  method: RelayedRequest['method'],
  result: JsonObject,
  { user }: Pick<Context, 'user'>,
): RawResult {
  // The session era has no result types: there nothing is the transport's own.
  if (result.resultType === undefined && isRaw(result)) return result;
  const { resultType, ttlMs, cacheScope, cache: _, _meta: meta, ...members } = result;
  if (resultType === undefined) return { ...members, ...(meta !== undefined && { _meta: meta }) };
  const cache = method === 'resources/read' ? readCacheHint(ttlMs, cacheScope, user) : undefined;
  return {
    ...members,
    ...toMetaMember(meta),
    ...(cache && { cache }),
  };
}

/** `cache` is the gateway's own word. */
const isRaw = (result: JsonObject): result is RawResult => !Object.hasOwn(result, 'cache');

function toMetaMember(meta: unknown): JsonObject {
  if (!isObject(meta)) return meta === undefined ? {} : { _meta: meta };
  const { [SERVER_INFO]: _, ...rest } = meta;
  return Object.keys(rest).length === 0 ? {} : { _meta: rest };
}

/** Behind a login nothing is public: rules may show one user what another does not see. */
function readCacheHint(
  ttlMs: unknown,
  scope: unknown,
  user: Context['user'],
): CacheHint | undefined {
  if (typeof ttlMs !== 'number' || !(ttlMs >= 0)) return undefined;
  return { ttlMs, scope: scope === 'public' && user === undefined ? 'public' : 'private' };
}
