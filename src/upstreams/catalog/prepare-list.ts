// §18.2: what of a server's list is served, and under which names.
import type { ToolSelection, UpstreamConfig } from '../../config/file/gateway-file.ts';
import type { RawItem } from '../../mcp/catalog/catalog.ts';
import { compileGlob } from '../../platform/glob.ts';
import { isObject } from '../../platform/json.ts';
import type { Policies } from '../../policy/policy.ts';
import { LIST_KINDS, type ListKind } from '../../protocol/list-kinds.ts';
import { findItemProblem, showName, type WarnOfItem } from './check-item.ts';
import { cleanItem } from './clean-item.ts';
import type { Entry } from './entry.ts';
import type { FetchedList } from './fetch-list.ts';
import type { Naming } from './naming.ts';

/** Of one server, in its order; each own name once. */
export interface PreparedList {
  readonly entries: readonly Entry[];
  readonly byOwnName: ReadonlyMap<string, Entry>;
  readonly byName: ReadonlyMap<string, Entry>;
}

interface PrepareDeps {
  readonly config: UpstreamConfig;
  readonly naming: Naming;
  readonly policies: Pick<Policies, 'findHidden'>;
  readonly warn: WarnOfItem;
}

export type PrepareList = (kind: ListKind, list: FetchedList) => PreparedList;

/** Each list is prepared once. */
export function createPrepareList(deps: PrepareDeps): PrepareList {
  const selected = selectTools(deps.config.tools);
  const prepared = new WeakMap<FetchedList, PreparedList>();

  return function prepareList(kind, list) {
    const known = prepared.get(list) ?? prepare(kind, list, selected, deps);
    prepared.set(list, known);
    return known;
  };
}

function prepare(
  kind: ListKind,
  { items, cut }: FetchedList,
  selected: SelectedTools,
  deps: PrepareDeps,
): PreparedList {
  const { config, warn } = deps;
  const byOwnName = new Map<string, Entry>();
  const byName = new Map<string, Entry>();
  if (cut !== undefined) warn(config.name, kind, undefined, `is cut: ${cut}`);
  for (const raw of items) {
    const ownName = String(raw[LIST_KINDS[kind].key]);
    if (kind === 'tools' && !selected.has(ownName)) continue;
    const problem = findProblem(kind, raw, byOwnName.has(ownName), deps);
    if (problem !== undefined) {
      warn(config.name, kind, ownName, problem);
      continue;
    }
    const entry = createEntry(kind, raw, ownName, selected, deps);
    const namesake = byName.get(entry.name);
    if (namesake !== undefined) {
      // At the server's own path, too: rules are about the names of /mcp, where it has none.
      const shown = showName(namesake.ownName);
      warn(config.name, kind, ownName, `is hidden: ${shown} is called ${entry.name}, too`);
      continue;
    }
    const { lookAlike } = cleanItem(raw);
    if (lookAlike !== undefined) {
      const shown = showName(lookAlike);
      warn(
        config.name,
        kind,
        ownName,
        `has letters that look like others in ${shown}; it is listed`,
      );
    }
    byOwnName.set(ownName, entry);
    byName.set(entry.name, entry);
  }
  return { entries: [...byOwnName.values()], byOwnName, byName };
}

function findProblem(
  kind: ListKind,
  raw: RawItem,
  isRepeated: boolean,
  { config, policies }: PrepareDeps,
): string | undefined {
  const problem = findItemProblem(kind, raw);
  if (problem !== undefined) return problem;
  if (isRepeated) return 'is listed twice';
  const { ruled } = LIST_KINDS[kind];
  if (ruled === 'resource') return undefined;
  return policies.findHidden(config.name, ruled, raw);
}

function createEntry(
  kind: ListKind,
  raw: RawItem,
  ownName: string,
  selected: SelectedTools,
  { config, naming }: PrepareDeps,
): Entry {
  const { key, ruled } = LIST_KINDS[kind];
  const { item: clean } = cleanItem(raw);
  const ownItem = kind === 'tools' ? selected.describe(ownName, clean) : clean;
  const name = ruled === 'resource' ? ownName : naming.join(config, ownName);
  return {
    kind: ruled,
    server: config.name,
    ownName,
    name,
    ownItem,
    item: name === ownName ? ownItem : { ...ownItem, [key]: name },
    annotations: isObject(raw.annotations) ? raw.annotations : {},
  };
}

// §18.1: which tools of a server are served, and what they are said to do.

interface SelectedTools {
  has(ownName: string): boolean;
  describe(ownName: string, item: RawItem): RawItem;
}

export function selectTools({ include, exclude, describe }: ToolSelection): SelectedTools {
  const included = include.map(compileGlob);
  const excluded = exclude.map(compileGlob);
  return {
    has: (ownName) =>
      included.some((fits) => fits(ownName)) && !excluded.some((fits) => fits(ownName)),
    describe: (ownName, item) =>
      Object.hasOwn(describe, ownName) ? { ...item, description: describe[ownName] } : item,
  };
}
