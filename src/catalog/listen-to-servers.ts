// §18.3: tells listening clients about changes to lists, and to resources that they subscribed to.

import { fail } from '../errors/gateway-error.ts';
import { URL_REQUIRED } from '../mcp/calls/client-answers.ts';
import { createNotificationGate, type Guard, type NotificationGate } from '../mcp/calls/guards.ts';
import type { CatalogListener } from '../mcp/catalog/catalog.ts';
import type { OwnCatalog } from '../mcp/catalog/own-catalog.ts';
import type { IdentifiedCaller, ServedCatalog } from '../mcp/catalog/served-catalog.ts';
import { canSubscribe } from '../mcp/upstream/envelope.ts';
import { UpstreamError } from '../mcp/upstream/upstream.ts';
import { isObject, type JsonObject } from '../platform/json.ts';
import { createPassWhenKnown } from '../platform/single-flight.ts';
import { createBatch } from '../platform/throttle.ts';
import { listClientUris } from './apps/app-tools.ts';
import { toWho, type Who } from './plan.ts';
import { BUILT_IN } from './prepare-list.ts';
import { findBuiltIn, guardUri, type ServedPath, seesSome, toItem } from './served-path.ts';
import type { Server } from './server.ts';
import { mayUseSome, type View } from './view.ts';

// Subscriptions to resources.

export function createWatching(path: ServedPath, resolveResource: View['findResource']) {
  const { view, access, served } = path;

  /** Undefined if the caller may not read the resource: the server's answer would reveal whether it exists. */
  async function findReadable(uri: string, who: Who) {
    const found = await resolveResource(uri, who);
    const server = found && view.findServer(found.server);
    return server && access.mayRead(found, who)
      ? { server, ownUri: found.ownUri, item: toItem(found) }
      : undefined;
  }

  return {
    async canWatch(uri, caller) {
      const who = toWho(caller);
      const own = { server: BUILT_IN, ownUri: uri, uri, annotations: {} };
      if (view.includes(own) && (await findBuiltIn(path)?.canWatch(uri, caller)))
        return (
          access.mayRead(own, who) && guardUri(path, 'resources/subscribe', toItem(own), caller)
        );
      const readable = await findReadable(uri, who);
      if (readable === undefined) return false;
      const { server, item } = readable;
      if (!(await guardUri(path, 'resources/subscribe', item, caller))) return false;
      const description = await server.lists.describe(who.upstream, who.patience);
      return description !== undefined && canSubscribe(description.capabilities);
    },

    async setWatched(uri, isWatched, caller) {
      const builtIn = view.includes({ server: BUILT_IN, uri }) ? findBuiltIn(path) : undefined;
      if (await builtIn?.canWatch(uri, caller)) return builtIn?.setWatched(uri, isWatched, caller);
      const who = toWho(caller);
      const readable = await findReadable(uri, who);
      if (readable === undefined) return;
      const { server, ownUri, item } = readable;
      if (!isWatched && !(await guardUri(path, 'resources/subscribe', item, caller))) return;
      const request = {
        method: isWatched ? 'resources/subscribe' : 'resources/unsubscribe',
        params: { uri: ownUri },
        name: ownUri,
        // The server's own timeout ends this request.
        signal: new AbortController().signal,
        trace: {},
      };
      try {
        await server.upstream.request(who.upstream, request);
      } catch (error) {
        if (!(error instanceof UpstreamError)) throw error;
        const { guards } = served.current;
        const isGuarded =
          error.jsonRpcError?.code === URL_REQUIRED ||
          ABOUT_RESOURCES.some((point) => guards?.find(point, item) !== undefined);
        // No guard has checked the server's text, and a subscription does not send users to a page.
        const [reason, own] = isGuarded ? [''] : [`: ${error.message}`, error.jsonRpcError];
        const message = `${server.name} could not be told of it${reason}.`;
        fail('upstream_error', { jsonRpc: own ?? { code: -32603, message } });
      }
    },

    listen: createListenToServers(path, resolveResource),
  } satisfies Partial<ServedCatalog>;
}

/** The points at which a guard checks a server's text about a resource. */
const ABOUT_RESOURCES = ['resources/subscribe', 'resources/result'] as const;

// A client's stream.

/** Listens to each server of the view, including servers that are added later. */
const createListenToServers = (
  path: ServedPath,
  resolveResource: View['findResource'],
): ServedCatalog['listen'] =>
  function listenToServers(caller, listener, uris) {
    const { view, access, hub, clock, served } = path;
    const who = toWho(caller);
    const builtIn = createBuiltInListening(path, caller, listener, uris);
    const stops = new Map<Server, () => void>();
    let isOpen = true;
    builtIn.follow();

    async function listenToAll(): Promise<void> {
      /** For each server, its own URIs of the resources to subscribe to. */
      const wanted = new Map<string, string[]>();
      for (const uri of uris ?? []) {
        const found = await resolveResource(uri, who);
        if (!found || found.server === BUILT_IN || !access.mayRead(found, who)) continue;
        wanted.set(found.server, [...(wanted.get(found.server) ?? []), found.ownUri]);
      }
      if (!isOpen) return;
      const servers = view.listServers();
      for (const server of servers) {
        const own = uris && (wanted.get(server.name) ?? []);
        if (!stops.has(server)) listenTo(server, own);
      }
      const gone = [...stops].filter(([server]) => !servers.includes(server));
      for (const [server] of gone) stops.delete(server);
      stopAll(gone.map(([, stop]) => stop));
    }

    function listenTo(server: Server, own: readonly string[] | undefined): void {
      const description = server.lists.peekDescription(who.upstream);
      const mayTellOfResources =
        (description === undefined || canSubscribe(description.capabilities)) && own?.length !== 0;
      // The server announces this in the session in which it sent the request.
      const hearsOfElicitations =
        own === undefined &&
        who.upstream.capabilities.elicitationUrl === true &&
        description?.era !== 'stateless';
      // Only some servers have a stream for the client's own session, and only in the session era.
      const hearsOfLogs =
        own === undefined &&
        who.upstream.sessionId !== undefined &&
        server.upstream.facts.hasSessionStream &&
        (description === undefined ||
          (description.era === 'session' && isObject(description.capabilities.logging)));
      // For lists that all callers share, the gateway itself listens.
      const isNeeded = server.isPersonal || mayTellOfResources;
      if (!isNeeded && !hearsOfElicitations && !hearsOfLogs) return;
      const passGuards = createPassGuards(path, server.name, caller, (params) => {
        if (isOpen) listener.logged?.(params);
      });
      const noteUpdate = createBatch(clock, (ownUri) => tellOfResource(server, ownUri));
      const stop = server.upstream.listen(
        who.upstream,
        {
          listChanged(list) {
            if (server.isPersonal) server.lists.invalidate(list, who.upstream);
          },
          resourceUpdated: noteUpdate,
          ...(hearsOfElicitations && {
            elicitationCompleted: createBatch(clock, async (elicitationId) =>
              listener.elicitationCompleted?.(elicitationId, server.name),
            ),
          }),
          ...(hearsOfLogs && { logged: createPassLogs(path, server, who, passGuards) }),
        },
        own,
      );
      stops.set(server, stop);
    }

    /** Notifies with the URI that clients know, and only if the caller may read the resource. */
    async function tellOfResource(server: Server, ownUri: string): Promise<void> {
      if (!isOpen) return;
      const { name } = server;
      for (const uri of view.shown === 'own' ? [ownUri] : listClientUris(name, ownUri)) {
        // Most URIs are found without looking up links in the store.
        const offered = await view.findResource(uri, who);
        const found = offered?.server === name ? offered : await resolveResource(uri, who);
        if (found?.server !== name || found.ownUri !== ownUri) continue;
        if (isOpen && access.mayRead(found, who)) listener.resourceUpdated(uri);
        return;
      }
    }

    // Best effort: a client that misses a change still reads the current state.
    const listenIfPossible = () => void listenToAll().catch(() => {});
    const stopHub = hub.add({
      caller: who.upstream,
      isStream: true,
      hears(server) {
        if (view.findServer(server.name) !== server) return false;
        const planned = served.current.servers.get(server.name);
        return planned !== undefined && mayUseSome(served.current, planned, who);
      },
      listChanged: (list) => listener.listChanged(list),
      serversChanged() {
        listenIfPossible();
        builtIn.follow();
      },
    });
    listenIfPossible();
    return () => {
      isOpen = false;
      stopAll([builtIn.stop, stopHub, ...stops.values()]);
    };
  };

/** Stops each one, even if another throws. @throws the error of one of them. */
function stopAll([stop, ...others]: readonly (() => void)[]): void {
  try {
    stop?.();
  } finally {
    if (others.length > 0) stopAll(others);
  }
}

// §18.3: log messages that servers send outside of calls, for the client session that they belong to.

/** A caller who cannot see any entry of a server, because of the rules or the lock, gets none of its log messages. */
function createPassLogs(
  path: ServedPath,
  server: Server,
  who: Who,
  pass: (params: JsonObject) => void,
): (params: JsonObject) => void {
  const { view, clock, served } = path;
  const isServed = () => view.findServer(server.name) === server;
  const passIfVisible = createPassWhenKnown({
    clock,
    async learn() {
      /** The plan whose rules apply to the message. */
      const plan = served.current;
      // Checks only lists that are known without a request to the server.
      const isVisible = await seesSome(path, who, async (kind) =>
        (await view.list(kind, who, 'peek')).entries.filter(
          (entry) => entry.server === server.name,
        ),
      );
      return { plan, isVisible };
    },
    holds: ({ plan }) => plan === served.current,
    pass(params: JsonObject, { isVisible }) {
      if (isVisible && isServed()) pass(params);
    },
  });

  return function passLog(params) {
    if (!isServed()) return;
    if (served.current.policies.allowAll) pass(params);
    else passIfVisible(params);
  };
}

/** §26: guards check log messages as they do in calls. The guards in effect when the message arrives apply. */
function createPassGuards(
  { served }: ServedPath,
  server: string,
  { user, clientId, view }: IdentifiedCaller,
  tell: (params: JsonObject) => void,
): (params: JsonObject) => void {
  const item = { kind: undefined, name: '', server };
  const caller = { user, clientId, view, id: undefined, trace: {} };
  let gate: { readonly guard: Guard; readonly opened: NotificationGate } | undefined;

  return function passLog(params) {
    const guard = served.current.guards?.find('notifications', item);
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

// §18.3: reports changes to the built-in catalogue on one stream, while the configuration file includes that catalogue.

function createBuiltInListening(
  path: ServedPath,
  caller: IdentifiedCaller,
  listener: CatalogListener,
  uris: readonly string[] | undefined,
) {
  const { view, access } = path;
  let current: { readonly catalog: OwnCatalog; stop(): void } | undefined;

  function listenTo(catalog: OwnCatalog): void {
    const opened = { catalog, stop() {} };
    // An author's catalogue may call back while `listen` is running, or after it was stopped.
    const isHeard = () => current === opened;
    const passGuards = createPassGuards(path, BUILT_IN, caller, (params) => {
      if (isHeard()) listener.logged?.(params);
    });
    current = opened;
    try {
      opened.stop = catalog.listen(
        caller,
        {
          listChanged(list) {
            if (isHeard()) listener.listChanged(list);
          },
          resourceUpdated(uri) {
            // Configuration and rules may have changed since the client subscribed. Fails closed.
            const item = { server: BUILT_IN, ownUri: uri, uri, annotations: {} };
            if (!isHeard() || !view.includes(item) || !access.mayRead(item, toWho(caller))) return;
            Promise.resolve(catalog.canWatch(uri, caller)).then(
              (isWatched) => {
                if (isWatched && isHeard()) listener.resourceUpdated(uri);
              },
              () => {},
            );
          },
          elicitationCompleted(elicitationId) {
            if (isHeard()) listener.elicitationCompleted?.(elicitationId);
          },
          logged(params) {
            if (isHeard()) passGuards(params);
          },
        },
        uris,
      );
    } catch (error) {
      current = undefined;
      throw error;
    }
  }

  function stop(): void {
    const former = current;
    current = undefined;
    former?.stop();
  }

  return {
    /**
     * Starts or stops listening, according to the current configuration file.
     *
     * @throws the error of an author's `watch` or `listen`, or of the function that stops them.
     */
    follow(): void {
      const catalog = findBuiltIn(path);
      if (current?.catalog === catalog) return;
      stop();
      if (catalog) listenTo(catalog);
    },
    stop,
  };
}
