// §25.3: a view with search instead of a full list: it lists three search tools and the pinned tools. All tools can be called, as
// on any other path.

import { fail } from '../../errors/gateway-error.ts';
import type {
  CallerContext,
  InnerCall,
  ServedCatalog,
  Target,
} from '../../mcp/catalog/served-catalog.ts';
import { failUnknownItem } from '../../mcp/protocol/list-kinds.ts';
import { computeOnce } from '../../platform/bounded-map.ts';
import { createTurns, type Turns } from '../../platform/clock.ts';
import { writeExactJson } from '../../platform/exact-json.ts';
import { compileGlob } from '../../platform/glob.ts';
import { isObject, isStringArray, type JsonObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import { isVisibleTo } from '../apps/app-tools.ts';
import { indexEntries } from '../join-lists.ts';
import { createListPage } from '../list-page.ts';
import { toLister, toWho, type Who } from '../plan.ts';
import { BUILT_IN, type Entry } from '../prepare-list.ts';
import { createIsVisible, JUDGED_AT_ONCE, type ServedPath } from '../served-path.ts';
import type { ListView, View } from '../view.ts';
import type { ViewConfig } from '../view-shape.ts';
import { rank, readQuery } from './rank.ts';
import {
  CALL,
  DEFAULT_LIMIT,
  DESCRIBE,
  describeServers,
  explainLeftOut,
  findArgumentProblem,
  getAnnotations,
  isSearchTool,
  listSearchTools,
  SEARCH,
  type SearchTool,
  showTools,
} from './search-tools.ts';

/**
 * `catalog` serves the same view without search. The configuration decides on every request whether search is on: sessions outlive
 * configuration changes.
 */
export function createSearchCatalog(path: ServedPath, catalog: ServedCatalog): ServedCatalog {
  const { view, access, hub, clock } = path;
  const findConfig = () => {
    const config = view.findConfig();
    return config?.search === true ? config : undefined;
  };
  const listPinned = createListPage({ ...path, view: createPinnedView(view, findConfig) });

  async function listVisible(who: Who, work: Turns): Promise<readonly Entry[]> {
    const { entries } = await view.list('tools', who);
    await access.prepareFor(who, work);
    const isVisible = createIsVisible(path, who);
    const visible: Entry[] = [];
    for (const [at, entry] of entries.entries()) {
      if (at % JUDGED_AT_ONCE === 0 && work.isOver()) await work.next();
      if (canBeFound(entry) && isVisible(entry)) visible.push(entry);
    }
    if (work.isOver()) await work.next();
    return visible;
  }

  async function searchTools(args: JsonObject, who: Who): Promise<object> {
    const { query, limit } = args;
    const work = createTurns(clock);
    const visible = await listVisible(who, work);
    const found = await rank(readQuery(String(query)), visible, work);
    const best = found.slice(0, typeof limit === 'number' ? limit : DEFAULT_LIMIT);
    const { tools, leftOut } = await showTools(best, 'found');
    const hint = leftOut.length === 0 ? undefined : explainLeftOut(leftOut);
    return tools.length === 0
      ? toText({ tools, hint: NOTHING_FOUND })
      : toText({ tools, ...(hint !== undefined && { hint }) });
  }

  async function describeNamed(args: JsonObject, who: Who): Promise<object> {
    const names = isStringArray(args.names) ? [...new Set(args.names)] : [];
    const { entries, positions } = await view.list('tools', who);
    await access.prepareFor(who, createTurns(clock));
    const isVisible = createIsVisible(path, who);
    const found = names.flatMap((name) => {
      const entry = entries[positions.get(name) ?? -1];
      return entry !== undefined && canBeFound(entry) && isVisible(entry) ? [entry] : [];
    });
    const unknown = names.filter((name) => !found.some((entry) => entry.name === name));
    const { tools, leftOut } = await showTools(found, 'named');
    const hints = [
      ...(leftOut.length === 0 ? [] : [explainLeftOut(leftOut)]),
      ...(unknown.length === 0
        ? []
        : [
            `Unknown: ${unknown.map((name) => quote(name, 128)).join(', ')}. Find names with ${SEARCH}.`,
          ]),
    ];
    return {
      ...toText({ tools, ...(hints.length > 0 && { hint: hints.join(' ') }) }),
      ...(tools.length === 0 && { isError: true }),
    };
  }

  const runs = { [SEARCH]: searchTools, [DESCRIBE]: describeNamed };

  function createSearchTarget(name: keyof typeof runs): Target {
    const findProblem = (args: JsonObject) => findArgumentProblem(name, args);
    return {
      item: {
        kind: 'tool',
        name,
        server: BUILT_IN,
        annotations: getAnnotations(name),
        isOpen: true,
      },
      server: undefined,
      listMirroredParams: () => [],
      findProblem,
      async run(args, context) {
        const problem = findProblem(args);
        if (problem !== undefined) fail('invalid_tool_input', { details: problem });
        return runs[name](args, toWho(context, context, 'told'));
      },
      failAsUnknown: async (_context, facts) => failUnknownItem('tools', name, { facts }),
    };
  }

  async function listTools(cursor: string | undefined, context: CallerContext) {
    const { bytes: _, ...page } = await listPinned('tools', cursor, context);
    if (cursor !== undefined) return page;
    const visible = await listVisible(toLister(context, hub), createTurns(clock));
    return { ...page, items: [...listOwn(visible), ...page.items] };
  }

  return {
    ...catalog,
    get title() {
      return catalog.title;
    },
    get mirrorHeaders() {
      return catalog.mirrorHeaders;
    },
    list: (kind, cursor, context) =>
      kind === 'tools' && findConfig() !== undefined
        ? listTools(cursor, context)
        : catalog.list(kind, cursor, context),
    resolve: (wanted, context) =>
      wanted.list === 'tools' && isRun(wanted.name) && findConfig() !== undefined
        ? createSearchTarget(wanted.name)
        : catalog.resolve(wanted, context),
    unwrapCall: (tool, args) =>
      tool === CALL && findConfig() !== undefined ? readInnerCall(args) : undefined,
  };
}

const isRun = (name: string): name is Exclude<SearchTool, typeof CALL> =>
  isSearchTool(name) && name !== CALL;

const NOTHING_FOUND = `Nothing matches. Call ${SEARCH} again with other words, such as the name of the server or of its subject.`;

const toText = (value: object) => ({ content: [{ type: 'text', text: writeExactJson(value) }] });

function readInnerCall(args: JsonObject): InnerCall {
  const problem = findArgumentProblem(CALL, args);
  if (problem !== undefined) fail('invalid_tool_input', { details: problem });
  const name = String(args.name);
  if (isSearchTool(name))
    fail('invalid_tool_input', {
      details: `${CALL} does not call ${name}: call ${name === CALL ? 'the other tool by its own name' : 'it by itself'}.`,
    });
  return { name, args: isObject(args.arguments) ? args.arguments : {} };
}

/** Tools that are only for apps are hidden from models (ext-apps, "Resource Discovery"). */
const canBeFound = ({ name, item }: Entry): boolean =>
  !isSearchTool(name) && isVisibleTo('model', item);

/** The search tools; none if there is nothing to find, so that an empty view stays empty. */
const listOwn = (visible: readonly Entry[]): readonly JsonObject[] =>
  visible.length === 0 ? [] : listSearchTools(describeServers(visible));

function choosePinned(entries: readonly Entry[], pinned: readonly string[]): readonly Entry[] {
  const fits = pinned.map(compileGlob);
  return entries.filter(({ name }) => !isSearchTool(name) && fits.some((one) => one(name)));
}

/** §25.2: the tools that a view with search lists. */
export const listSearched = (
  entries: readonly Entry[],
  { pinned }: Pick<ViewConfig, 'pinned'>,
): readonly JsonObject[] => [
  ...listOwn(entries.filter(canBeFound)),
  ...choosePinned(entries, pinned).map(({ item }) => item),
];

/** The same view, limited to the pinned tools. */
function createPinnedView(view: View, findConfig: () => ViewConfig | undefined): View {
  // Each configuration has its own list of pinned tools.
  const listPinned = computeOnce((entries: readonly Entry[]) =>
    indexEntries(choosePinned(entries, findConfig()?.pinned ?? [])),
  );

  return {
    ...view,
    async list(kind, who, peek): Promise<ListView> {
      const list = await view.list(kind, who, peek);
      return findConfig() === undefined ? list : { ...list, ...listPinned(list.entries) };
    },
  };
}
