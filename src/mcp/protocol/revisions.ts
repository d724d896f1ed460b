// §9, MCP "Versioning": the revisions that are spoken, and in which era each is; and the extensions that are known.

import { fail } from '../../errors/gateway-error.ts';
import { type GatewayRequest, getHeader } from '../../http/endpoint/message.ts';
import { isObject, isStringArray, type JsonObject } from '../../platform/json.ts';
import { type JsonRpcMessage, readMeta } from './json-rpc.ts';

/** Sessions that begin with `initialize`, or requests that each bring all that is needed. */
export type Era = 'session' | 'stateless';

/** Newest first. `0.1.0` is no revision of MCP; §9 lists it. */
const REVISIONS: Readonly<Record<string, Era>> = {
  '2026-07-28': 'stateless',
  '2025-11-25': 'session',
  '2025-06-18': 'session',
  '2025-03-26': 'session',
  '2024-11-05': 'session',
  '0.1.0': 'session',
};

/** The era of a revision; undefined for one that is not spoken. */
export const findEra = (version: string): Era | undefined =>
  Object.hasOwn(REVISIONS, version) ? REVISIONS[version] : undefined;

/** Revisions of MCP that are spoken here in any era: what `server/discover` says. */
export const SUPPORTED_VERSIONS: readonly string[] = Object.keys(REVISIONS).filter((version) =>
  /^\d{4}-/.test(version),
);

/** Versions that a session may have, newest first. */
const SESSION_VERSIONS: readonly string[] = Object.keys(REVISIONS).filter(
  (version) => findEra(version) === 'session',
);

const [NEWEST_OF_SESSIONS = ''] = SESSION_VERSIONS;

/** The version that `initialize` answers: the caller's where it is known, else the newest. */
export const negotiateVersion = (asked: string): string =>
  SESSION_VERSIONS.includes(asked) ? asked : NEWEST_OF_SESSIONS;

/** The member of `params._meta` by which a message claims its revision. */
export const PROTOCOL_VERSION = 'io.modelcontextprotocol/protocolVersion';

/**
 * MCP 2026-07-28 "Versioning": the body decides. A claim, of whatever version, is the stateless era's;
 * without one the header says.
 */
export function detectEra(message: JsonRpcMessage, request: GatewayRequest): Era {
  if (message.kind !== 'response' && PROTOCOL_VERSION in readMeta(message.params))
    return 'stateless';
  const version = getHeader(request, 'mcp-protocol-version');
  return (version === undefined ? undefined : findEra(version)) ?? 'session';
}

/** True if a request names a version that a session may have, or none. */
export function hasSessionVersion(request: GatewayRequest): boolean {
  const version = getHeader(request, 'mcp-protocol-version');
  return version === undefined || SESSION_VERSIONS.includes(version);
}

/**
 * A request within a session names the version of the session, or none.
 *
 * @throws GatewayError `unsupported_protocol_version`.
 */
export function checkVersionHeader(request: GatewayRequest): void {
  if (hasSessionVersion(request)) return;
  fail('unsupported_protocol_version', {
    details: `MCP-Protocol-Version must be one of ${SESSION_VERSIONS.join(', ')}, or 2026-07-28 with the same in params._meta.`,
  });
}

// MCP "Extensions" (SEP-2133): what both sides declare of them, beside their capabilities. A row for each that the gateway knows;
// it passes on what it knows, and nothing else.

/** A call may be answered by a handle, and its result fetched later (ext-tasks, 2026-07-28). */
export const TASKS = 'io.modelcontextprotocol/tasks';
/** Tools have pages that hosts show (ext-apps, 2026-01-26). */
export const APPS = 'io.modelcontextprotocol/ui';
/** Instructions for agents, as files among the resources (SEP-2640). */
export const SKILLS = 'io.modelcontextprotocol/skills';

/** A client's declaration: the settings of each extension that matters to whom it calls, by its identifier. */
export type ClientExtensions = Readonly<Record<string, JsonObject>>;

/** A caller must not fill the store with what it likes. */
const MAX_MIME_TYPES = 10;
const MAX_MIME_TYPE_LENGTH = 100;

/** Reads the settings of each that a client may declare; undefined for what does not count as declared. */
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

/** Reads `extensions` of a client's capabilities; undefined where it declares none that is known here. */
export function readClientExtensions(declared: unknown): ClientExtensions | undefined {
  if (!isObject(declared)) return undefined;
  const known = Object.entries(CLIENT_SETTINGS).flatMap(([id, read]) => {
    const settings = Object.hasOwn(declared, id) ? read(declared[id]) : undefined;
    return settings === undefined ? [] : [[id, settings] as const];
  });
  return known.length === 0 ? undefined : Object.fromEntries(known);
}

/** An array counts too: PHP writes an empty object as `[]`. */
export const isDeclared = (settings: unknown): settings is object =>
  typeof settings === 'object' && settings !== null;
