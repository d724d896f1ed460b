// §18.2: prepares the list of a server: selection, checks, and the names that clients see.

import { hash } from 'node:crypto';
import type { Policies, PolicyItem } from '../mcp/calls/policy.ts';
import { findLockedKind } from '../mcp/catalog/approved-items.ts';
import type { RawItem } from '../mcp/catalog/catalog.ts';
import { type ItemKind, LIST_KINDS, type ListKind } from '../mcp/protocol/list-kinds.ts';
import {
  countKeptCharacters,
  NAME_HASH_CHARACTERS,
  type ServersConfig,
  type ToolSelection,
  type UpstreamConfig,
} from '../mcp/upstream/upstream-config.ts';
import { computeOnce } from '../platform/bounded-map.ts';
import { restoreNumbers, UnclearNumber } from '../platform/exact-json.ts';
import { compileGlob } from '../platform/glob.ts';
import { findWritten, isObject, type JsonObject } from '../platform/json.ts';
import { readExact } from '../platform/noted-json.ts';
import { toSharedUri, withSharedMeta } from './apps/app-tools.ts';
import { findUseProblem, fitItem, listFiles, showName, type WarnOfItem } from './check-item.ts';
import { cleanItem } from './clean-item.ts';
import type { FetchedList } from './fetch-list.ts';
import type { ListGuards } from './list-guards.ts';

/** The list of one server, in the server's order. Each own name occurs once. */
export interface PreparedList {
  readonly entries: readonly Entry[];
  readonly byOwnName: ReadonlyMap<string, Entry>;
  readonly byName: ReadonlyMap<string, Entry>;
  /** Milliseconds for which the list may be served. */
  readonly ttlMs: number;
  /** §24.3: the server's items are hidden until the user has logged in to it. */
  readonly needsLogin: boolean;
}

/** The configuration of a server, and everything else that its prepared lists depend on. */
interface ServerControls {
  readonly config: UpstreamConfig;
  readonly hasConnectTool?: boolean;
  readonly naming: Naming;
  readonly policies: Pick<Policies, 'findHidden'>;
  /** Undefined without guards. */
  readonly listGuards?: ListGuards | undefined;
  readonly warn?: WarnOfItem;
}

/** Each list is prepared only once. */
export function createPrepareList(controls: ServerControls) {
  const selected = selectTools(controls.config.tools);
  return computeOnce((list: FetchedList) => prepare(list, selected, controls));
}

function prepare(
  list: FetchedList,
  selected: SelectedTools,
  controls: ServerControls,
): PreparedList {
  const { kind, items, ttlMs, cut, needsLogin } = list;
  const { config, hasConnectTool, listGuards } = controls;
  const warn = (ownName: string | undefined, problem: string) =>
    controls.warn?.(config.name, kind, ownName, problem);
  const connect = kind === 'tools' && hasConnectTool ? createConnectEntry(controls) : undefined;
  const byOwnName = new Map<string, Entry>();
  const byName = new Map<string, Entry>();
  const judgedList = toJudgedList(list, config, controls.naming);
  if (cut !== undefined) warn(undefined, `is cut: ${cut}`);
  for (const raw of items) {
    const ownName = String(raw[LIST_KINDS[kind].key]);
    if (kind === 'tools' && !selected.has(ownName)) continue;
    const problem =
      ownName === connect?.ownName
        ? HIDDEN_BY_CONNECT
        : findProblem(kind, raw, byOwnName.has(ownName), controls);
    const judged = problem === undefined ? listGuards?.peek(judgedList, raw) : undefined;
    const hidden = judged?.kind === 'hidden' ? judged.reason : problem;
    if (hidden !== undefined) {
      warn(ownName, hidden);
      continue;
    }
    const { leftOut } = fitItem(kind, raw);
    const changed = judged?.kind === 'listed' ? judged.item : undefined;
    const { item: fitting } = fitItem(kind, changed ?? raw);
    const placed = { server: config.name, name: judgedList.join(ownName) };
    const made = createEntry(kind, fitting, placed, selected);
    const written = changed === undefined ? fitting : raw;
    const entry =
      findWritten(written) === undefined ? made : { ...made, exact: readExact(written) };
    const namesake = byName.get(entry.name);
    if (namesake !== undefined) {
      // The item is hidden on the server's own path as well: rules use the names of /mcp, where it has none.
      warn(ownName, `is hidden: ${showName(namesake.ownName)} is called ${entry.name}, too`);
      continue;
    }
    const lookAlike = kind === 'skills' ? undefined : cleanItem(fitting).lookAlike;
    if (lookAlike !== undefined)
      warn(ownName, `has letters that look like others in ${showName(lookAlike)}; it is listed`);
    const more = leftOut.length > MAX_TOLD ? ', ...' : '';
    const told = leftOut.slice(0, MAX_TOLD).join(', ') + more;
    if (leftOut.length > 0) warn(ownName, `is listed without what MCP does not allow: ${told}`);
    byOwnName.set(ownName, entry);
    byName.set(entry.name, entry);
  }
  const entries = [
    ...byOwnName.values(),
    ...(connect !== undefined && needsLogin === 'possible' ? [connect] : []),
  ];
  // A caller who knows the name may call the login tool at any time.
  if (connect !== undefined) {
    byOwnName.set(connect.ownName, connect);
    byName.set(connect.name, connect);
  }
  return { entries, byOwnName, byName, ttlMs, needsLogin: needsLogin !== undefined };
}

/** Maximum number of paths in one warning. */
const MAX_TOLD = 5;

export function toJudgedList(
  { kind, items }: Pick<FetchedList, 'kind' | 'items'>,
  config: UpstreamConfig,
  naming: Naming,
) {
  const { key, ruled } = LIST_KINDS[kind];
  const names =
    ruled === 'resource'
      ? NO_NAMES
      : naming.joinAll(
          config,
          items.map((item) => String(item[key])),
        );
  /** The name that clients of `/mcp` see for the server's own name. */
  const join = (ownName: string): string =>
    ruled === 'resource'
      ? toSharedUri(config.name, ownName)
      : (names.get(ownName) ?? naming.join(config, ownName));
  return { kind, server: config.name, join, items };
}

const NO_NAMES: ReadonlyMap<string, string> = new Map();

function findProblem(
  kind: ListKind,
  raw: RawItem,
  isRepeated: boolean,
  { config, naming, policies }: ServerControls,
): string | undefined {
  const problem = findUseProblem(kind, raw, naming.isStrict);
  if (problem !== undefined) return problem;
  if (isRepeated) return 'is listed twice';
  const locked = findLockedKind(kind);
  return locked && policies.findHidden(config.name, locked, raw);
}

function createEntry(
  kind: ListKind,
  raw: RawItem,
  { server, name }: Pick<Entry, 'server' | 'name'>,
  selected: SelectedTools,
): Entry {
  const { key, ruled } = LIST_KINDS[kind];
  const ownName = String(raw[key]);
  if (kind === 'skills') {
    // A skill is passed on unchanged, since clients compare it with its SKILL.md.
    const meta = isObject(raw._meta) ? raw._meta : {};
    const skill = { ...raw, _meta: { ...meta, [ORIGIN]: server } };
    const files = listFiles(raw, server);
    const shown = { ownName, name: ownName, ownItem: skill, item: skill };
    return { kind: ruled, server, ...shown, annotations: {}, files };
  }
  const { item: clean } = cleanItem(raw);
  const ownItem = kind === 'tools' ? selected.describe(ownName, clean) : clean;
  const item = withSharedMeta(server, ownItem);
  return {
    kind: ruled,
    server,
    ownName,
    name,
    ownItem,
    item: name === ownName ? item : { ...item, [key]: name },
    annotations: isObject(raw.annotations) ? raw.annotations : {},
  };
}

/** SEP-2640: lets clients tell apart the skills of several servers behind one path. */
const ORIGIN = 'postern/server';

// §24.3: `<server>__connect`, the tool that logs a user in to a server whose own tools are hidden until then. The name is reserved:
// it can still be called afterwards, and a tool of the server with this name is hidden.

/** The tool's own name, as on `/mcp/<server>`. */
export const CONNECT = 'connect';

/** The reason why a server's own tool is hidden: continues a sentence that begins with its name. */
const HIDDEN_BY_CONNECT =
  'is hidden: the name is reserved for the tool by which users log in to the server';

function createConnectEntry({ config: { name: server, prefix }, naming }: ServerControls): Entry {
  const ownItem = {
    name: CONNECT,
    title: `Connect ${server}`,
    description: `Connects the user's account at ${server}: they log in there, in a browser. ${server} shows its tools afterwards. Call this when the user needs something from ${server}.`,
    inputSchema: { type: 'object', properties: {}, additionalProperties: false },
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true },
  };
  const name = naming.join({ prefix }, CONNECT);
  return {
    kind: 'tool',
    server,
    ownName: CONNECT,
    name,
    ownItem,
    item: { ...ownItem, name },
    annotations: {},
    namesBegin: naming.findStart({ prefix }),
  };
}

// §18.1: selects a server's tools, and replaces their descriptions.

type SelectedTools = ReturnType<typeof selectTools>;

export function selectTools({ include, exclude, describe }: ToolSelection) {
  const included = include.map(compileGlob);
  const excluded = exclude.map(compileGlob);
  return {
    has: (ownName: string): boolean =>
      included.some((fits) => fits(ownName)) && !excluded.some((fits) => fits(ownName)),
    describe: (ownName: string, item: RawItem): RawItem =>
      Object.hasOwn(describe, ownName) ? { ...item, description: describe[ownName] } : item,
  };
}

/** An entry in a list of a server or of the built-in catalogue. */
export interface Entry {
  readonly kind: ItemKind;
  /** Name of the server; `''` for the built-in catalogue. */
  readonly server: string;
  /** The server's own name, URI or template. */
  readonly ownName: string;
  /** The name that clients of `/mcp` see, and that rules use on any path. */
  readonly name: string;
  /** The item that clients of `/mcp/<server>` see. */
  readonly ownItem: RawItem;
  /** The item that clients of `/mcp` see. */
  readonly item: RawItem;
  /** The item as the server wrote it, including its numbers; undefined if JavaScript preserves all of them. */
  readonly exact?: JsonObject;
  /** The server's own claims about the item. */
  readonly annotations: JsonObject;
  /** The files of a skill, for policies to judge: only a caller who may read all of them sees the skill. */
  readonly files?: readonly PolicyItem[];
  /** For the server's login tool: the prefix of all names of the server, by which policies judge the tool. */
  readonly namesBegin?: string;
}

export const BUILT_IN = '';

/** The item of an entry in the form that is shown, with numbers as its server wrote them. */
export function showNumbers({ exact }: Entry, item: RawItem): RawItem {
  try {
    const shown = exact && restoreNumbers(item, exact, new Map());
    return isObject(shown) ? shown : item;
  } catch (error) {
    // A guard has shortened an array. A single entry must not make clients reject the whole list.
    if (error instanceof UnclearNumber) return item;
    throw error;
  }
}

// §18.2: the names of items that clients see, and the servers that a name can belong to.

const STRICT_NAME = /^[a-zA-Z0-9_-]*$/;
const NOT_STRICT = /[^a-zA-Z0-9_-]/gu;
/** The owners of a name that no server can have. */
const NOBODY: readonly string[] = [];

export type Naming = ReturnType<typeof createNaming>;

/** The part of the configuration file that names depend on. */
type NamingConfig = Pick<ServersConfig, 'servers' | 'separator' | 'maxNameLength' | 'names'>;

type Prefixed = Pick<UpstreamConfig, 'prefix'>;

export function createNaming({ servers, separator, maxNameLength, names }: NamingConfig) {
  const isStrict = names === 'strict';
  /** The number of characters kept of a longer name, before `_` and the hash. */
  const keptCharacters = countKeptCharacters(maxNameLength);
  const cutNames = new RegExp(`^.{${keptCharacters}}_[0-9a-f]{${NAME_HASH_CHARACTERS}}$`, 'su');
  const toStart = (prefix: string) => (prefix === '' ? '' : prefix + separator);
  // A truncated name keeps at most this much of the prefix.
  const toMark = (prefix: string) => toStart(prefix).slice(0, keptCharacters);
  const marks = new Map<string, string[]>();
  for (const { prefix, name } of servers) {
    const mark = toMark(prefix);
    marks.set(mark, [...(marks.get(mark) ?? []), name]);
  }
  const longestFirst = [...marks].sort(([one], [other]) => other.length - one.length);

  function findOwners(name: string): readonly string[] {
    if (isStrict && !STRICT_NAME.test(name)) return NOBODY;
    for (const [mark, owners] of longestFirst) if (name.startsWith(mark)) return owners;
    return NOBODY;
  }

  const clean = (name: string) => (isStrict ? name.replace(NOT_STRICT, '_') : name);

  function addHash(name: string): string {
    const kept = [...name].slice(0, keptCharacters).join('');
    return `${clean(kept)}_${hash('sha256', name, 'hex').slice(0, NAME_HASH_CHARACTERS)}`;
  }

  /** To stay unique, a name that is too long ends with digits of its SHA-256. */
  function join({ prefix }: Prefixed, ownName: string): string {
    const name = toStart(prefix) + ownName;
    return [...name].length <= maxNameLength ? clean(name) : addHash(name);
  }

  function joinAll(server: Prefixed, ownNames: readonly string[]): ReadonlyMap<string, string> {
    const isKept = (ownName: string) => !isStrict || STRICT_NAME.test(ownName);
    const kept = ownNames
      .filter(isKept)
      .map((ownName) => [ownName, join(server, ownName)] as const);
    const joined = new Map(kept);
    const taken = new Set(joined.values());
    for (const ownName of ownNames) {
      if (joined.has(ownName)) continue;
      const name = join(server, ownName);
      joined.set(ownName, taken.has(name) ? addHash(toStart(server.prefix) + ownName) : name);
      taken.add(name);
    }
    return joined;
  }

  return {
    /** True if clients see names that differ from the servers' own. */
    isStrict,
    /** The name that clients of `/mcp` see for the server's own name. */
    join,
    /** Like `join`, for all names of a list: if strict names collide, all but one end in a hash. */
    joinAll,
    /** The beginning of all of the server's names. */
    findStart: ({ prefix }: Prefixed) => toMark(prefix),
    /** The beginnings of the servers' names; `''` for a server without a prefix. */
    listStarts: () => [...marks.keys()],
    /**
     * The servers that the name can belong to, in order: if it begins with a prefix and the separator, only those with the
     * longest such prefix; otherwise those without a prefix.
     */
    findOwners,
    /** True if the name can only belong to a server with a prefix. */
    hasPrefix(name: string): boolean {
      const owners = findOwners(name);
      return owners !== NOBODY && owners !== marks.get('');
    },
    /**
     * The server's own name for a name that clients see; undefined if that name may have been truncated or made strict, so that the
     * own name cannot be determined.
     */
    toOwnName({ prefix }: Prefixed, name: string): string | undefined {
      const ownName = name.slice(toStart(prefix).length);
      const isChanged = cutNames.test(name) || (isStrict && ownName.includes('_'));
      return isChanged ? undefined : ownName;
    },
  };
}
