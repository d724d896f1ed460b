// The configuration file, as long as it is the one that is served.

import type { Guards } from '../mcp/calls/guards.ts';
import type { Policies } from '../mcp/calls/policy.ts';
import {
  type ApprovableServer,
  LOCKED_ITEMS,
  type Lock,
  type LockedList,
  NO_LOCK,
} from '../mcp/catalog/approved-items.ts';
import type { Page, RawItem } from '../mcp/catalog/catalog.ts';
import type { CheckSchema } from '../mcp/catalog/foreign-schema.ts';
import { decodeResource } from '../mcp/catalog/resource-text.ts';
import { LIST_KINDS, type ListKind } from '../mcp/protocol/list-kinds.ts';
import { GATEWAY_CALLER } from '../mcp/upstream/upstream.ts';
import type { ServersConfig, UpstreamConfig } from '../mcp/upstream/upstream-config.ts';
import { createSizedMap } from '../platform/bounded-map.ts';
import { computeOnce } from '../platform/compute-once.ts';
import { writeExactJson } from '../platform/exact-json.ts';
import { canBegin, compileGlob } from '../platform/glob.ts';
import type { Log } from '../platform/log.ts';
import { CAPACITY } from '../platform/memory/capacity.ts';
import { type BuiltIn, guardBuiltIn } from './built-in.ts';
import { createWarnOfItem, findItemProblem, isNameAllowed, type WarnOfItem } from './check-item.ts';
import { readInstructions, readServer } from './fetch-list.ts';
import {
  createJoinLists,
  indexEntries,
  isSameList,
  type JoinedList,
  type JoinedPart,
  type JoinLists,
} from './join-lists.ts';
import type { ListGuards } from './list-guards.ts';
import {
  createNaming,
  createPrepareList,
  type Entry,
  type Naming,
  type PrepareList,
  selectTools,
  showNumbers,
} from './prepare-list.ts';
import type { Server } from './server.ts';
import type { ViewConfig, ViewsConfig } from './view-shape.ts';

/** The part of the configuration file that catalogues are made of. */
export interface CatalogFile extends ServersConfig, ViewsConfig {
  /** As far as their patterns are looked at here. */
  readonly rules: readonly {
    readonly may: readonly string[];
    /** Set where somebody is asked before a call. */
    readonly ask?: string | undefined;
    readonly place: string;
  }[];
  /** As far as they are about servers. */
  readonly guards?: readonly {
    readonly name: string;
    /** Names of servers; undefined for all, and the built-in catalogue. */
    readonly servers: readonly string[] | undefined;
    /** Globs over names of tools as at `/mcp`; undefined for all. */
    readonly tools: readonly string[] | undefined;
    /** `server` is that of a guard of the kind `mcp`. */
    readonly use: { readonly kind: string; readonly server?: string | undefined };
  }[];
}

/** All that catalogues are made by, until the configuration is read anew. */
export interface CatalogSetup {
  readonly file: CatalogFile;
  /** Undefined where there is none: everything is approved. */
  readonly lock?: Lock | undefined;
  /** Decide who may see and use what. */
  readonly policies: Policies;
  /** Look at what goes through; undefined without guards. */
  readonly guards: Guards | undefined;
  /** Checks what a guard has changed against a server's schema; undefined without guards. */
  readonly checkSchema: CheckSchema | undefined;
}

/** All that follows from one setup. Nothing of it changes: the next setup makes another one. */
export interface Plan extends CatalogSetup {
  /** Undefined where the file says `"builtIn": false`. */
  readonly builtIn: BuiltIn | undefined;
  /** In the file's order, with those that are guards. */
  readonly opened: readonly PlannedGuardServer[];
  /** In the file's order. */
  readonly servers: ReadonlyMap<string, PlannedServer>;
  /** In the file's order. */
  readonly views: ReadonlyMap<string, PlannedView>;
  /** Those that are guards (§26.2): no client sees them, and no guard looks at them. */
  readonly guardServers: ReadonlyMap<string, PlannedGuardServer>;
  readonly naming: Naming;
  /** Undefined without guards. */
  readonly listGuards: ListGuards | undefined;
  readonly joinLists: JoinLists;
  readonly writePage: WritePage;
  /** For entries of lists. */
  readonly warn: WarnOfItem;
  /** For results. */
  readonly warnOfResult: WarnOfItem;
}

interface PlannedGuardServer {
  readonly config: UpstreamConfig;
  readonly server: Server;
}

export interface PlannedServer extends PlannedGuardServer {
  readonly prepareList: PrepareList;
  /**
   * True if the server, which has not said what it has, could have an item of this own name that clients may see: one that is hidden
   * while the server is there is unknown while it is not.
   */
  mayHave(kind: ListKind, ownName: string): boolean;
  readonly approvable: ApprovableServer;
}

/** Lists are prepared anew with each setup, and what is hidden is said again. `takeServer` opens those that are not open yet. */
export function createPlan(
  log: Log,
  setup: CatalogSetup,
  builtIn: BuiltIn,
  listGuards: ListGuards | undefined,
  takeServer: (config: UpstreamConfig) => Server,
): Plan {
  const { file, lock = NO_LOCK, policies } = setup;
  const naming = createNaming(file);
  const warn = createWarnOfItem(log, 'more of what it lists is hidden');
  const areGuards = listGuardServers(file);
  const opened = file.servers.map((config) => ({ config, server: takeServer(config) }));
  const isGuard = ({ config }: PlannedGuardServer) => areGuards.includes(config.name);
  const guardedBuiltIn = listGuards === undefined ? builtIn : guardBuiltIn(builtIn, listGuards);

  function planServer({ config, server }: PlannedGuardServer): PlannedServer {
    const selected = selectTools(config.tools);
    const hasConnectTool = server.upstream.facts.connection !== undefined;
    return {
      config,
      server,
      prepareList: createPrepareList({
        config,
        hasConnectTool,
        naming,
        policies,
        listGuards,
        warn,
      }),
      mayHave(kind, ownName) {
        const { ruled } = LIST_KINDS[kind];
        if (ruled === 'resource') return false;
        if (kind === 'tools' && !selected.has(ownName)) return false;
        if (!isNameAllowed(kind, ownName, naming.isStrict)) return false;
        return lock.knows(config.name, ruled, ownName);
      },
      approvable: toApprovable(config, server),
    };
  }

  return {
    ...setup,
    listGuards,
    builtIn: file.builtIn ? guardedBuiltIn : undefined,
    opened,
    guardServers: new Map(opened.filter(isGuard).map((one) => [one.config.name, one])),
    servers: new Map(
      opened.filter((one) => !isGuard(one)).map((one) => [one.config.name, planServer(one)]),
    ),
    views: new Map((file.views ?? []).map((view) => [view.name, createPlannedView(view, naming)])),
    naming,
    joinLists: createJoinLists(naming, warn),
    writePage: createWritePage(),
    warn,
    warnOfResult: createWarnOfItem(
      log,
      'more of its answers go on without what MCP does not allow',
    ),
  };
}

/** Names of the servers that are guards. */
export const listGuardServers = ({ guards = [] }: Pick<CatalogFile, 'guards'>): readonly string[] =>
  guards.flatMap(({ use }) => use.server ?? []);

// §22.4, §22.6: a server, as operators approve it.

function toApprovable(config: UpstreamConfig, server: Server): ApprovableServer {
  const selected = selectTools(config.tools);
  const { lists, upstream, usage } = server;
  const peekList = (list: LockedList) => lists.peek(list, GATEWAY_CALLER) ?? NO_ITEMS;
  return {
    name: config.name,
    isPersonal: server.isPersonal,
    peek: () => ({
      instructions: readInstructions(lists.peekDescription(GATEWAY_CALLER)?.instructions),
      prompts: peekList('prompts'),
      skills: peekList('skills'),
      tools: peekList('tools'),
    }),
    isUsable: (list, item) =>
      findItemProblem(list, item) === undefined &&
      (list !== 'tools' || selected.has(String(item.name))),
    peekApproved: lists.peekApproved,
    async read(signal) {
      const content = await usage.run(() => readServer(upstream, GATEWAY_CALLER, signal));
      for (const { list } of Object.values(LOCKED_ITEMS)) {
        const served = lists.peek(list, GATEWAY_CALLER);
        if (served === undefined || served.fingerprint === content[list].fingerprint) continue;
        lists.invalidate(LIST_KINDS[list].list, GATEWAY_CALLER);
        await lists.load(list, GATEWAY_CALLER, 'forCall');
      }
      return content;
    },
  };
}

const NO_ITEMS = { items: [] };

// §18.2: pages of lists as they are sent: made once for all callers who see the same of the same list.

/** The part of a list that a caller may see. Asked anew each time: here it is only looked up how that is written. */
export interface VisiblePage {
  /** `path` of the view that shows it. */
  readonly path: string;
  readonly kind: ListKind;
  /** The very array: a list that was fetched anew, or prepared by another configuration, is another one. */
  readonly list: readonly Entry[];
  /** Positions of its entries in the list, rising. */
  readonly positions: readonly number[];
  readonly nextCursor: string | undefined;
  /** The caller (`nameOwner`); undefined where nobody logs in. */
  readonly caller: string | undefined;
  /** §33: its tools are written otherwise for clients of the session era. */
  readonly isNarrowed?: boolean;
}

/** Writes `items`, and `bytes`: the result of the list's method as JSON, in UTF-8. */
type WrittenPage = Required<Pick<Page<RawItem>, 'items' | 'bytes'>>;

/** `getItem` says what the view shows of an entry. @throws TypeError for what JSON cannot say. */
type WritePage = (page: VisiblePage, getItem: (entry: Entry) => RawItem) => WrittenPage;

/** Memory of an entry beside its part of the bytes. */
const BYTES_AN_ENTRY = 16;

interface KeptPage extends Omit<VisiblePage, 'list'> {
  readonly hash: number;
  readonly written: WrittenPage;
}

/** Those of one list, by hash. */
type PagesOfList = Map<number, KeptPage>;

/** A page of a list that is no longer served is not asked for, and so the first to go. */
export function createWritePage(
  maxBytes = CAPACITY.pageBytes,
  maxUserBytes = CAPACITY.userPageBytes,
): WritePage {
  const lists = new WeakMap<readonly Entry[], PagesOfList>();
  const userBytes = new Map<string, number>();
  const kept = createSizedMap<KeptPage, PagesOfList>({
    maxSize: maxBytes,
    measure,
    onRemove(pages, page) {
      if (pages.get(page.hash) === page) pages.delete(page.hash);
      countForUser(page, -measure(page));
    },
  });

  function countForUser({ caller }: KeptPage, change: number): void {
    if (caller === undefined) return;
    const bytes = (userBytes.get(caller) ?? 0) + change;
    if (bytes === 0) userBytes.delete(caller);
    else userBytes.set(caller, bytes);
  }

  return function writePage(page, getItem) {
    const { list, positions } = page;
    const pages = lists.get(list) ?? new Map<number, KeptPage>();
    const hash = hashPositions(positions) ^ Number(page.isNarrowed === true);
    const known = pages.get(hash);
    if (known !== undefined && isSame(known, page)) {
      kept.get(known);
      return known.written;
    }
    if (known !== undefined) kept.delete(known);
    const written = write(page, getItem);
    const { list: _, ...seen } = page;
    const made = { ...seen, hash, written };
    const size = measure(made);
    const { caller } = made;
    const ofUser = caller === undefined ? 0 : (userBytes.get(caller) ?? 0) + size;
    if (size > maxBytes || ofUser > maxUserBytes) return written;
    lists.set(list, pages.set(hash, made));
    countForUser(made, size);
    kept.set(made, pages);
    return written;
  };
}

const measure = ({ written, positions }: KeptPage): number =>
  written.bytes.length + BYTES_AN_ENTRY * positions.length;

function write(
  { kind, list, positions, nextCursor }: VisiblePage,
  getItem: (entry: Entry) => RawItem,
): WrittenPage {
  const entries = positions.flatMap((position) => list[position] ?? []);
  const items = entries.map((entry) => showNumbers(entry, getItem(entry)));
  const { member } = LIST_KINDS[kind];
  const result = { [member]: items, ...(nextCursor !== undefined && { nextCursor }) };
  return { items, bytes: Buffer.from(writeExactJson(result)) };
}

/** The later one of two pages with one hash is kept. */
function hashPositions(positions: readonly number[]): number {
  let hash = positions.length;
  for (const position of positions) hash = (Math.imul(hash, 31) + position) | 0;
  return hash;
}

function isSame(
  known: KeptPage,
  { path, kind, positions, nextCursor, isNarrowed }: VisiblePage,
): boolean {
  return (
    known.path === path &&
    known.kind === kind &&
    known.isNarrowed === isNarrowed &&
    known.nextCursor === nextCursor &&
    (known.positions === positions || isSameList(known.positions, positions))
  );
}

// §25.1: a view, as a configuration has it: what it takes of what `/mcp` serves, in which order, and how it describes it.

export interface PlannedView extends JoinedPart {
  readonly config: ViewConfig;
  includes(item: CuratedItem): boolean;
  /** The same list as long as it is given the same. */
  curate(entries: readonly Entry[]): JoinedList;
}

/** As clients of `/mcp` see it. */
export interface CuratedItem extends Pick<Entry, 'kind' | 'server' | 'name'> {
  readonly namesBegin?: string | undefined;
}

export function createPlannedView(config: ViewConfig, naming: Naming): PlannedView {
  const servers = config.servers && new Map(config.servers.map((name, place) => [name, place]));
  const { tools, prompts, resources } = config;
  const patterns = {
    tool: tools && compile(tools),
    prompt: prompts && compile(prompts),
    resource: resources && compile(resources),
  };

  /** At which place of the file's patterns something stands; `NOWHERE` where none fits. */
  function rank({ kind, name, namesBegin }: CuratedItem): number {
    const given = patterns[kind];
    if (given === undefined) return 0;
    // The tool by which users log in at a server stands for all that they find there (§24.3).
    if (namesBegin !== undefined)
      return given.globs.findIndex((glob) => canBegin(glob, namesBegin));
    const text = kind === 'resource' ? decodeResource(name) : name;
    return text === undefined ? NOWHERE : given.fits.findIndex((fits) => fits(text));
  }

  const hasServer = (name: string) => servers === undefined || servers.has(name);

  const curate = computeOnce((entries: readonly Entry[]): JoinedList => {
    const chosen = entries
      .map((entry) => ({ entry, place: rank(entry), server: servers?.get(entry.server) ?? 0 }))
      .filter(({ entry, place }) => place !== NOWHERE && hasServer(entry.server))
      // A skill of which a file is missing could not be checked.
      .filter(({ entry: { files = [] } }) => files.every((file) => rank(file) !== NOWHERE));
    // Sorting is stable: what is alike in both stays in the order of /mcp.
    chosen.sort((one, other) => one.place - other.place || one.server - other.server);
    return indexEntries(
      chosen.map(({ entry }) => {
        const description = entry.kind === 'tool' ? config.describe[entry.name] : undefined;
        return description === undefined
          ? entry
          : { ...entry, item: { ...entry.item, description } };
      }),
    );
  });

  return {
    config,
    // A memory of its own: those of many views would push each other out of one.
    joinLists: createJoinLists(naming, IGNORED),
    hasServer,
    includes: (item) => hasServer(item.server) && rank(item) !== NOWHERE,
    curate,
  };
}

/** The joined list tells where names collide. */
const IGNORED = () => {};

const NOWHERE = -1;

const compile = (globs: readonly string[]) => ({ globs, fits: globs.map(compileGlob) });
