// §18.3: the resources of one process that somebody subscribed to: the server is asked once for each.
import { toListenParams } from '../../mcp/upstream/description.ts';
import { toStatelessParams } from '../../mcp/upstream/envelope.ts';
import {
  GATEWAY_CALLER,
  UpstreamError,
  type UpstreamRuntime,
} from '../../mcp/upstream/upstream.ts';
import { computePauseMs } from '../../platform/clock.ts';
import { createCountedBus } from '../../platform/counted-bus.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { isObject } from '../../platform/json.ts';
import { createBatch } from '../../platform/throttle.ts';
import { buildUpstreamSubscriptionsChannelName } from '../../store/keys.ts';
import { createReplicas } from '../../store/replicas/replicas.ts';
import { BACK_OFF } from '../transport/process-share.ts';
import {
  createSessionRecords,
  createSubscriptionMemory,
  failTooMany,
  hashSession,
  MAX_SUBSCRIPTIONS,
} from '../transport/session-records.ts';
import type { RunningServer } from './server-run.ts';
import type { StdioUpstreamConfig } from './stdio-config.ts';

export type Subscriptions = ReturnType<typeof createSubscriptions>;

/** A client's session by its ID, or a listener. */
type SubscriptionOwner = string | object;

interface Agreement {
  agreed: Promise<void>;
  /** Then the server need not be told that nobody wants it any more. */
  isRefused: boolean;
}

/** URIs that are wanted at one process, and characters of each. */
const MAX_URIS = 10_000;
const MAX_URI = 8192;
/** A server chooses how many slashes there are. */
const MAX_PARENTS = 60;

export function createSubscriptions(onError: (cause: unknown) => void) {
  let wire: SubscriptionWire | undefined;
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

  async function ask(uri: string): Promise<void> {
    await wire?.subscribe(uri);
  }

  async function add(owner: SubscriptionOwner, uri: string): Promise<void> {
    if (uri.length > MAX_URI) failFull('topics');
    wanted.subscribe(uri, owner);
    await wanted.topics.get(uri)?.source?.agreed;
  }

  return {
    /** Resources that somebody subscribed to. */
    get count() {
      return wanted.topics.size;
    },
    get isConnected() {
      return wire !== undefined;
    },
    /** Resolves when the server has agreed. @throws UpstreamError */
    add,
    remove: (owner: SubscriptionOwner, uri: string) => wanted.unsubscribe(uri, owner),
    /** The owner wants these, and no others. What the server does not agree to is not told of. */
    replaceAll(owner: SubscriptionOwner, uris: readonly string[]) {
      for (const [uri] of wanted.topics) if (!uris.includes(uri)) wanted.unsubscribe(uri, owner);
      for (const uri of uris) add(owner, uri).catch(() => {});
    },
    /** Clients' sessions that subscribed to something. */
    listSessions: () =>
      [...wanted.topics.values()].flatMap(({ listeners }) =>
        [...listeners].filter((owner) => typeof owner === 'string'),
      ),
    /** The owner is gone. */
    removeAll: wanted.unsubscribeAll,
    /** True if the owner wants to know that the resource, or a part of it, has changed. */
    isWanted: (owner: SubscriptionOwner, uri: string) =>
      uri.length <= MAX_URI &&
      listParents(uri).some((parent) => wanted.topics.get(parent)?.listeners.has(owner)),
    /** A process has started, which knows of no subscription. */
    connect(running: RunningServer, timeoutMs: number) {
      wire = WIRES[running.description.era](running, timeoutMs);
      for (const [uri, { source }] of wanted.topics) {
        if (source === undefined) continue;
        source.agreed = ask(uri);
        // Resources that it no longer has are not told of.
        source.agreed.catch(() => {});
      }
    },
    disconnect() {
      wire = undefined;
    },
  };
}

function failFull(what: 'topics' | 'topicsOfListener'): never {
  if (what === 'topics') {
    throw new UpstreamError('unavailable', 'too many of its resources are subscribed to');
  }
  return failTooMany();
}

/** The URI, and those that it is a part of, with and without the slash at their end. */
function listParents(uri: string): readonly string[] {
  const parents = [uri];
  let at = uri.lastIndexOf('/');
  while (at > 0 && parents.length < MAX_PARENTS) {
    parents.push(uri.slice(0, at), uri.slice(0, at + 1));
    at = uri.lastIndexOf('/', at - 1);
  }
  return parents;
}

// MCP "Resources", "Subscriptions": how a process of either era is told. One that is connected tells of its lists, too.

interface SubscriptionWire {
  subscribe(uri: string): Promise<void>;
  unsubscribe(uri: string): void;
}

const WIRES = { session: createSessionWire, stateless: createStatelessWire } as const;

function createSessionWire({ connection }: RunningServer, timeoutMs: number): SubscriptionWire {
  return {
    async subscribe(uri) {
      await connection.ask('resources/subscribe', { uri }, timeoutMs);
    },
    unsubscribe: (uri) =>
      void connection.ask('resources/unsubscribe', { uri }, timeoutMs).catch(() => {}),
  };
}

/** One subscription says all that is wanted; a change of it is a new one. */
function createStatelessWire({ connection, description }: RunningServer): SubscriptionWire {
  const uris = new Set<string>();
  let cancel = () => {};
  let isOpening = false;

  function open(): void {
    isOpening = false;
    const params = toListenParams(description, [...uris]);
    const cancelFormer = cancel;
    cancel =
      params === undefined
        ? () => {}
        : connection.openSubscription(
            toStatelessParams(
              { params, trace: {}, logLevel: undefined },
              0,
              GATEWAY_CALLER.capabilities,
            ),
          );
    cancelFormer();
  }

  /** Several changes at once are one. */
  function openSoon(): void {
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

// §18.3: each replica has processes of its own, and a client's stream may be at another replica than the one that took
// its subscription: what sessions subscribed to is in the store, and what has changed is told to all replicas.

/** A process of the replica `from` says that a resource has changed; `keyId` says for whom the process is. */
interface UpdateMessage {
  readonly from: string;
  readonly keyId: string;
  readonly uri: string;
}

interface Watcher {
  readonly sessionId: string;
  tell(uris: readonly string[]): void;
}

/** `onUpdate` is told what processes of other replicas say. */
export function createStdioReplicas(
  runtime: UpstreamRuntime,
  { name }: StdioUpstreamConfig,
  onUpdate: (keyId: string, uri: string) => void,
) {
  const { config, store, clock, log } = runtime;
  const { keyPrefix } = config.mcp.sessions;
  const identity = `stdio ${name} subscriptions`;
  const channel = buildUpstreamSubscriptionsChannelName(keyPrefix, hashSha256(identity));
  /** Keyed by the hash of their session's id. */
  const watchers = createCountedBus<string, Watcher>({
    onError: (cause) => log.error('A listener failed; please report this.', { cause }),
  });
  const batches = new Map<string, (uri: string) => void>();
  const memory = createSubscriptionMemory(
    store,
    createSessionRecords(runtime, identity),
    channel,
    (sessionHash) => watchers.publish(sessionHash, (watcher) => void tellSubscriptions(watcher)),
  );
  const replicas = createReplicas<UpdateMessage>(runtime, `${channel}:updates`, isUpdateMessage);
  replicas.listen(({ from, keyId, uri }) => {
    if (from !== replicas.ownName) onUpdate(keyId, uri);
  });

  const isWatching = (watcher: Watcher): boolean =>
    watchers.topics.get(hashSession(watcher.sessionId))?.listeners.has(watcher) === true;

  /** While the store does not say, what was told before holds. */
  async function tellSubscriptions(watcher: Watcher, failures = 0): Promise<void> {
    const uris = await memory.read(watcher.sessionId).catch(() => undefined);
    if (!isWatching(watcher)) return;
    if (uris === undefined) askAgainLater(watcher, failures + 1);
    else watcher.tell(uris);
  }

  function askAgainLater(watcher: Watcher, failures: number): void {
    clock.after(computePauseMs(BACK_OFF, failures), () => {
      if (isWatching(watcher)) void tellSubscriptions(watcher, failures);
    });
  }

  /** Those of other processes are not kept waiting by one that tells of many. */
  function findBatch(keyId: string): (uri: string) => void {
    if (batches.size >= MAX_BATCHES) batches.clear();
    const batch =
      batches.get(keyId) ??
      createBatch(clock, (uri) => replicas.send({ from: replicas.ownName, keyId, uri }));
    batches.set(keyId, batch);
    return batch;
  }

  return {
    change: memory.change,
    async forget(sessionId: string) {
      await memory.forget(sessionId);
      await store.publish(channel, hashSession(sessionId));
    },
    /** Tells what the session subscribed to at any replica, now and when that changes, until the result is called. */
    watch(sessionId: string, tell: Watcher['tell']) {
      const watcher = { sessionId, tell };
      const stop = watchers.subscribe(hashSession(sessionId), watcher);
      void tellSubscriptions(watcher);
      return stop;
    },
    /** A process here says that the resource has changed. */
    noteUpdate: (keyId: string, uri: string) => findBatch(keyId)(uri),
    close() {
      watchers.endAll();
      memory.close();
      replicas.close();
    },
  };
}

/** Users whose processes told of a resource. */
const MAX_BATCHES = 1000;

const isUpdateMessage = (value: unknown): value is UpdateMessage =>
  isObject(value) &&
  [value.from, value.keyId, value.uri].every((member) => typeof member === 'string');
