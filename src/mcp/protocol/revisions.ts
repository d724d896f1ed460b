// §9, MCP "Versioning": supported revisions and their eras, and known extensions.

import { fail } from '../../errors/gateway-error.ts';
import { type GatewayRequest, getHeader } from '../../http/endpoint/message.ts';
import { isObject, isStringArray, type JsonObject } from '../../platform/json.ts';
import { type JsonRpcMessage, readMeta } from './json-rpc.ts';

/** Sessions that begin with `initialize`, or self-contained requests. */
export type Era = 'session' | 'stateless';

/** Newest first. `0.1.0` is not a revision of MCP; §9 lists it. */
const REVISIONS: Readonly<Record<string, Era>> = {
  '2026-07-28': 'stateless',
  '2025-11-25': 'session',
  '2025-06-18': 'session',
  '2025-03-26': 'session',
  '2024-11-05': 'session',
  '0.1.0': 'session',
};

/** The era of a revision; undefined for an unsupported one. */
export const findEra = (version: string): Era | undefined =>
  Object.hasOwn(REVISIONS, version) ? REVISIONS[version] : undefined;

/** Supported revisions of MCP in both eras, for `server/discover`. */
export const SUPPORTED_VERSIONS: readonly string[] = Object.keys(REVISIONS).filter((version) =>
  /^\d{4}-/.test(version),
);

/** Versions that a session may have, newest first. */
const SESSION_VERSIONS: readonly string[] = Object.keys(REVISIONS).filter(
  (version) => findEra(version) === 'session',
);

const [NEWEST_OF_SESSIONS = ''] = SESSION_VERSIONS;

/** The version in the result of `initialize`: the requested one if supported, else the newest. */
export const negotiateVersion = (asked: string): string =>
  SESSION_VERSIONS.includes(asked) ? asked : NEWEST_OF_SESSIONS;

/** The member of `params._meta` that claims a message's revision. */
export const PROTOCOL_VERSION = 'io.modelcontextprotocol/protocolVersion';

/**
 * MCP 2026-07-28 "Versioning": the body takes precedence. Any version in it means the stateless era; without one the header counts.
 */
export function detectEra(message: JsonRpcMessage, request: GatewayRequest): Era {
  if (PROTOCOL_VERSION in readMeta(message.params)) return 'stateless';
  const version = getHeader(request, 'mcp-protocol-version');
  return version !== undefined && Object.hasOwn(REVISIONS, version)
    ? (REVISIONS[version] ?? 'session')
    : 'session';
}

/** True if the request names a session version, or none. */
export function hasSessionVersion(request: GatewayRequest): boolean {
  const version = getHeader(request, 'mcp-protocol-version');
  return version === undefined || SESSION_VERSIONS.includes(version);
}

/**
 * Requests of a session name a session version, or none.
 *
 * @throws GatewayError `unsupported_protocol_version`.
 */
export function checkVersionHeader(request: GatewayRequest): void {
  if (hasSessionVersion(request)) return;
  fail('unsupported_protocol_version', {
    details: `MCP-Protocol-Version must be one of ${SESSION_VERSIONS.join(', ')}, or 2026-07-28 with the same in params._meta.`,
  });
}

// MCP "Extensions" (SEP-2133): declared by both sides along with their capabilities. Only known extensions are relayed.

/** A call may be answered with a handle for fetching the result later (ext-tasks, 2026-07-28). */
export const TASKS = 'io.modelcontextprotocol/tasks';
/** Tools have pages that hosts show (ext-apps, 2026-01-26). */
export const APPS = 'io.modelcontextprotocol/ui';
/** Instructions for agents, as files among the resources (SEP-2640). */
export const SKILLS = 'io.modelcontextprotocol/skills';

/** Bounds on what a caller can store. */
const MAX_MIME_TYPES = 10;
const MAX_MIME_TYPE_LENGTH = 100;

/** Readers of client settings; undefined for an invalid declaration. */
const CLIENT_SETTINGS: Readonly<Record<string, (settings: unknown) => JsonObject | undefined>> = {
  [TASKS]: (settings) => (isDeclared(settings) ? {} : undefined),
  [APPS](settings) {
    if (!isDeclared(settings)) return undefined;
    const { mimeTypes }: { readonly mimeTypes?: unknown } = settings;
    if (!isStringArray(mimeTypes)) return {};
    const first = mimeTypes.slice(0, MAX_MIME_TYPES);
    return { mimeTypes: first.filter((type) => type.length <= MAX_MIME_TYPE_LENGTH) };
  },
};

/** Reads `extensions` of a client's capabilities, its settings by extension; undefined without a known one. */
export function readClientExtensions(
  declared: unknown,
): Readonly<Record<string, JsonObject>> | undefined {
  if (!isObject(declared)) return undefined;
  const known = Object.entries(CLIENT_SETTINGS).flatMap(([id, read]) => {
    const settings = Object.hasOwn(declared, id) ? read(declared[id]) : undefined;
    return settings === undefined ? [] : [[id, settings] as const];
  });
  return known.length === 0 ? undefined : Object.fromEntries(known);
}

/** An array is also accepted: PHP writes an empty object as `[]`. */
export const isDeclared = (settings: unknown): settings is object =>
  typeof settings === 'object' && settings !== null;
