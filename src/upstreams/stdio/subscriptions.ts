// §18.3: the resources of one process that somebody subscribed to: the server is asked once for each.
import { createCountedBus } from '../../platform/counted-bus.ts';
import { toListenParams } from '../messages/description.ts';
import { toStatelessParams } from '../messages/envelope.ts';
import { GATEWAY_CALLER, UpstreamError } from '../upstream.ts';
import type { RunningServer } from './server-run.ts';

export type Subscriptions = ReturnType<typeof createSubscriptions>;

/** A client's session by its ID, or a listener. */
export type SubscriptionOwner = string | object;

interface Agreement {
  agreed: Promise<void>;
  /** Then the server need not be told that nobody wants it any more. */
  isRefused: boolean;
}

/** URIs that are wanted at one process, and characters of each. */
const MAX_URIS = 10_000;
const MAX_URI = 8192;
/** So many one session may want: none keeps the others out. */
const MAX_OF_OWNER = 200;
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
    bounds: { topics: MAX_URIS, topicsOfListener: MAX_OF_OWNER, failFull },
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
    /** Whether the owner wants to know that the resource, or a part of it, has changed. */
    isWanted: (owner: SubscriptionOwner, uri: string) =>
      uri.length <= MAX_URI &&
      listParents(uri).some((parent) => wanted.topics.get(parent)?.listeners.has(owner)),
    /** A process has started, which knows of no subscription. */
    connect(running: RunningServer, timeoutMs: number) {
      wire = WIRES[running.description.era](running, timeoutMs);
      for (const [uri, { source }] of wanted.topics) {
        if (source === undefined) continue;
        source.agreed = ask(uri);
        // What it no longer has is not told of.
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
  throw new UpstreamError('error', 'too many subscriptions', {
    jsonRpcError: {
      code: -32602,
      message: `A session can subscribe to at most ${MAX_OF_OWNER} resources.`,
    },
  });
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
