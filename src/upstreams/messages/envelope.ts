// What the gateway adds to a request: progress token, trace, and in 2026-07-28 what each request says of itself.

import type { ClientCapabilities } from '../../mcp/catalog/client-requests.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { PACKAGE_NAME, PACKAGE_VERSION } from '../../platform/version.ts';
import { isOfOneHop } from '../../protocol/meta.ts';
import type { UpstreamRequest } from '../upstream.ts';

/** The newest revision of each era that is spoken to servers. */
export const STATELESS_VERSION = '2026-07-28';
export const SESSION_VERSION = '2025-11-25';

/** Those that a server may answer to `initialize`. */
const SESSION_VERSIONS: readonly unknown[] = [
  SESSION_VERSION,
  '2025-06-18',
  '2025-03-26',
  '2024-11-05',
];

export const isSessionVersion = (version: unknown): version is string =>
  SESSION_VERSIONS.includes(version);

export const CLIENT_INFO = { name: PACKAGE_NAME, version: PACKAGE_VERSION };

/** As `initialize` and `_meta` declare them. */
export const declareCapabilities = (capabilities: ClientCapabilities): JsonObject => ({
  ...declareElicitation(capabilities),
  ...(capabilities.sampling && { sampling: {} }),
  ...(capabilities.roots && { roots: {} }),
});

/** An empty object means forms alone; servers before 2025-11-25 know nothing else. */
function declareElicitation({ elicitation, elicitationUrl }: ClientCapabilities): JsonObject {
  if (!elicitationUrl) return elicitation ? { elicitation: {} } : {};
  return { elicitation: elicitation ? { form: {}, url: {} } : { url: {} } };
}

/** The params of a request of the session era. */
export function toSessionParams(request: UpstreamRequest, token: number): JsonObject {
  const added = describeCall(request, token);
  const { _meta: meta, ...params } = request.params;
  if (meta === undefined && added === undefined) return request.params;
  return { ...params, _meta: { ...selectOwnMeta(meta), ...added } };
}

/** The params of a request of the stateless era: each brings all that the server needs to know. */
export function toStatelessParams(
  request: UpstreamRequest,
  token: number,
  capabilities: ClientCapabilities,
): JsonObject {
  const { logLevel, params } = request;
  const required = {
    'io.modelcontextprotocol/protocolVersion': STATELESS_VERSION,
    'io.modelcontextprotocol/clientCapabilities': declareCapabilities(capabilities),
    'io.modelcontextprotocol/clientInfo': CLIENT_INFO,
  };
  const added = describeCall(request, token);
  // As nearly all are: nothing has to be copied.
  if (params._meta === undefined && added === undefined && logLevel === undefined) {
    return { ...params, _meta: required };
  }
  const meta = {
    ...selectOwnMeta(params._meta),
    ...added,
    ...required,
    ...(logLevel !== undefined && { 'io.modelcontextprotocol/logLevel': logLevel }),
  };
  return { ...params, _meta: meta };
}

/** `_meta` of the client without what belongs to its own hop. */
const selectOwnMeta = (meta: unknown): JsonObject =>
  isObject(meta)
    ? Object.fromEntries(Object.entries(meta).filter(([key]) => !isOfOneHop(key)))
    : {};

function describeCall(
  { trace, onProgress }: UpstreamRequest,
  token: number,
): JsonObject | undefined {
  const isTraced = trace.traceparent !== undefined;
  if (!isTraced && onProgress === undefined) return undefined;
  return { ...trace, ...(onProgress !== undefined && { progressToken: token }) };
}
