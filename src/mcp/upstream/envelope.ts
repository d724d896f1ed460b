// The gateway's additions to a request: progress token, trace, and in 2026-07-28 the request's own metadata, also in headers.

import { RawJson } from '../../platform/exact-json.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { PACKAGE_NAME, PACKAGE_VERSION } from '../../platform/own-files.ts';
import type { ClientCapabilities } from '../catalog/client-requests.ts';
import { isOfOneHop } from '../protocol/json-rpc.ts';
import { LIST_KINDS, LIST_NAMES, type ListKind, type ListName } from '../protocol/list-kinds.ts';
import { APPS, isDeclared, SKILLS, TASKS } from '../protocol/revisions.ts';
import type { UpstreamDescription, UpstreamRequest } from './upstream.ts';

/** The newest revision of each era that is spoken to servers. */
const STATELESS_VERSION = '2026-07-28';
const SESSION_VERSION = '2025-11-25';

/** The versions that a server may answer `initialize` with. */
const SESSION_VERSIONS: readonly unknown[] = [
  SESSION_VERSION,
  '2025-06-18',
  '2025-03-26',
  '2024-11-05',
];

const isSessionVersion = (version: unknown): version is string =>
  SESSION_VERSIONS.includes(version);

const CLIENT_INFO = { name: PACKAGE_NAME, version: PACKAGE_VERSION };

/** As `initialize` and `_meta` declare them. `passed` are the extensions whose messages pass through the gateway in that era. */
function declareCapabilities(
  { elicitation, elicitationUrl, sampling, samplingTools, roots, extensions }: ClientCapabilities,
  passed: readonly string[] = SESSION_EXTENSIONS,
): JsonObject {
  const declared = extensions && Object.entries(extensions).filter(([id]) => passed.includes(id));
  return {
    // An empty object means forms only; servers before 2025-11-25 know nothing else.
    ...(elicitationUrl && { elicitation: { ...(elicitation && { form: {} }), url: {} } }),
    ...(elicitation && !elicitationUrl && { elicitation: {} }),
    ...(sampling && { sampling: samplingTools ? { tools: {} } : {} }),
    ...(roots && { roots: {} }),
    ...(declared && declared.length > 0 && { extensions: Object.fromEntries(declared) }),
  };
}

const SESSION_EXTENSIONS = [APPS];
const STATELESS_EXTENSIONS = [APPS, TASKS];

/** The part of a request that goes into its params. */
type Enveloped = Pick<UpstreamRequest, 'params' | 'trace' | 'logLevel' | 'onProgress'>;

/** The params of a request of the session era. */
export function toSessionParams(request: Enveloped, token: number): JsonObject {
  const { trace, onProgress } = request;
  // Nothing to add, as for nearly all requests.
  if (
    request.params._meta === undefined &&
    trace.traceparent === undefined &&
    onProgress === undefined
  )
    return request.params;
  const { _meta: meta, ...params } = request.params;
  return { ...params, _meta: { ...selectOwnMeta(meta), ...describeCall(request, token) } };
}

/** The params of a request of the stateless era, each of which carries everything that the server needs to know. */
export function toStatelessParams(
  request: Enveloped,
  token: number,
  capabilities: ClientCapabilities,
): JsonObject {
  const { logLevel, params } = request;
  const added = describeCall(request, token);
  const declared = declareCapabilities(capabilities, STATELESS_EXTENSIONS);
  const isBare = params._meta === undefined && added === undefined && logLevel === undefined;
  // Already serialized, as for nearly all requests, and placed first, so that all have one shape (docs/decisions/0024).
  if (isBare && Object.keys(declared).length === 0) return { _meta: NOTHING_DECLARED, ...params };
  const meta = {
    ...selectOwnMeta(params._meta),
    ...added,
    ...requireMeta(declared),
    ...(logLevel !== undefined && { 'io.modelcontextprotocol/logLevel': logLevel }),
  };
  return { ...params, _meta: meta };
}

const requireMeta = (declared: JsonObject): JsonObject => ({
  'io.modelcontextprotocol/protocolVersion': STATELESS_VERSION,
  'io.modelcontextprotocol/clientCapabilities': declared,
  'io.modelcontextprotocol/clientInfo': CLIENT_INFO,
});

const NOTHING_DECLARED = new RawJson(JSON.stringify(requireMeta({})));

/** The client's `_meta` without the members that belong to its own hop. */
const selectOwnMeta = (meta: unknown): JsonObject =>
  isObject(meta)
    ? Object.fromEntries(Object.entries(meta).filter(([key]) => !isOfOneHop(key)))
    : {};

function describeCall({ trace, onProgress }: Enveloped, token: number): JsonObject | undefined {
  const isTraced = trace.traceparent !== undefined;
  if (!isTraced && onProgress === undefined) return undefined;
  return { ...trace, ...(onProgress !== undefined && { progressToken: token }) };
}

// §18.6: the headers of a request: those from the configuration and the credentials, and those that MCP requires. No
// header of the client's request is copied; its message gives the trace, the item's name and mirrored arguments.

/** Headers of a connection, or set by the transport (RFC 9110 §7.6.1). */
const OWN_TO_TRANSPORT = new Set([
  'accept',
  'connection',
  'content-length',
  'content-type',
  'host',
  'keep-alive',
  'mcp-protocol-version',
  'mcp-session-id',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Params of `initialize`. */
export const toInitializeParams = (capabilities: ClientCapabilities): JsonObject => ({
  protocolVersion: SESSION_VERSION,
  capabilities: declareCapabilities(capabilities),
  clientInfo: CLIENT_INFO,
});

/** Alternating names and values, as they are sent. */
export type RequestHeaders = readonly string[];

export const toRequestHeaders = (headers: Readonly<Record<string, string>>): RequestHeaders =>
  Object.entries(headers)
    .filter(([name]) => !OWN_TO_TRANSPORT.has(name.toLowerCase()))
    .flat();

/** MCP 2026-07-28 "Request Metadata". */
export function describeInHeaders(request: UpstreamRequest): RequestHeaders {
  const { method, name, mirrored } = request;
  const headers = ['mcp-protocol-version', STATELESS_VERSION, 'mcp-method', method];
  if (name !== undefined) headers.push('mcp-name', encodeHeader(name));
  for (const [header, value] of mirrored === undefined ? [] : Object.entries(mirrored)) {
    headers.push(header, encodeHeader(value));
  }
  return headers;
}

/** W3C Trace Context §3. */
export function traceInHeaders({ trace }: UpstreamRequest): RequestHeaders {
  const { traceparent, tracestate } = trace;
  if (traceparent === undefined) return NO_HEADERS;
  return tracestate === undefined
    ? ['traceparent', traceparent]
    : ['traceparent', traceparent, 'tracestate', tracestate];
}

const NO_HEADERS: RequestHeaders = [];

/** A value that a header cannot carry, or whose ends would be trimmed, is sent as `=?base64?…?=`. */
export const encodeHeader = (value: string): string =>
  /^(?!=\?base64\?)(?:[\x21-\x7E](?:[\t\x20-\x7E]*[\x21-\x7E])?)?$/.test(value)
    ? value
    : `=?base64?${Buffer.from(value).toString('base64')}?=`;

// A server's description of itself, read without trust.

/** The result of `initialize`; undefined if its version is not supported here. */
export function readInitializeResult(result: JsonObject): UpstreamDescription | undefined {
  const { protocolVersion, capabilities, serverInfo, instructions } = result;
  if (!isSessionVersion(protocolVersion)) return undefined;
  return describe({ era: 'session', protocolVersion }, capabilities, serverInfo, instructions);
}

/** The result of `server/discover`; undefined if 2026-07-28 is not among its versions. */
export function readDiscoverResult(result: JsonObject): UpstreamDescription | undefined {
  const { supportedVersions, capabilities, instructions, _meta: meta } = result;
  const speaks = Array.isArray(supportedVersions) && supportedVersions.includes(STATELESS_VERSION);
  if (!speaks) return undefined;
  const serverInfo = isObject(meta) ? meta['io.modelcontextprotocol/serverInfo'] : undefined;
  return describe(
    { era: 'stateless', protocolVersion: STATELESS_VERSION },
    capabilities,
    serverInfo,
    instructions,
  );
}

const describe = (
  spoken: Pick<UpstreamDescription, 'era' | 'protocolVersion'>,
  capabilities: unknown,
  serverInfo: unknown,
  instructions: unknown,
): UpstreamDescription => ({
  ...spoken,
  capabilities: isObject(capabilities) ? capabilities : {},
  serverInfo: isObject(serverInfo) ? serverInfo : {},
  instructions: typeof instructions === 'string' ? instructions : undefined,
});

/** Lists whose changes the server announces; none if that is unknown. */
export const findListsThatChange = (
  description: UpstreamDescription | undefined,
): readonly ListName[] =>
  LIST_NAMES.filter((list) => Object(description?.capabilities[list]).listChanged === true);

/** True if the server has the list at all. */
export const offersList = (capabilities: JsonObject, kind: ListKind): boolean =>
  kind === 'skills'
    ? findSkillSettings(capabilities) !== undefined
    : isObject(capabilities[LIST_KINDS[kind].list]);

/** SEP-2640: undefined if it has no skills. */
function findSkillSettings({ extensions }: JsonObject): object | undefined {
  const settings = isObject(extensions) ? extensions[SKILLS] : undefined;
  return isDeclared(settings) ? settings : undefined;
}

/** SEP-2640: whether it lists the contents of directories. */
export function canReadDirectories(capabilities: JsonObject): boolean {
  const settings = findSkillSettings(capabilities);
  return isObject(settings) && settings.directoryRead === true;
}

/** MCP "Resources": whether the server announces changes to subscribed resources. */
export const canSubscribe = ({ resources }: JsonObject): boolean =>
  isObject(resources) && resources.subscribe === true;

/**
 * MCP 2026-07-28 "Subscriptions": the params of `subscriptions/listen`, for everything that the server can announce; undefined if
 * there is nothing.
 */
export function toListenParams(
  description: UpstreamDescription | undefined,
  uris: readonly string[],
): JsonObject | undefined {
  const hasResources = uris.length > 0 && canSubscribe(description?.capabilities ?? {});
  const notifications = {
    ...Object.fromEntries(
      findListsThatChange(description).map((list) => [`${list}ListChanged`, true]),
    ),
    ...(hasResources && { resourceSubscriptions: uris }),
  };
  return Object.keys(notifications).length > 0 ? { notifications } : undefined;
}

// §18.3: the protocol era that the configuration file requires of a server (`era`) but that it does not support.

export const NOT_STATELESS =
  'it does not speak MCP 2026-07-28, which "era": "stateless" demands: remove "era" from its entry in the configuration file';

export const NO_SESSIONS =
  'it refuses to begin a session (initialize), which "era": "session" demands: remove "era" from its entry in the configuration file';
