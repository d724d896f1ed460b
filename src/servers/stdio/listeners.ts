// §18.3: listeners for changes of a server's processes, and their resource subscriptions, on this replica and others.

import { toListenParams, toStatelessParams } from '../../mcp/upstream/envelope.ts';
import {
  GATEWAY_CALLER,
  type UpstreamCaller,
  UpstreamError,
  type UpstreamListener,
  type UpstreamRequest,
  type UpstreamRuntime,
} from '../../mcp/upstream/upstream.ts';
import { createCountedBus } from '../../platform/counted-bus.ts';
import {
  createChangeListeners,
  readChange,
  type ServerChange,
  type ServerNotification,
} from '../messages/server-message.ts';
import type { ProcessShare } from '../transport/process-share.ts';
import {
  createStdioReplicas,
  failTooMany,
  MAX_SUBSCRIPTIONS,
  SUBSCRIBING,
} from '../transport/session-records.ts';
import {
  findOwner,
  findProcessKey,
  GATEWAY_KEY,
  type ProcessKey,
  type RunningServer,
} from './server-run.ts';
import type { StdioUpstreamConfig } from './stdio-config.ts';

interface Listening {
  readonly sessionId: string | undefined;
  readonly listener: UpstreamListener;
}

/** Once there are this many process keys, unused ones are removed. */
const MANY = 100;
const SWEEP_MS = 900_000;

/** `wake` resolves when the caller's process is running. */
export function createProgramListeners(
  runtime: UpstreamRuntime,
  config: StdioUpstreamConfig,
  { isSessionActive, hasReplicas }: ProcessShare,
  wake: (caller: UpstreamCaller) => Promise<void>,
) {
  const { clock, log } = runtime;
  const { name, isolation } = config;
  /** The subscriptions of each process, running or not, by the ID of its key. */
  const rooms = new Map<string, Subscriptions>();
  /** Keyed by the ID of the process's key. */
  const {
    bus: listening,
    tell: tellAll,
    tellMissed,
  } = createChangeListeners<Listening>({ onError }, isWanted);
  /** For each session with subscriptions here, the function that stops watching it, with or without a stream. */
  const held = new Map<string, () => void>();
  const replicas = hasReplicas
    ? createStdioReplicas(runtime, name, (keyId, uri) => tell(keyId, { kind: 'resource', uri }))
    : undefined;

  function onError(cause: unknown) {
    log.error('A listener failed; please report this.', { server: name, cause });
  }

  function findRoom({ id }: ProcessKey) {
    if (rooms.size >= MANY) {
      for (const [other, { isConnected, count }] of rooms)
        if (!isConnected && count === 0 && !listening.topics.has(other)) rooms.delete(other);
    }
    const room = rooms.get(id) ?? createSubscriptions(onError);
    rooms.set(id, room);
    return room;
  }

  const findSubscriptions = (caller: UpstreamCaller) => findRoom(findProcessKey(isolation, caller));

  const hasSubscriptions = ({ id }: ProcessKey) => (rooms.get(id)?.count ?? 0) > 0;

  function tell(keyId: string, change: ServerChange) {
    // A shared process cannot ask a client.
    if (change.kind !== 'elicitation' || keyId !== GATEWAY_KEY.id) tellAll(keyId, change);
  }

  function isWanted(keyId: string, entry: Listening, uri: string) {
    const subscriptions = rooms.get(keyId);
    const owners = entry.sessionId === undefined ? [entry] : [entry, entry.sessionId];
    return owners.some((owner) => subscriptions?.isWanted(owner, uri) === true);
  }

  /** Applies the subscriptions of the client's session from any replica, whether or not its process is running. */
  const watch = (caller: UpstreamCaller, sessionId: string) =>
    replicas?.watch(sessionId, (uris) => {
      findSubscriptions(caller).replaceAll(sessionId, uris);
      if (uris.length > 0) {
        hold(caller, sessionId);
        wake(caller).catch(() => {});
      } else release(sessionId);
    });

  /** Watches the session, which may unsubscribe or end on another replica. */
  function hold(caller: UpstreamCaller, sessionId: string) {
    const stopWatching = held.has(sessionId) ? undefined : watch(caller, sessionId);
    if (stopWatching !== undefined) held.set(sessionId, stopWatching);
  }

  function release(sessionId: string) {
    held.get(sessionId)?.();
    held.delete(sessionId);
  }

  function forgetSession(sessionId: string) {
    release(sessionId);
    for (const { removeAll } of rooms.values()) removeAll(sessionId);
  }

  /** Sessions may end without notice, and their subscriptions would otherwise be kept forever. */
  function sweepLater() {
    cancelSweep = clock.after(SWEEP_MS, () => {
      sweepLater();
      const subscribed = [...rooms.values()].flatMap(({ listSessions }) => listSessions());
      for (const sessionId of new Set([...held.keys(), ...subscribed])) {
        void isSessionActive(sessionId).then((isActive) => {
          if (!isActive) forgetSession(sessionId);
        });
      }
    });
  }

  let cancelSweep = () => {};
  sweepLater();
  return {
    /** Listens until the returned function is called. */
    listen(caller: UpstreamCaller, listener: UpstreamListener, uris: readonly string[]) {
      const { sessionId } = caller;
      const subscriptions = findSubscriptions(caller);
      const entry = { sessionId, listener };
      const stop = listening.subscribe(findProcessKey(isolation, caller).id, entry);
      // Resources that the server does not accept are ignored.
      for (const uri of uris) subscriptions.add(entry, uri).catch(() => {});
      // Starts a process if none is running: only a process reports changes.
      if (uris.length > 0) wake(caller).catch(() => {});
      const stopWatching = sessionId === undefined ? undefined : watch(caller, sessionId);
      return () => {
        stop();
        subscriptions.removeAll(entry);
        stopWatching?.();
      };
    },
    /** Handles `resources/subscribe` and `resources/unsubscribe`. @throws UpstreamError */
    async changeSubscription(caller: UpstreamCaller, { method, params }: UpstreamRequest) {
      const subscriptions = findSubscriptions(caller);
      const owner = findOwner(caller);
      const uri = String(params.uri);
      const isSubscribed = SUBSCRIBING.get(method) === true;
      if (isSubscribed) await subscriptions.add(owner, uri);
      else subscriptions.remove(owner, uri);
      try {
        await replicas?.change(owner, uri, isSubscribed);
        if (isSubscribed && caller.sessionId !== undefined) hold(caller, caller.sessionId);
      } catch (error) {
        subscriptions.remove(owner, uri);
        throw error;
      }
      return {};
    },
    /** A notification from the key's process that does not belong to a request. */
    notify(key: ProcessKey, message: ServerNotification) {
      const change = readChange(message);
      if (change === undefined) return;
      tell(key.id, change);
      if (change.kind === 'resource' && hasSubscriptions(key))
        replicas?.noteUpdate(key.id, change.uri);
    },
    /** The key's process has started. */
    connect(key: ProcessKey, running: RunningServer, timeoutMs: number) {
      const wasConnected = findRoom(key).connect(running, timeoutMs);
      // Changes without a running process were missed.
      if (wasConnected) tellMissed(key.id, running.description);
    },
    disconnect: ({ id }: ProcessKey) => rooms.get(id)?.disconnect(),
    /** True if a listener subscribed to a resource of the key's process. */
    hasSubscriptions,
    async endSession({ sessionId }: UpstreamCaller) {
      if (sessionId === undefined) return;
      forgetSession(sessionId);
      await replicas?.forget(sessionId);
    },
    close() {
      cancelSweep();
      replicas?.close();
    },
  };
}

// §18.3: subscriptions to the resources of one process: the server gets one request per resource.

type Subscriptions = ReturnType<typeof createSubscriptions>;

/** The ID of a client's session, or a listener. */
type SubscriptionOwner = string | object;

interface Agreement {
  agreed: Promise<void>;
  /** True if no unsubscribe request is needed. */
  isRefused: boolean;
}

/** Maximum number of URIs wanted from one process, and maximum characters of each. */
const MAX_URIS = 10_000;
const MAX_URI = 8192;
/** Limited, since a server chooses the number of slashes. */
const MAX_PARENTS = 60;

function createSubscriptions(onError: (cause: unknown) => void) {
  let wire: SubscriptionWire | undefined;
  let wasConnected = false;
  const wanted = createCountedBus<string, SubscriptionOwner, Agreement>({
    start(uri) {
      const agreement = { agreed: ask(uri), isRefused: false };
      agreement.agreed.catch(() => {
        agreement.isRefused = true;
        if (wanted.topics.get(uri)?.source === agreement) wanted.end(uri);
      });
      return agreement;
    },
    stop({ isRefused }, uri) {
      if (!isRefused) wire?.unsubscribe(uri);
    },
    onError,
    bounds: { topics: MAX_URIS, topicsOfListener: MAX_SUBSCRIPTIONS, failFull },
  });

  async function ask(uri: string) {
    await wire?.subscribe(uri);
  }

  async function add(owner: SubscriptionOwner, uri: string) {
    if (uri.length > MAX_URI) failFull('topics');
    wanted.subscribe(uri, owner);
    await wanted.topics.get(uri)?.source?.agreed;
  }

  return {
    /** The number of resources with subscriptions. */
    get count() {
      return wanted.topics.size;
    },
    get isConnected() {
      return wire !== undefined;
    },
    /** Resolves when the server has accepted the subscription. @throws UpstreamError */
    add,
    remove: (owner: SubscriptionOwner, uri: string) => wanted.unsubscribe(uri, owner),
    /** Replaces the resources of the owner. Those that the server does not accept are ignored. */
    replaceAll(owner: SubscriptionOwner, uris: readonly string[]) {
      for (const [uri] of wanted.topics) if (!uris.includes(uri)) wanted.unsubscribe(uri, owner);
      for (const uri of uris) add(owner, uri).catch(() => {});
    },
    /** Clients' sessions with subscriptions. */
    listSessions: () =>
      [...wanted.topics.values()].flatMap(({ listeners }) =>
        [...listeners].filter((owner) => typeof owner === 'string'),
      ),
    /** Removes an owner that is gone. */
    removeAll: wanted.unsubscribeAll,
    /** True if the owner subscribed to the resource, or to a resource that contains it. */
    isWanted: (owner: SubscriptionOwner, uri: string) =>
      uri.length <= MAX_URI &&
      listParents(uri).some((parent) => wanted.topics.get(parent)?.listeners.has(owner)),
    /** A new process has started, without any subscriptions. Returns true if there was one before. */
    connect(running: RunningServer, timeoutMs: number) {
      const isFirst = !wasConnected;
      wasConnected = true;
      wire =
        running.description.era === 'session'
          ? createSessionWire(running, timeoutMs)
          : createStatelessWire(running);
      for (const [uri, { source }] of wanted.topics) {
        if (source === undefined) continue;
        source.agreed = ask(uri);
        // Resources that the process no longer has are ignored.
        source.agreed.catch(() => {});
      }
      return !isFirst;
    },
    disconnect() {
      wire = undefined;
    },
  };
}

function failFull(what: 'topics' | 'topicsOfListener'): never {
  if (what === 'topics')
    throw new UpstreamError('unavailable', 'too many of its resources are subscribed to');
  return failTooMany();
}

/** The URI and its parents, with and without trailing slash. */
function listParents(uri: string): readonly string[] {
  const parents = [uri];
  let at = uri.lastIndexOf('/');
  while (at > 0 && parents.length < MAX_PARENTS) {
    parents.push(uri.slice(0, at), uri.slice(0, at + 1));
    at = uri.lastIndexOf('/', at - 1);
  }
  return parents;
}

// MCP "Resources", "Subscriptions": the wire format of subscriptions in each era. A connected process also reports list changes.

interface SubscriptionWire {
  subscribe(uri: string): Promise<void>;
  unsubscribe(uri: string): void;
}

const createSessionWire = ({ connection }: RunningServer, timeoutMs: number): SubscriptionWire => ({
  async subscribe(uri) {
    await connection.ask('resources/subscribe', { uri }, timeoutMs);
  },
  unsubscribe: (uri) =>
    void connection.ask('resources/unsubscribe', { uri }, timeoutMs).catch(() => {}),
});

/** One subscription contains all wanted resources; each change opens a new one. */
function createStatelessWire({ connection, description }: RunningServer): SubscriptionWire {
  const uris = new Set<string>();
  let cancel = () => {};
  let isOpening = false;

  function open() {
    isOpening = false;
    const params = toListenParams(description, [...uris]);
    const cancelFormer = cancel;
    cancel =
      params === undefined
        ? () => {}
        : connection.openSubscription(
            toStatelessParams({ params, trace: {} }, 0, GATEWAY_CALLER.capabilities),
          );
    cancelFormer();
  }

  /** Debounces: several changes at once open one subscription. */
  function openSoon() {
    if (isOpening) return;
    isOpening = true;
    queueMicrotask(open);
  }

  openSoon();
  return {
    async subscribe(uri) {
      uris.add(uri);
      openSoon();
    },
    unsubscribe(uri) {
      uris.delete(uri);
      openSoon();
    },
  };
}
