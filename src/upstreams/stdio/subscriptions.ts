// §18.3: the resources of one process that somebody subscribed to, counted: the server is asked once for each.
import { UpstreamError } from '../upstream.ts';

export interface Subscriptions {
  /** Resources that somebody subscribed to. */
  readonly count: number;
  readonly isConnected: boolean;
  /** Resolves when the server has agreed. @throws UpstreamError */
  add(owner: SubscriptionOwner, uri: string): Promise<void>;
  remove(owner: SubscriptionOwner, uri: string): void;
  /** The owner wants these, and no others. */
  replaceAll(owner: SubscriptionOwner, uris: readonly string[]): void;
  /** Clients' sessions that subscribed to something. */
  listSessions(): ReadonlySet<string>;
  /** The owner is gone. */
  removeAll(owner: SubscriptionOwner): void;
  /** Whether the owner wants to know that the resource, or a part of it, has changed. */
  isWanted(owner: SubscriptionOwner, uri: string): boolean;
  /** A process has started, which knows of no subscription. */
  connect(wire: SubscriptionWire): void;
  disconnect(): void;
}

/** A client's session by its ID, or a listener. */
export type SubscriptionOwner = string | object;

/** How a process of either era is told. */
export interface SubscriptionWire {
  subscribe(uri: string): Promise<void>;
  unsubscribe(uri: string): void;
}

interface Wanted {
  readonly owners: Set<SubscriptionOwner>;
  agreed: Promise<void>;
}

/** URIs that are wanted at one process, and characters of each. */
const MAX_URIS = 10_000;
const MAX_URI = 8192;
/** So many one session may want: none keeps the others out. */
const MAX_OF_OWNER = 200;
/** A server chooses how many slashes there are. */
const MAX_PARENTS = 60;

export function createSubscriptions(): Subscriptions {
  const wanted = new Map<string, Wanted>();
  let wire: SubscriptionWire | undefined;

  async function ask(uri: string): Promise<void> {
    await wire?.subscribe(uri);
  }

  function remove(owner: SubscriptionOwner, uri: string): void {
    const found = wanted.get(uri);
    if (!found?.owners.delete(owner) || found.owners.size > 0) return;
    wanted.delete(uri);
    wire?.unsubscribe(uri);
  }

  function createWanted(uri: string): Wanted {
    if (wanted.size >= MAX_URIS || uri.length > MAX_URI) {
      throw new UpstreamError('unavailable', 'too many of its resources are subscribed to');
    }
    const created = { owners: new Set<SubscriptionOwner>(), agreed: ask(uri) };
    created.agreed.catch(() => {
      if (wanted.get(uri) === created) wanted.delete(uri);
    });
    wanted.set(uri, created);
    return created;
  }

  const countOf = (owner: SubscriptionOwner): number =>
    [...wanted.values()].filter(({ owners }) => owners.has(owner)).length;

  async function add(owner: SubscriptionOwner, uri: string): Promise<void> {
    const known = wanted.get(uri);
    if (!known?.owners.has(owner) && countOf(owner) >= MAX_OF_OWNER) throw createTooManyError();
    const found = known ?? createWanted(uri);
    found.owners.add(owner);
    await found.agreed;
  }

  return {
    get count() {
      return wanted.size;
    },
    get isConnected() {
      return wire !== undefined;
    },
    add,
    remove,
    replaceAll(owner, uris) {
      for (const uri of [...wanted.keys()]) if (!uris.includes(uri)) remove(owner, uri);
      // What the server does not agree to is not told of.
      for (const uri of uris) add(owner, uri).catch(() => {});
    },
    listSessions: () =>
      new Set(
        [...wanted.values()].flatMap(({ owners }) =>
          [...owners].filter((owner) => typeof owner === 'string'),
        ),
      ),
    removeAll(owner) {
      for (const uri of [...wanted.keys()]) remove(owner, uri);
    },
    isWanted: (owner, uri) =>
      uri.length <= MAX_URI &&
      listParents(uri).some((parent) => wanted.get(parent)?.owners.has(owner)),
    connect(newWire) {
      wire = newWire;
      // What it no longer has is not told of.
      for (const [uri, found] of wanted) {
        found.agreed = ask(uri);
        found.agreed.catch(() => {});
      }
    },
    disconnect() {
      wire = undefined;
    },
  };
}

const createTooManyError = () =>
  new UpstreamError('error', 'too many subscriptions', {
    jsonRpcError: {
      code: -32602,
      message: `A session can subscribe to at most ${MAX_OF_OWNER} resources.`,
    },
  });

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
