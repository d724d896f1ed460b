// A catalogue of an author, as the gateway serves it.

import { createCountedBus } from '../../platform/counted-bus.ts';
import type { Clock } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { Log } from '../../platform/log.ts';
import { createThrottle } from '../../platform/throttle.ts';
import { failUnknownItem } from '../../protocol/fail-unknown-item.ts';
import { LIST_KINDS, type ListKind } from '../../protocol/list-kinds.ts';
import type { Catalog, Context, Cursor, Page } from './catalog.ts';
import type { MirroredParam } from './descriptions.ts';
import type { CallableList, ServedCatalog, Target } from './served-catalog.ts';

export interface OwnCatalog extends ServedCatalog {
  /** Whether the list is the same for every caller, and never changes. */
  isFixed(kind: ListKind): boolean;
}

export interface ListeningDeps {
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Names are the catalogue's matter: one that it does not have fails when it is called. Without `listening` nobody
 * listens, as where it is only asked for its lists.
 */
export function serveOwnCatalog(catalog: Catalog, listening?: ListeningDeps): OwnCatalog {
  return {
    server: undefined,
    offers: catalog.offers,
    mirrorHeaders: catalog.mirrorHeaders,
    isShared: catalog.describe === undefined,
    describe: (caller) => catalog.describe?.(caller) ?? catalog,
    list: (kind, cursor, context) => LISTS[kind](catalog, cursor, context),
    resolve: ({ list, name }) => createOwnTarget(catalog, list, name),
    complete: (completion, context) => catalog.complete(completion, context),
    canWatch: (uri, caller) => catalog.canWatch(uri, caller),
    setWatched: async (uri, isWatched, caller) => catalog.setWatched?.(uri, isWatched, caller),
    listen: listening === undefined ? () => listenToNothing : createListen(catalog, listening),
    endSession: (caller) => catalog.endSession?.(caller),
    isFixed: (kind) => FIXED[kind](catalog) === true,
  };
}

const listenToNothing = (): void => {};

/** Each stream asks the store at each change: a resource that changes all the time is told so often. */
const UPDATE_INTERVAL_MS = 250;
const RESOURCES = 'resources';

/** The catalogue is watched once for all, and only while somebody listens. */
function createListen(catalog: Catalog, { clock, log }: ListeningDeps): ServedCatalog['listen'] {
  const bus = createCountedBus<typeof RESOURCES, (uri: string) => void, () => void>({
    start() {
      let isWatching = true;
      const stop = catalog.watchResources(
        createThrottle(clock, UPDATE_INTERVAL_MS, (uri) => {
          if (isWatching) bus.publish(RESOURCES, (tell) => tell(uri));
        }),
      );
      return () => {
        isWatching = false;
        stop();
      };
    },
    stop: (stopWatching) => stopWatching(),
    // This is called from an author's emitter or timer, into which nothing must be thrown.
    onError: (cause) =>
      log.error('A client could not be told that a resource changed; please report this.', {
        cause,
      }),
  });

  return function listen(caller, listener, uris) {
    const stopUpdates = bus.subscribe(RESOURCES, (uri) => listener.resourceUpdated(uri));
    try {
      const stop = catalog.listen?.(caller, listener, uris);
      return () => {
        stopUpdates();
        stop?.();
      };
    } catch (error) {
      stopUpdates();
      throw error;
    }
  };
}

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

const RUNS: Readonly<
  Record<
    CallableList,
    (catalog: Catalog, name: string, args: JsonObject, context: Context) => Promise<object>
  >
> = {
  tools: (catalog, name, args, context) => catalog.callTool(name, args, context),
  prompts: (catalog, name, args, context) => catalog.getPrompt(name, args, context),
  resources: (catalog, uri, _args, context) => catalog.readResource(uri, context),
};
