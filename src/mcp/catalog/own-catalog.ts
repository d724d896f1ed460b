// Serves an author's catalogue as the gateway's own.

import { createCountedBus } from '../../platform/counted-bus.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import type { ClockAndLog } from '../../platform/log.ts';
import { PACKAGE_NAME, PACKAGE_VERSION } from '../../platform/own-files.ts';
import { createThrottle } from '../../platform/throttle.ts';
import {
  failNoDirectory,
  failUnknownItem,
  LIST_KINDS,
  type ListKind,
} from '../protocol/list-kinds.ts';
import type { Catalog, CatalogListener, Cursor, Page } from './catalog.ts';
import { NO_CAPABILITIES } from './client-requests.ts';
import type { MirroredParam } from './content.ts';
import type { CallerContext, ServedCatalog, Target, WantedItem } from './served-catalog.ts';

export interface OwnCatalog extends ServedCatalog {
  /** True if the list is the same for every caller, and never changes. */
  isFixed(kind: ListKind): boolean;
  resolve(wanted: WantedItem, context: CallerContext): Target;
}

/**
 * The catalogue resolves names itself: an unknown one fails when it is called. Without `runtime`, changes are not reported, which
 * suffices for reading lists.
 */
export function serveOwnCatalog(catalog: Catalog, runtime?: ClockAndLog): OwnCatalog {
  return {
    name: undefined,
    server: undefined,
    view: undefined,
    offers: catalog.offers,
    mirrorHeaders: catalog.mirrorHeaders,
    isShared: catalog.describe === undefined,
    describe: (caller) => catalog.describe?.(caller) ?? catalog,
    list: async (kind, cursor, context) =>
      catalog[LIST_METHODS[kind]]?.(cursor, context) ?? NO_ITEMS,
    resolve: ({ list, name }) => ({
      item: { kind: LIST_KINDS[list].ruled, name, server: '', annotations: NONE },
      server: undefined,
      listMirroredParams: (caller) =>
        list === 'tools' ? catalog.mirroredParams(name, caller) : NO_PARAMS,
      ...(list === 'tools' && { task: catalog.findTask?.(name) }),
      // Async, so that synchronous results and errors of an author's function become promises.
      async run(args, context) {
        if (list === 'tools') return catalog.callTool(name, args, context);
        if (list === 'prompts') return catalog.getPrompt(name, args, context);
        return catalog.readResource(name, context);
      },
      failAsUnknown: async (_context, facts) => failUnknownItem(list, name, { facts }),
    }),
    getSkill: async (uri, context) =>
      catalog.getSkill?.(uri, context) ?? failUnknownItem('skills', uri),
    readDirectory: async (uri, cursor, context) =>
      catalog.readDirectory?.(uri, cursor, context) ?? failNoDirectory(uri),
    complete: async (completion, context) => catalog.complete(completion, context),
    canWatch: (uri, caller) => catalog.canWatch(uri, caller),
    setWatched: async (uri, isWatched, caller) => catalog.setWatched?.(uri, isWatched, caller),
    listen: runtime === undefined ? () => () => {} : createListen(runtime, catalog),
    endSession: (caller) => catalog.endSession?.(caller),
    isFixed: (kind) => catalog[LIST_METHODS[kind]]?.isFixed === true,
  };
}

/** Each stream accesses the store on every change: a frequently changing resource is reported at this interval. */
const UPDATE_INTERVAL_MS = 250;
const RESOURCES = 'resources';

/** Watches the catalogue once for all listeners, and only while there are any. */
function createListen({ clock, log }: ClockAndLog, catalog: Catalog): ServedCatalog['listen'] {
  const bus = createCountedBus<typeof RESOURCES, CatalogListener, () => void>({
    start() {
      let isWatching = true;
      const stop = catalog.watchResources(
        createThrottle(clock, UPDATE_INTERVAL_MS, (uri) => {
          if (isWatching) bus.publish(RESOURCES, (listener) => listener.resourceUpdated(uri));
        }),
      );
      return () => {
        isWatching = false;
        stop();
      };
    },
    stop: (stopWatching) => stopWatching(),
    // Called from an author's emitter or timer, so no error may be thrown.
    onError: (cause) =>
      log.error('A client could not be told that a resource changed; please report this.', {
        cause,
      }),
  });

  return function listen(caller, listener, uris) {
    bus.subscribe(RESOURCES, listener);
    try {
      return createStop(listener, catalog.listen?.(caller, bindListener(listener), uris));
    } catch (error) {
      bus.unsubscribe(RESOURCES, listener);
      throw error;
    }
  };

  /** A separate function, so that the closure of an open stream does not retain the caller. */
  function createStop(listener: CatalogListener, stop: (() => void) | undefined) {
    return () => {
      bus.unsubscribe(RESOURCES, listener);
      stop?.();
    };
  }
}

/** For authors, who may detach the functions from the object: a missing `this` in their event handlers would end the process. */
const bindListener = (listener: CatalogListener): CatalogListener => ({
  listChanged: (list) => listener.listChanged(list),
  resourceUpdated: (uri) => listener.resourceUpdated(uri),
  elicitationCompleted: (elicitationId) => listener.elicitationCompleted?.(elicitationId),
  logged: (params) => listener.logged?.(params),
});

/** The catalogue's method for each list. */
const LIST_METHODS = {
  tools: 'listTools',
  prompts: 'listPrompts',
  resources: 'listResources',
  templates: 'listResourceTemplates',
  skills: 'listSkills',
} as const satisfies Readonly<Record<ListKind, keyof Catalog>>;

/** For a catalogue without skills. */
const NO_ITEMS: Page<object> = { items: [] };
const NONE: JsonObject = {};
const NO_PARAMS: readonly MirroredParam[] = [];

/** By default for an anonymous caller: rules about groups, claims and clients then allow nothing. */
export async function listTools(
  { offers, list }: ServedCatalog,
  context: CallerContext = LISTING_CONTEXT,
): Promise<readonly JsonObject[]> {
  if (!offers.tools) return [];
  const tools: JsonObject[] = [];
  let cursor: Cursor;
  do {
    const page = await list('tools', cursor, context);
    tools.push(...page.items.filter(isObject));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return tools;
}

const failToAsk = (): Promise<never> => Promise.reject(new Error('Nobody can be asked here'));

const NEVER = new AbortController().signal;

/** For lists that no particular caller requests: an anonymous caller without support for server-initiated requests. */
export const LISTING_CONTEXT: CallerContext = {
  user: undefined,
  session: undefined,
  clientId: undefined,
  view: undefined,
  client: NO_CAPABILITIES,
  service: {
    name: PACKAGE_NAME,
    version: PACKAGE_VERSION,
    displayName: PACKAGE_NAME,
    environment: 'production',
  },
  signal: NEVER,
  progress() {},
  log() {},
  ask: failToAsk,
  disconnect() {},
  providerToken: async () => undefined,
  relay: {
    era: 'session',
    signal: NEVER,
    wantsProgress: false,
    logLevel: undefined,
    meta: undefined,
    questionGuards: undefined,
    ask: failToAsk,
    completeElicitation: () => false,
  },
  trace: {},
};
