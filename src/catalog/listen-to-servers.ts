// §18.3: what changes is told to those who listen: lists, and the resources that they subscribed to.

import { fail } from '../errors/gateway-error.ts';
import {
  createNotificationGate,
  type Guard,
  type GuardedItem,
  type Guards,
  type NotificationGate,
} from '../mcp/calls/guards.ts';
import type { CatalogListener } from '../mcp/catalog/catalog.ts';
import type { OwnCatalog } from '../mcp/catalog/own-catalog.ts';
import type { IdentifiedCaller, ServedCatalog } from '../mcp/catalog/served-catalog.ts';
import { canSubscribe } from '../mcp/upstream/description.ts';
import { UpstreamError } from '../mcp/upstream/upstream.ts';
import { isObject, type JsonObject } from '../platform/json.ts';
import { createPassWhenKnown } from '../platform/single-flight.ts';
import { createBatch } from '../platform/throttle.ts';
import { listClientUris } from './apps/app-tools.ts';
import type { Plan } from './plan.ts';
import { BUILT_IN } from './prepare-list.ts';
import { findBuiltIn, type ServedPath, seesSome } from './served-path.ts';
import type { Server } from './server.ts';
import { mayUseSome, type ResolveResource, toItem, toWho, type Who } from './view.ts';

// Resources that tell when they change, and those who subscribe to them.

type Watching = Pick<ServedCatalog, 'canWatch' | 'setWatched' | 'listen'>;

export function createWatching(path: ServedPath, resolveResource: ResolveResource): Watching {
  const { view, access, getPlan } = path;

  async function canWatch(uri: string, caller: IdentifiedCaller): Promise<boolean> {
    const who = toWho(caller);
    const own = { server: BUILT_IN, ownUri: uri, uri, annotations: {} };
    if (view.includes(own) && (await findBuiltIn(path)?.canWatch(uri, caller))) {
      return access.mayRead(own, who) && guardSubscription(getPlan().guards, toItem(own), caller);
    }
    const readable = await findReadable(uri, who);
    if (readable === undefined) return false;
    const { server, item } = readable;
    if (!(await guardSubscription(getPlan().guards, item, caller))) return false;
    const description = await server.lists.describe(who.upstream, who.patience);
    return description !== undefined && canSubscribe(description.capabilities);
  }

  /** The server's answer about a resource that the caller may not read would tell that there is one. */
  async function findReadable(uri: string, who: Who) {
    const found = await resolveResource(uri, who);
    const server = found && view.findServer(found.server);
    return server && access.mayRead(found, who)
      ? { server, ownUri: found.ownUri, item: toItem(found) }
      : undefined;
  }

  return {
    canWatch,

    async setWatched(uri, isWatched, caller) {
      const builtIn = view.includes({ server: BUILT_IN, uri }) ? findBuiltIn(path) : undefined;
      if (await builtIn?.canWatch(uri, caller)) return builtIn?.setWatched(uri, isWatched, caller);
      const who = toWho(caller);
      const readable = await findReadable(uri, who);
      if (readable === undefined) return;
      const { server, ownUri, item } = readable;
      await server.upstream
        .request(who.upstream, {
          method: isWatched ? 'resources/subscribe' : 'resources/unsubscribe',
          params: { uri: ownUri },
          name: ownUri,
          // It ends by the server's own time-out.
          signal: new AbortController().signal,
          trace: {},
          logLevel: undefined,
        })
        .catch((error: unknown) =>
          failWithUpstreamError(
            error,
            server.name,
            getPlan().guards?.find('resources/subscribe', item),
          ),
        );
    },

    listen: createListenToServers(path, resolveResource),
  };
}

/** @throws GatewayError with the error of the server, or one that says how it failed. */
function failWithUpstreamError(error: unknown, server: string, guard: Guard | undefined): never {
  if (!(error instanceof UpstreamError)) throw error;
  // The words of a server that nobody has looked at.
  const [reason, own] = guard === undefined ? [`: ${error.message}`, error.jsonRpcError] : [''];
  const message = `${server} could not be told of it${reason}.`;
  return fail('upstream_error', { jsonRpc: own ?? { code: -32603, message } });
}

// §26: what a client wants to hear of: a URI goes to its server with it.

/** True if the guards let it. They cannot change what somebody subscribes to. */
async function guardSubscription(
  guards: Guards | undefined,
  item: GuardedItem,
  { user, clientId, view }: IdentifiedCaller,
): Promise<boolean> {
  const guard = guards?.find('resources/subscribe', item);
  if (guard === undefined) return true;
  const verdict = await guard.judge({
    value: { uri: item.name },
    caller: { user, clientId, view, requestId: undefined, trace: {} },
    findProblem: () => 'what is subscribed to cannot be changed',
  });
  return verdict.kind !== 'refused';
}

// One stream of a client.

/** It listens to each server of the view, also to those that come later. */
const createListenToServers = (
  path: ServedPath,
  resolveResource: ResolveResource,
): ServedCatalog['listen'] =>
  function listenToServers(caller, listener, uris) {
    const { view, access, hub, clock, getPlan } = path;
    const builtIn = createBuiltInListening(path, caller, listener, uris);
    const stops = new Map<Server, () => void>();
    let stopHub = (): void => {};
    let isOpen = true;
    builtIn.follow();

    async function open(): Promise<void> {
      const who = toWho(caller);
      stopHub = hub.add({
        caller: who.upstream,
        isStream: true,
        hears(server) {
          if (view.findServer(server.name) !== server) return false;
          const planned = getPlan().servers.get(server.name);
          return planned !== undefined && mayUseSome(getPlan(), planned, who);
        },
        listChanged: (list) => listener.listChanged(list),
        serversChanged() {
          listenToAll(who).catch(() => {});
          builtIn.follow();
        },
      });
      await listenToAll(who);
    }

    async function listenToAll(who: Who): Promise<void> {
      const wanted = await groupByServer(who);
      if (!isOpen) return;
      const servers = view.listServers();
      for (const server of servers) {
        const own = uris && (wanted.get(server.name) ?? []);
        if (!stops.has(server)) listenTo(server, who, own);
      }
      const gone = [...stops].filter(([server]) => !servers.includes(server));
      for (const [server] of gone) stops.delete(server);
      stopAll(gone.map(([, stop]) => stop));
    }

    function listenTo(server: Server, who: Who, own: readonly string[] | undefined): void {
      // Lists that everybody shares the gateway itself hears of.
      const isNeeded = server.isPersonal || mayTellOfResources(server, who, own);
      const passLogs = createLogListener(server, who, own);
      const hearsOfElicitations = mayTellOfElicitations(server, who, own);
      if (!isNeeded && !hearsOfElicitations && passLogs === undefined) return;
      const noteUpdate = createBatch(clock, (ownUri) => tellOfResource(server, ownUri, who));
      const stop = server.upstream.listen(
        who.upstream,
        {
          listChanged(list) {
            if (server.isPersonal) server.lists.invalidate(list, who.upstream);
          },
          resourceUpdated: noteUpdate,
          ...(hearsOfElicitations && {
            elicitationCompleted: createBatch(clock, async (elicitationId) =>
              listener.elicitationCompleted?.(elicitationId),
            ),
          }),
          ...(passLogs && { logged: passLogs }),
        },
        own,
      );
      stops.set(server, stop);
    }

    function mayTellOfResources(server: Server, who: Who, own: readonly string[] | undefined) {
      const description = server.lists.peekDescription(who.upstream);
      if (description !== undefined && !canSubscribe(description.capabilities)) return false;
      return own === undefined || own.length > 0;
    }

    /** Undefined where nothing that it logs could be told. */
    function createLogListener(server: Server, who: Who, own: readonly string[] | undefined) {
      if (own !== undefined || !mayTellOfLogs(server, who)) return undefined;
      const tell = (params: JsonObject): void => {
        if (isOpen) listener.logged?.(params);
      };
      return createPassLogs(path, server, who, createPassGuards(path, server, caller, tell));
    }

    /** It says so in the session that it asked in. */
    function mayTellOfElicitations(server: Server, who: Who, own: readonly string[] | undefined) {
      const isStateless = server.lists.peekDescription(who.upstream)?.era === 'stateless';
      return own === undefined && who.upstream.capabilities.elicitationUrl === true && !isStateless;
    }

    async function groupByServer(who: Who): Promise<ReadonlyMap<string, readonly string[]>> {
      const groups = new Map<string, string[]>();
      for (const uri of uris ?? []) {
        const found = await resolveResource(uri, who);
        if (!found || found.server === BUILT_IN || !access.mayRead(found, who)) continue;
        groups.set(found.server, [...(groups.get(found.server) ?? []), found.ownUri]);
      }
      return groups;
    }

    /** Uses the URI that clients know; never tells of what is not theirs to read. */
    async function tellOfResource(server: Server, ownUri: string, who: Who): Promise<void> {
      if (!isOpen) return;
      const { name } = server;
      for (const uri of view.shown === 'own' ? [ownUri] : listClientUris(name, ownUri)) {
        // Most are known without asking the store who linked to them.
        const offered = await view.findResource(uri, who);
        const found = offered?.server === name ? offered : await resolveResource(uri, who);
        if (found?.server !== name || found.ownUri !== ownUri) continue;
        if (isOpen && access.mayRead(found, who)) listener.resourceUpdated(uri);
        return;
      }
    }

    // A failure here only means that the client misses it: it reads what it needs.
    open().catch(() => {});
    return () => {
      isOpen = false;
      stopAll([builtIn.stop, stopHub, ...stops.values()]);
    };
  };

/** Each is stopped, whatever another one throws. @throws what one of them threw. */
function stopAll([stop, ...others]: readonly (() => void)[]): void {
  try {
    stop?.();
  } finally {
    if (others.length > 0) stopAll(others);
  }
}

// §18.3: what servers log outside of calls, for the client's session that it belongs to.

/** Only some have a stream of the client's own session, and in the session era only. */
function mayTellOfLogs({ upstream, lists }: Server, who: Who): boolean {
  if (who.upstream.sessionId === undefined || !upstream.facts.hasSessionStream) return false;
  const description = lists.peekDescription(who.upstream);
  if (description === undefined) return true;
  return description.era === 'session' && isObject(description.capabilities.logging);
}

interface Sight {
  /** The plan by whose rules it was judged. */
  readonly plan: Plan;
  readonly isVisible: boolean;
}

/** Whoever may see nothing of a server, by the rules or because the lock hides it, hears nothing of it. */
function createPassLogs(
  path: ServedPath,
  server: Server,
  who: Who,
  pass: (params: JsonObject) => void,
): (params: JsonObject) => void {
  const { view, clock, getPlan } = path;
  const isServed = () => view.findServer(server.name) === server;
  const passIfVisible = createPassWhenKnown<JsonObject, Sight>({
    clock,
    async learn() {
      const plan = getPlan();
      return { plan, isVisible: await maySeeAny(path, server, who) };
    },
    holds: ({ plan }) => plan === getPlan(),
    pass(params, { isVisible }) {
      if (isVisible && isServed()) pass(params);
    },
  });

  return function passLog(params) {
    if (!isServed()) return;
    if (getPlan().policies.allowAll) pass(params);
    else passIfVisible(params);
  };
}

/** §26: as of a call; by the guards as they are when it comes. */
function createPassGuards(
  { getPlan }: ServedPath,
  server: Server,
  { user, clientId, view }: IdentifiedCaller,
  tell: (params: JsonObject) => void,
): (params: JsonObject) => void {
  const item = { kind: undefined, name: '', server: server.name };
  const caller = { user, clientId, view, requestId: undefined, trace: {} };
  let gate: { readonly guard: Guard; readonly opened: NotificationGate } | undefined;

  return function passLog(params) {
    const guard = getPlan().guards?.find('notifications', item);
    if (guard === undefined) return tell(params);
    if (gate?.guard !== guard) {
      const opened = createNotificationGate(guard, caller, (passed) => {
        if (isObject(passed.params)) tell(passed.params);
      });
      gate = { guard, opened };
    }
    gate.opened.send({ method: 'notifications/message', params });
  };
}

/** As far as it is known without asking the server. */
const maySeeAny = (path: ServedPath, { name }: Server, who: Who) =>
  seesSome(path, who, async (kind) =>
    (await path.view.listAtHand(kind, who)).filter(({ server }) => server === name),
  );

// §18.3: what the built-in catalogue tells of its changes, to one stream, for as long as the configuration file serves it.

interface BuiltInListening {
  /**
   * Begins or stops to listen, as the configuration file says now.
   *
   * @throws what an author's `watch` or `listen` throws, or what stops them.
   */
  follow(): void;
  stop(): void;
}

interface Listening {
  readonly catalog: OwnCatalog;
  stop(): void;
}

function createBuiltInListening(
  path: ServedPath,
  caller: IdentifiedCaller,
  listener: CatalogListener,
  uris: readonly string[] | undefined,
): BuiltInListening {
  const { view, access } = path;
  let current: Listening | undefined;

  function listenTo(catalog: OwnCatalog): void {
    const opened: Listening = { catalog, stop() {} };
    // An author's catalogue may tell something while it is told to begin, or after it was told to stop.
    const isHeard = () => current === opened;
    current = opened;
    try {
      opened.stop = catalog.listen(
        caller,
        {
          listChanged(list) {
            if (isHeard()) listener.listChanged(list);
          },
          resourceUpdated: (uri) => tellIfReadable(catalog, uri, isHeard),
          elicitationCompleted(elicitationId) {
            if (isHeard()) listener.elicitationCompleted?.(elicitationId);
          },
          logged(params) {
            if (isHeard()) listener.logged?.(params);
          },
        },
        uris,
      );
    } catch (error) {
      current = undefined;
      throw error;
    }
  }

  /** Configuration and rules may have changed since it subscribed. Who cannot be asked about misses it. */
  function tellIfReadable(catalog: OwnCatalog, uri: string, isHeard: () => boolean): void {
    const item = { server: BUILT_IN, ownUri: uri, uri, annotations: {} };
    if (!isHeard() || !view.includes(item) || !access.mayRead(item, toWho(caller))) return;
    Promise.resolve(catalog.canWatch(uri, caller)).then(
      (isWatched) => {
        if (isWatched && isHeard()) listener.resourceUpdated(uri);
      },
      () => {},
    );
  }

  function stop(): void {
    const former = current;
    current = undefined;
    former?.stop();
  }

  return {
    follow() {
      const catalog = findBuiltIn(path);
      if (current?.catalog === catalog) return;
      stop();
      if (catalog) listenTo(catalog);
    },
    stop,
  };
}
