// §18.4: fetches one list of a server with all its pages, up to the limits.
import { hash } from 'node:crypto';
import type { RawItem } from '../mcp/catalog/catalog.ts';
import { LIST_KINDS, LIST_NAMES, type ListKind } from '../mcp/protocol/list-kinds.ts';
import { offersList } from '../mcp/upstream/envelope.ts';
import {
  METHOD_NOT_FOUND,
  type Upstream,
  type UpstreamCaller,
  UpstreamError,
} from '../mcp/upstream/upstream.ts';
import { writeExactJson } from '../platform/exact-json.ts';
import { isObject, type JsonObject } from '../platform/json.ts';
import { noteEntries, readExact, toRawJson } from '../platform/noted-json.ts';

export interface FetchedList {
  readonly kind: ListKind;
  /** Items as the server wrote them. */
  readonly items: readonly RawItem[];
  /** Milliseconds for which the list may be served. */
  readonly ttlMs: number;
  /** Two lists with the same digest are the same. */
  readonly fingerprint: string;
  /** Size of the items as JSON text. */
  readonly bytes: number;
  /** Why the rest was left out; undefined if the list is complete. */
  readonly cut: string | undefined;
  /**
   * §24.3: users do not see what the server offers until they have logged in to it. Where possible, the tool for logging in is
   * shown instead.
   */
  readonly needsLogin?: 'possible' | 'impossible';
}

export const NO_LIST: Omit<FetchedList, 'kind'> = {
  items: [],
  ttlMs: 0,
  fingerprint: '',
  bytes: 0,
  cut: undefined,
};

const MAX_PAGES = 100;
const MAX_ITEMS = 10_000;
/** Limited further, since each template may have to be compared with a URI. */
const MAX_TEMPLATES = 1_000;
const MAX_BYTES = 8_388_608;

const MIN_TTL_MS = 1_000;
const MAX_TTL_MS = 3_600_000;
export const DEFAULT_TTL_MS = 60_000;

/** @throws UpstreamError */
export async function fetchList(
  upstream: Upstream,
  kind: ListKind,
  caller: UpstreamCaller,
  signal: AbortSignal,
): Promise<FetchedList> {
  const { capabilities } = await upstream.describe(caller);
  const collected = createCollection(kind);
  if (!offersList(capabilities, kind)) return collected.finish(undefined);
  const cursors = new Set<unknown>();
  let cursor: unknown;
  let ttlMs: unknown;
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const result = await requestPage(cursor);
    if (page === 1) ttlMs = result.ttlMs;
    cursor = result.nextCursor;
    const items = result[LIST_KINDS[kind].member];
    if (!Array.isArray(items)) throw new UpstreamError('invalid', `its ${kind} are not a list`);
    noteEntries(items, readExact(result)[LIST_KINDS[kind].member]);
    const isRepeated = cursors.has(cursor);
    if (!collected.add(isRepeated ? collected.listNew(items) : items)) break;
    if (typeof cursor !== 'string') return collected.finish(ttlMs);
    // If queried further, the server would return the same pages forever.
    if (isRepeated) collected.cut('its cursor leads back to an earlier page');
    if (isRepeated) break;
    cursors.add(cursor);
  }
  collected.cut(`it has more than ${MAX_PAGES} pages`);
  return collected.finish(ttlMs);

  async function requestPage(at: unknown): Promise<JsonObject> {
    const { method, member } = LIST_KINDS[kind];
    const params = typeof at === 'string' ? { cursor: at } : {};
    const request = { method, params, signal, trace: {} };
    try {
      return await upstream.request(caller, request);
    } catch (error) {
      // Many servers have resources but no templates.
      if (error instanceof UpstreamError && error.jsonRpcError?.code === METHOD_NOT_FOUND)
        return { [member]: [] };
      throw error;
    }
  }
}

function createCollection(kind: ListKind) {
  const maxItems = kind === 'templates' ? MAX_TEMPLATES : MAX_ITEMS;
  const items: RawItem[] = [];
  const texts: string[] = [];
  let bytes = 0;
  let cutReason: string | undefined;

  function addItem(item: unknown): boolean {
    if (!isObject(item)) return true;
    const text = toText(item);
    if (text === undefined) return true;
    bytes += Buffer.byteLength(text);
    if (items.length === maxItems) cutReason = `it has more than ${maxItems} entries`;
    else if (bytes > MAX_BYTES) cutReason = `it has more than ${MAX_BYTES} bytes`;
    if (cutReason !== undefined) return false;
    items.push(item);
    texts.push(text);
    return true;
  }

  return {
    /** Returns false once nothing more is kept. */
    add: (page: readonly unknown[]) => page.every(addItem),
    /** The items of the page that have not been added yet, compared word for word. */
    listNew(page: readonly unknown[]): readonly unknown[] {
      const known = new Set(texts);
      return page.filter((item) => !isObject(item) || !known.has(toText(item) ?? ''));
    },
    cut(reason: string) {
      cutReason ??= reason;
    },
    finish: (ttlMs: unknown): FetchedList => ({
      kind,
      items,
      ttlMs:
        typeof ttlMs === 'number' && Number.isFinite(ttlMs)
          ? Math.min(Math.max(ttlMs, MIN_TTL_MS), MAX_TTL_MS)
          : DEFAULT_TTL_MS,
      fingerprint: hash('sha256', texts.join('\n'), 'base64url'),
      bytes,
      cut: cutReason,
    }),
  };
}

/** Undefined for an item that is nested too deeply to be passed on. */
function toText(item: RawItem): string | undefined {
  try {
    return writeExactJson(toRawJson(item));
  } catch {
    return undefined;
  }
}

// Lists that a server has but does not declare: neither the gateway nor clients request them, but `postern doctor` does.

/** Most servers do not have such a list, and some never respond to methods that they do not know. */
const TIME_LIMIT_MS = 2000;

/** Counts the entries on the first page of each undeclared list; leaves out empty lists. Never rejects. */
export async function countUndeclared(
  upstream: Upstream,
  caller: UpstreamCaller,
  signal: AbortSignal,
) {
  const { capabilities } = await upstream.describe(caller).catch(() => ({ capabilities: {} }));
  const undeclared = LIST_NAMES.filter((list) => !offersList(capabilities, list));
  const counted = await Promise.all(
    undeclared.map(async (list) => {
      const { method, member } = LIST_KINDS[list];
      const limit = AbortSignal.any([signal, AbortSignal.timeout(TIME_LIMIT_MS)]);
      const request = { method, params: {}, signal: limit, trace: {} };
      const result = await upstream.request(caller, request).catch(() => undefined);
      const items = result?.[member];
      return { list, count: Array.isArray(items) ? items.length : 0 };
    }),
  );
  return counted.filter(({ count }) => count > 0);
}
