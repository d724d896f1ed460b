// MCP "Pagination": pages of a joined list, and how they are serialized.
import {
  type Cursor,
  decodeCursor,
  encodeCursor,
  failUnknownCursor,
  type Page,
  type RawItem,
} from '../mcp/catalog/catalog.ts';
import type { CallerContext } from '../mcp/catalog/served-catalog.ts';
import { LIST_KINDS, type ListKind } from '../mcp/protocol/list-kinds.ts';
import { computeOnce, createSizedMap } from '../platform/bounded-map.ts';
import { createTurns, type Turns } from '../platform/clock.ts';
import { writeExactJson } from '../platform/exact-json.ts';
import { isObject, type JsonObject } from '../platform/json.ts';
import { CAPACITY } from '../platform/memory/capacity.ts';
import { nameOwner } from '../store/keys.ts';
import { isSameList } from './join-lists.ts';
import { type Plan, toLister, type Who } from './plan.ts';
import { type Entry, showNumbers } from './prepare-list.ts';
import { createIsVisible, isAnyDown, JUDGED_AT_ONCE, type ServedPath } from './served-path.ts';
import { type ListView, toShownItem, toShownName } from './view.ts';

/** Many clients read only the first page. */
const PAGE_SIZE = 1_000;

export function createListPage(path: ServedPath) {
  const { view, access, hub, missedLists, clock, served } = path;
  const getItem = (entry: Entry) => toShownItem(view, entry);

  async function findVisible(list: ListView, cursor: Cursor, who: Who, work: Turns) {
    const { entries } = list;
    const { policies } = served.current;
    const isUsual = cursor === undefined && !isAnyDown(view);
    // This is nearly always the case without rules: no entry has to be judged.
    if (isUsual && entries.length <= PAGE_SIZE && !policies.dependOnCaller)
      return { positions: takeTurns(entries).all, last: undefined };
    const memory = isUsual ? policies.findMemory(who.policy) : undefined;
    const known = memory && getFirstPages(entries).get(memory);
    if (known !== undefined) return known;
    // Created before anything is awaited: if a server goes down meanwhile, a page without its entries must not be kept.
    const isVisible = createIsVisible(path, who);
    if (policies.dependOnCaller) await access.prepareFor(who, work);
    const visible = await takeVisible(list, cursor, isVisible, work);
    if (memory !== undefined && served.current.policies === policies)
      getFirstPages(entries).set(memory, visible);
    return visible;
  }

  return async function listPage(
    kind: ListKind,
    cursor: Cursor,
    context: CallerContext,
  ): Promise<Page<RawItem>> {
    const who = toLister(context, hub);
    const work = createTurns(clock);
    const list = await view.list(kind, who);
    if (context.takesStream) missedLists.note(kind, who.upstream, view, list.hasAllServers);
    if (work.isOver()) await work.next();
    const isPrivate = list.isPersonal || served.current.policies.dependOnCaller;
    const { entries } = list;
    const { positions, last } = await findVisible(list, cursor, who, work);
    const nextCursor = last && encodeCursor(toShownName(view, last));
    const { user } = who.policy;
    const caller = user && nameOwner(user);
    const isNarrowed = kind === 'tools' && context.relay.era === 'session' && hasOthers(entries);
    const page = {
      viewName: view.name,
      kind,
      list: entries,
      positions,
      nextCursor,
      caller,
      isNarrowed,
    };
    return {
      ...getWritePage(served.current)(
        page,
        isNarrowed ? (entry) => toSessionTool(getItem(entry)) : getItem,
      ),
      ...(nextCursor !== undefined && { nextCursor }),
      cache: { ttlMs: list.ttlMs, scope: isPrivate ? 'private' : 'public' },
    };
  };
}

/**
 * The part of a list's first page that callers see, keyed by the memory of the policies. As small as the decisions in that memory.
 */
const getFirstPages = computeOnce(
  (_entries: readonly Entry[]) => new WeakMap<object, VisiblePart>(),
);

interface VisiblePart {
  /** Positions in the list, ascending. */
  readonly positions: readonly number[];
  /** The last entry of the page if there are more. */
  readonly last: Entry | undefined;
}

/**
 * A cursor is the name of a page's last entry. A cursor that names a hidden entry fails like an unknown one, so that it reveals
 * nothing to the caller.
 */
function findStart(
  cursor: string,
  { entries, positions }: ListView,
  isVisible: (entry: Entry) => boolean,
): number {
  const position = positions.get(decodeCursor(cursor));
  const entry = position === undefined ? undefined : entries[position];
  if (position === undefined || entry === undefined || !isVisible(entry))
    return failUnknownCursor();
  return (takeTurns(entries).places[position] ?? 0) + 1;
}

/** Judges only as many entries as the page needs: many rules over many entries take a long time. */
async function takeVisible(
  list: ListView,
  cursor: Cursor,
  isVisible: (entry: Entry) => boolean,
  work: Turns,
): Promise<VisiblePart> {
  const { entries } = list;
  const { positions } = takeTurns(entries);
  const start = cursor === undefined ? 0 : findStart(cursor, list, isVisible);
  const taken: number[] = [];
  let last: Entry | undefined;
  let hasMore = false;
  for (let place = start; place < positions.length && !hasMore; place += 1) {
    const position = positions[place] ?? 0;
    const entry = entries[position];
    // A skill takes longer, since each of its files is judged.
    const isLong = place % JUDGED_AT_ONCE === 0 || entry?.files !== undefined;
    if (isLong && work.isOver()) await work.next();
    if (entry === undefined || !isVisible(entry)) continue;
    hasMore = taken.length === PAGE_SIZE;
    if (hasMore) continue;
    taken.push(position);
    last = entry;
  }
  return { positions: taken.sort((a, b) => a - b), last: hasMore ? last : undefined };
}

// §18.2: the order of entries that do not fit on one page: round-robin over the servers.

/**
 * The first entry of each server in the order of the list, then the second of each, and so on: however many entries one server
 * lists, those of the others are on the first pages. The order of a list is the same on every replica.
 */
const takeTurns = computeOnce((entries: readonly Entry[]) => {
  const rounds: number[][] = [];
  const counts = new Map<string, number>();
  for (const [position, { server }] of entries.entries()) {
    const round = counts.get(server) ?? 0;
    counts.set(server, round + 1);
    const taken = rounds[round];
    if (taken === undefined) rounds.push([position]);
    else taken.push(position);
  }
  const positions = rounds.flat();
  const places: number[] = [];
  for (const [place, position] of positions.entries()) places[position] = place;
  return {
    /** Positions in the list, in the order of the pages. */
    positions,
    /** The position in page order of each entry, by its position in the list. */
    places,
    /** All positions, ascending. */
    all: [...places.keys()],
  };
});

// §18.2: pages in the form that is sent, serialized once for all callers who see the same part of the same list.

/** The part of a list that a caller may see. Determined anew for each request: only the serialized form is cached. */
export interface VisiblePage {
  readonly viewName: string;
  readonly kind: ListKind;
  /** The cache key. A list that was refetched, or prepared by another plan, is a different array. */
  readonly list: readonly Entry[];
  /** Positions of the visible entries in the list, ascending. */
  readonly positions: readonly number[];
  readonly nextCursor: string | undefined;
  /** The caller (`nameOwner`); undefined without authentication. */
  readonly caller: string | undefined;
  /** §33: true if tools are written in a different form for clients of the session era. */
  readonly isNarrowed?: boolean;
}

/** Writes `items`, and `bytes`: the result of the list's method as JSON, in UTF-8. */
type WrittenPage = Required<Pick<Page<RawItem>, 'items' | 'bytes'>>;

/** `getItem` returns the item of an entry that the view shows. @throws TypeError for values that JSON cannot represent. */
type WritePage = (page: VisiblePage, getItem: (entry: Entry) => RawItem) => WrittenPage;

/** Memory that an entry takes in addition to its share of the bytes. */
const BYTES_AN_ENTRY = 16;

interface KeptPage extends Omit<VisiblePage, 'list'> {
  readonly hash: number;
  readonly written: WrittenPage;
}

/** The pages of one list, by hash. */
type PagesOfList = Map<number, KeptPage>;

/** Each plan has its own serialized pages. */
const getWritePage = computeOnce((_plan: Plan) => createWritePage());

/** A page of a list that is no longer served is not requested again, and so is evicted first. */
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

/** If two pages have the same hash, the later one is kept. */
const hashPositions = computeOnce((positions: readonly number[]) => {
  let hash = positions.length;
  for (const position of positions) hash = (Math.imul(hash, 31) + position) | 0;
  return hash;
});

function isSame(
  known: KeptPage,
  { viewName, kind, positions, nextCursor, isNarrowed }: VisiblePage,
): boolean {
  return (
    known.viewName === viewName &&
    known.kind === kind &&
    known.isNarrowed === isNarrowed &&
    known.nextCursor === nextCursor &&
    (known.positions === positions || isSameList(known.positions, positions))
  );
}

// §33: tools of stateless servers in a form that clients of the session era can read. Since 2026-07-28 a schema may be any JSON
// Schema; clients of earlier revisions refuse a whole list for one tool whose schema is not an object schema.

/** Returns the same object if nothing has to change, which is so for nearly all tools. */
function toSessionTool(item: RawItem): RawItem {
  const { inputSchema, outputSchema, ...members } = item;
  const [input, output] = [narrow(inputSchema), narrow(outputSchema)];
  if (input === inputSchema && output === outputSchema) return item;
  return {
    ...members,
    inputSchema: input,
    // An output schema that is not an object schema is left out; the text of the result still has the content.
    ...(isOfObject(output) && { outputSchema: output }),
  };
}

/** True if any of the tools has a different form. */
const hasOthers = computeOnce((entries: readonly Entry[]) =>
  entries.some(({ ownItem }) => toSessionTool(ownItem) !== ownItem),
);

const isOfObject = (schema: unknown): boolean => isObject(schema) && schema.type === 'object';

/** Undefined for a schema that those clients refuse. */
function narrow(schema: unknown): unknown {
  if (!isObject(schema)) return schema;
  if (!isOfObject(schema)) return undefined;
  const { properties } = schema;
  return !isObject(properties) || Object.values(properties).every(isObject)
    ? schema
    : { ...schema, properties: writeAsObjects(properties) };
}

/** `true` allows everything, as `{}` does; `false` nothing. */
const writeAsObjects = (properties: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [
      name,
      typeof schema === 'boolean' ? (schema ? {} : { not: {} }) : schema,
    ]),
  );
