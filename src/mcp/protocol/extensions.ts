// MCP "Extensions" (SEP-2133): what both sides declare of them, beside their capabilities. A row for each that the gateway knows;
// it passes on what it knows, and nothing else.
import { isObject, isStringArray, type JsonObject } from '../../platform/json.ts';

/** A call may be answered by a handle, and its result fetched later (ext-tasks, 2026-07-28). */
export const TASKS = 'io.modelcontextprotocol/tasks';
/** Tools have pages that hosts show (ext-apps, 2026-01-26). */
export const APPS = 'io.modelcontextprotocol/ui';
/** Instructions for agents, as files among the resources (SEP-2640). */
export const SKILLS = 'io.modelcontextprotocol/skills';

/** What a client declares: the settings of each extension that matters to whom it calls, by its identifier. */
export type ClientExtensions = Readonly<Record<string, JsonObject>>;

/** A caller must not fill the store with what it likes. */
const MAX_MIME_TYPES = 10;
const MAX_MIME_TYPE_LENGTH = 100;

/** How the settings of each are read that a client may declare; undefined for what does not count as declared. */
const CLIENT_SETTINGS: Readonly<Record<string, (settings: unknown) => JsonObject | undefined>> = {
  [TASKS]: (settings) => (isDeclared(settings) ? {} : undefined),
  [APPS]: readAppsSettings,
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
const isDeclared = (settings: unknown): settings is object =>
  typeof settings === 'object' && settings !== null;

function readAppsSettings(settings: unknown): JsonObject | undefined {
  if (!isDeclared(settings)) return undefined;
  const mimeTypes = 'mimeTypes' in settings ? settings.mimeTypes : undefined;
  return isStringArray(mimeTypes)
    ? {
        mimeTypes: mimeTypes
          .slice(0, MAX_MIME_TYPES)
          .filter((type) => type.length <= MAX_MIME_TYPE_LENGTH),
      }
    : {};
}
