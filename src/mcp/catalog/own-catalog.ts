// A catalogue of an author, as the gateway serves it.

import type { JsonObject } from '../../platform/json.ts';
import { failUnknownItem } from '../../protocol/fail-unknown-item.ts';
import { LIST_KINDS, type ListKind } from '../../protocol/list-kinds.ts';
import type { Catalog, Context, Cursor, Page } from './catalog.ts';
import type { MirroredParam } from './descriptions.ts';
import type { CallableList, ServedCatalog, Target } from './served-catalog.ts';

export interface OwnCatalog extends ServedCatalog {
  /** Whether the list is the same for every caller, and never changes. */
  isFixed(kind: ListKind): boolean;
}

/** Names are the catalogue's matter: one that it does not have fails when it is called. */
export function serveOwnCatalog(catalog: Catalog): OwnCatalog {
  return {
    server: undefined,
    offers: catalog.offers,
    mirrorHeaders: catalog.mirrorHeaders,
    isShared: catalog.describe === undefined,
    describe: (caller) => catalog.describe?.(caller) ?? catalog,
    list: async (kind, cursor, context) => LISTS[kind](catalog, cursor, context),
    resolve: ({ list, name }) => createOwnTarget(catalog, list, name),
    complete: async (completion, context) => catalog.complete(completion, context),
    canWatch: (uri, caller) => catalog.canWatch(uri, caller),
    watchResources: (changed) => catalog.watchResources(changed),
    setWatched: async (uri, isWatched, caller) => catalog.setWatched?.(uri, isWatched, caller),
    listen: (caller, listener, uris) => catalog.listen?.(caller, listener, uris) ?? listenToNothing,
    endSession: (caller) => catalog.endSession?.(caller),
    isFixed: (kind) => FIXED[kind](catalog) === true,
  };
}

const listenToNothing = (): void => {};

/** One page of a list, asked of a catalogue by its own method. */
const LISTS: Readonly<
  Record<ListKind, (catalog: Catalog, cursor: Cursor, context: Context) => Promise<Page<object>>>
> = {
  tools: (catalog, cursor, context) => catalog.listTools(cursor, context),
  prompts: (catalog, cursor, context) => catalog.listPrompts(cursor, context),
  resources: (catalog, cursor, context) => catalog.listResources(cursor, context),
  templates: (catalog, cursor, context) => catalog.listResourceTemplates(cursor, context),
};

const FIXED: Readonly<Record<ListKind, (catalog: Catalog) => true | undefined>> = {
  tools: ({ listTools }) => listTools.isFixed,
  prompts: ({ listPrompts }) => listPrompts.isFixed,
  resources: ({ listResources }) => listResources.isFixed,
  templates: ({ listResourceTemplates }) => listResourceTemplates.isFixed,
};

function createOwnTarget(catalog: Catalog, list: CallableList, name: string): Target {
  const run = RUNS[list];
  return {
    item: { kind: LIST_KINDS[list].ruled, name, server: '', annotations: NONE },
    server: undefined,
    listMirroredParams: (caller) =>
      list === 'tools' ? catalog.mirroredParams(name, caller) : NO_PARAMS,
    run: (args, context) => run(catalog, name, args, context),
    failAsUnknown: async (_context, facts) => failUnknownItem(list, name, { facts }),
  };
}

const NONE: JsonObject = {};
const NO_PARAMS: readonly MirroredParam[] = [];

/** Async: what an author's function throws, or returns at once, comes as from a promise. */
const RUNS: Readonly<
  Record<
    CallableList,
    (catalog: Catalog, name: string, args: JsonObject, context: Context) => Promise<object>
  >
> = {
  tools: async (catalog, name, args, context) => catalog.callTool(name, args, context),
  prompts: async (catalog, name, args, context) => catalog.getPrompt(name, args, context),
  resources: async (catalog, uri, _args, context) => catalog.readResource(uri, context),
};
