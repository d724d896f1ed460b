// §18.9: patterns in the configuration file that match no entry in the lists of its servers. A misspelled pattern, or one with the
// former name of a tool, protects nothing, and nothing else would reveal that.
import { isDeepStrictEqual } from 'node:util';
import type { RawItem } from '../mcp/catalog/catalog.ts';
import { LISTING_CONTEXT } from '../mcp/catalog/own-catalog.ts';
import { LIST_KINDS, type ListKind } from '../mcp/protocol/list-kinds.ts';
import type { FindFacts, UpstreamConfig } from '../mcp/upstream/upstream-config.ts';
import { canBegin, compileGlob, readGlobHead } from '../platform/glob.ts';
import type { Log } from '../platform/log.ts';
import { findNearestName } from '../platform/nearest-name.ts';
import { quote } from '../platform/text.ts';
import { type BuiltIn, isFixed } from './built-in.ts';
import { type CatalogSetup, listGuardServers, type ServedPlan } from './plan.ts';
import {
  BUILT_IN,
  CONNECT,
  createNaming,
  type Naming,
  selectTools,
  toJudgedList,
} from './prepare-list.ts';

/** A pattern that matches nothing, although all servers that could have a matching name have listed their entries. */
export interface IdlePattern {
  readonly of: 'view' | 'guard' | 'rule' | 'server';
  /** The name of the view, guard or server, or the position of the rule. */
  readonly subject: string;
  readonly pattern: string;
  /** A sentence, with the nearest name if there is one. */
  readonly message: string;
}

type PatternsFile = CatalogSetup['file'];

/** The entries of servers, as far as they are known. */
interface KnownLists {
  /** The server's lists for any callers; none until the server has listed its entries. */
  findLists(server: string, kind: ListKind): readonly (readonly RawItem[])[];
  /** Names in the built-in catalogue; undefined if they are not known, or differ between callers. */
  findBuiltIn(kind: ListKind): readonly string[] | undefined;
  /**
   * True if nothing is reported. Then a pattern that cannot match the names of any server does not have to wait for a list to
   * suggest a name from.
   */
  readonly isUntold?: boolean;
}

type FindIdlePatterns = (known: KnownLists) => readonly IdlePattern[];

/** Searches each list only once while it is unchanged, and looks for a nearest name only once among the same servers. */
export function createFindIdlePatterns(file: PatternsFile, findFacts: FindFacts): FindIdlePatterns {
  const isPersonal = (config: UpstreamConfig) => findFacts(config).personalBy !== undefined;
  const naming = createNaming(file);
  const areGuards = listGuardServers(file);
  const servers = file.servers.filter(({ name }) => !areGuards.includes(name));
  const rows = listRows({ ...file, servers }).map((row) => placeRow(row, servers, naming));
  const readNames = createReadNames(naming, findFacts);
  const findStranger = createFindStranger(file);
  /**
   * `servers` is the number of servers that had listed their entries at that time: the nearest name may belong to a server that
   * lists later.
   */
  const described = new Map<
    PlacedRow,
    { readonly idle: IdlePattern; readonly isGuessed: boolean; readonly servers: number }
  >();

  /** Suggests the name that may have been meant. */
  function suggest(
    { of, pattern, isName }: PlacedRow,
    known: readonly Names[],
    builtIn: readonly string[],
  ): string | undefined {
    if (isName !== true) return findStranger(pattern)?.meant;
    const nearest = findNearestName(pattern, [...builtIn, ...known.flatMap((one) => [...one[of]])]);
    if (nearest !== undefined || of === 'server') return nearest;
    const shown = new Map(known.flatMap((one) => [...one.shown]));
    const own = findNearestName(pattern, [...shown.keys()]);
    return own === undefined ? findStranger(pattern)?.meant : shown.get(own);
  }

  function judge(
    row: PlacedRow,
    { findLists, findBuiltIn, isUntold = false }: KnownLists,
  ): IdlePattern | undefined {
    const { kind, of, owners } = row;
    const builtIn = row.mayBeBuiltIn ? findBuiltIn(kind) : [];
    if (builtIn === undefined || row.fitsOne(new Set(builtIn))) return undefined;
    for (const config of owners) {
      const lists = findLists(config.name, kind);
      // The pattern may mean an unlisted item.
      if (lists.length === 0) return undefined;
      if (lists.some((items) => row.fitsOne(readNames(config, kind, items)[of]))) return undefined;
    }
    // A pattern without the prefix matches no server's names at all.
    const asked = owners.length > 0 ? owners : servers.filter(row.isAbout);
    const listed = asked.filter(({ name }) => findLists(name, kind).length > 0);
    const known = described.get(row);
    if (known?.isGuessed || known?.servers === listed.length) return known.idle;
    const names = listed.flatMap((config) =>
      findLists(config.name, kind).map((items) => readNames(config, kind, items)),
    );
    // Once one server has listed its entries, there is something to suggest.
    if (names.length === 0 && !isUntold && !asked.every(isPersonal)) return undefined;
    const guess = suggest(row, names, builtIn);
    const idle = describe(row, guess, owners.some(isPersonal));
    described.set(row, { idle, isGuessed: guess !== undefined, servers: listed.length });
    return idle;
  }

  const guarding = (file.guards ?? []).flatMap(({ name, servers: named = [] }) =>
    named
      .filter((one) => areGuards.includes(one))
      .map(
        (one): IdlePattern => ({
          of: 'guard',
          subject: name,
          pattern: one,
          message: `Guard ${name}: "servers" names ${one}, which is a guard itself, and no guard looks at it.`,
        }),
      ),
  );
  return (known) => [...guarding, ...rows.flatMap((row) => judge(row, known) ?? [])];
}

/** A pattern as written in the file. */
interface Row extends Pick<IdlePattern, 'of' | 'subject' | 'pattern'> {
  readonly kind: 'tools' | 'prompts';
  /** The servers that the pattern applies to; undefined for all servers and the built-in catalogue. */
  readonly servers: readonly string[] | undefined;
  /** True for a plain name, in which an asterisk is not a wildcard. */
  readonly isName?: boolean;
}

/** The patterns in the order in which they are reported, without duplicates. */
function listRows({ servers, views = [], rules, guards = [] }: PatternsFile): readonly Row[] {
  const toRows = (patterns: readonly string[], row: Omit<Row, 'pattern'>): readonly Row[] =>
    [...new Set(patterns)].map((pattern) => ({ ...row, pattern }));
  return [
    ...rules.flatMap(({ ask, may, place }) =>
      ask === undefined
        ? []
        : toRows(may, { of: 'rule', subject: place, kind: 'tools', servers: undefined }),
    ),
    ...guards.flatMap(({ name, tools = [], servers: about }) =>
      toRows(tools, { of: 'guard', subject: name, kind: 'tools', servers: about }),
    ),
    ...servers.flatMap(({ name, tools }) =>
      toRows(tools.exclude, { of: 'server', subject: name, kind: 'tools', servers: [name] }),
    ),
    ...views.flatMap(
      ({ name, tools = [], pinned, prompts = [], describe: texts, servers: has }) => {
        const row = { of: 'view', subject: name, kind: 'tools', servers: has } as const;
        const patterns = [...tools, ...pinned];
        const described = Object.keys(texts).filter((one) => !patterns.includes(one));
        return [
          ...toRows(patterns, row),
          ...toRows(described, { ...row, isName: true }),
          ...toRows(prompts, { ...row, kind: 'prompts' }),
        ];
      },
    ),
  ];
}

type PlacedRow = ReturnType<typeof placeRow>;

function placeRow(row: Row, servers: readonly UpstreamConfig[], naming: Naming) {
  const { of, pattern } = row;
  const head = readGlobHead(pattern);
  const isName = row.isName === true || head === pattern;
  const fits = compileGlob(pattern);
  const isAbout = ({ name }: { readonly name: string }) => row.servers?.includes(name) !== false;

  const isOfServer =
    of === 'server' || naming.listStarts().some((start) => start !== '' && head.startsWith(start));
  return {
    ...row,
    isName,
    /** The servers whose names the pattern may match: no other server is waited for. */
    owners: servers.filter(
      (config) =>
        isAbout(config) && (of === 'server' || canBegin(pattern, naming.findStart(config))),
    ),
    mayBeBuiltIn: !isOfServer && isAbout({ name: BUILT_IN }),
    isAbout,
    fitsOne: (names: ReadonlySet<string>) => (isName ? names.has(pattern) : [...names].some(fits)),
  };
}

/** The items that a pattern may refer to, by server. */
interface Names extends Readonly<Record<Row['of'], ReadonlySet<string>>> {
  /** The names that clients of `/mcp` see, by the server's own names. */
  readonly shown: ReadonlyMap<string, string>;
}

/** Items that `tools` of a server or the lock leaves out still exist, but the former are not in any view. */
function createReadNames(naming: Naming, findFacts: FindFacts) {
  const known = new WeakMap<readonly RawItem[], Names>();

  return function readNames(
    config: UpstreamConfig,
    kind: Row['kind'],
    items: readonly RawItem[],
  ): Names {
    const read = known.get(items);
    if (read !== undefined) return read;
    const own = items.map((item) => String(item[LIST_KINDS[kind].key]));
    const { join } = toJudgedList({ kind, items }, config, naming);
    const shown = new Map(own.map((name) => [name, join(name)]));
    const hasConnectTool = kind === 'tools' && findFacts(config).connection !== undefined;
    const connect = hasConnectTool ? [naming.join(config, CONNECT)] : [];
    const selected = selectTools(config.tools);
    const served = own.filter((name) => kind !== 'tools' || selected.has(name)).map(join);
    const all = new Set([...shown.values(), ...connect]);
    const names = {
      rule: all,
      guard: all,
      server: new Set(own),
      view: new Set([...served, ...connect]),
      shown,
    };
    known.set(items, names);
    return names;
  };
}

/**
 * For a pattern that begins, up to the separator, like names of a server, but of no server in the file: finds that beginning, and
 * the pattern that was probably meant.
 */
export function createFindStranger(file: Parameters<typeof createNaming>[0]) {
  const { servers, separator } = file;
  const { findStart, listStarts } = createNaming(file);
  const starts = listStarts().filter((start) => start !== '');
  /** Also keyed by the server's name, if the prefix is different. */
  const startsByWord = new Map(
    servers.flatMap((server) =>
      [server.name, server.prefix].map((word) => [word + separator, findStart(server)]),
    ),
  );

  return function findStranger(pattern: string) {
    const end = readGlobHead(pattern).indexOf(separator);
    if (end <= 0 || starts.some((one) => canBegin(pattern, one))) return undefined;
    const start = pattern.slice(0, end + separator.length);
    const word = findNearestName(start, [...startsByWord.keys()]);
    const meant = word === undefined ? undefined : startsByWord.get(word);
    return { start, meant: meant === undefined ? undefined : meant + pattern.slice(start.length) };
  };
}

/** The beginnings of sentences, and the consequence of a pattern that matches nothing. */
const WORDS = {
  view: { subject: 'View ', effect: '' },
  guard: { subject: 'Guard ', effect: ', so it looks at nothing by that pattern' },
  rule: { subject: '', effect: ', so no call requires approval because of that pattern' },
  server: { subject: 'Server ', effect: ', so "exclude" leaves nothing out by that pattern' },
} as const satisfies Readonly<Record<Row['of'], object>>;

/** Maximum length of a displayed name, in characters. */
const MAX_SHOWN = 100;

function describe(row: PlacedRow, nearest: string | undefined, isPersonal: boolean): IdlePattern {
  const { of, subject, kind, pattern, servers, isName } = row;
  const words = WORDS[of];
  const whose = of === 'server' ? ' of its own' : servers === undefined ? '' : ' of its servers';
  const since = isPersonal ? ' that users have listed so far' : '';
  const verb = isName === true ? 'is called' : 'fits';
  const guess = nearest === undefined ? '' : ` Did you mean ${quote(nearest, MAX_SHOWN)}?`;
  return {
    of,
    subject,
    pattern,
    message: `${words.subject}${subject}: no ${LIST_KINDS[kind].noun}${whose}${since} ${verb} ${quote(pattern, MAX_SHOWN)}${words.effect}.${guess}`,
  };
}

// §18.9: reports when a pattern of the current configuration file no longer matches anything.

/** The kinds of item whose patterns are checked. */
const KINDS = ['tools', 'prompts'] as const;
/** Maximum number of lists for servers with lists per user: those of the most recent users. */
const MAX_LISTS = 100;

export function createPatternWatch(
  log: Log,
  builtIn: BuiltIn,
  served: ServedPlan,
  findFacts: FindFacts,
) {
  let find: FindIdlePatterns = () => [];
  let watched: PatternsFile | undefined;
  let said = new Set<string>();

  const findBy = (findIdle: FindIdlePatterns, hasBuiltIn: boolean, isUntold = false) =>
    findIdle({
      isUntold,
      findLists: (name, kind) =>
        (served.current.servers.get(name)?.server.lists.listKept() ?? [])
          .flatMap((kept) => (kept.kind === kind ? [kept.items] : []))
          .slice(-MAX_LISTS),
      findBuiltIn: (kind) =>
        hasBuiltIn ? builtIn.fixed.get(kind)?.entries.map(({ name }) => name) : [],
    });

  const findServed = () => findBy(find, served.current.file.builtIn);

  function look(): void {
    for (const { of, subject, message } of findServed()) {
      if (said.has(message)) continue;
      said.add(message);
      log.warn(message, { [of]: subject });
    }
  }

  async function start(): Promise<void> {
    try {
      // A catalogue that differs between callers is not queried, since it is unknown what it will list.
      for (const kind of KINDS)
        if (isFixed(builtIn.catalog, kind)) await builtIn.list(kind, LISTING_CONTEXT);
    } catch {
      // The error of an author's list is reported when a client requests the list.
    }
    look();
  }

  return {
    /** Called when another configuration is served. */
    restart(): void {
      const { file } = served.current;
      find = createFindIdlePatterns(file, findFacts);
      // When an operator approves a server's descriptions, the same file is loaded with another lock.
      if (!isDeepStrictEqual(file, watched)) said = new Set();
      watched = file;
      void start();
    },
    /** Called when a list has changed. Logs new findings: each pattern once, as long as the configuration is the same. */
    noteList(kind: ListKind): void {
      if (KINDS.some((one) => one === kind)) look();
    },
    /** Searches the cached lists; `file` replaces the current configuration. */
    findIdle: (file?: PatternsFile): readonly IdlePattern[] =>
      file === undefined
        ? findServed()
        : findBy(createFindIdlePatterns(file, findFacts), file.builtIn, true),
  };
}
