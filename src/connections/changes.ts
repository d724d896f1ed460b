// §24: what happened to a connection, told to all replicas: what they know of it ends, and whoever waits for it goes on.

import type { ConnectionOwner, ConnectionState } from '../mcp/upstream/connection.ts';
import { isObject } from '../platform/json.ts';
import { createWarnThrottle } from '../platform/throttle.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Replicas } from '../store/replicas/replicas.ts';
import type { KnownAccess } from './access/known-access.ts';
import type { ConnectionPlace, FindPlace } from './records/place.ts';
import type { LockReleases } from './records/run-exclusively.ts';

/** `renewed`: it has another token, and is the same. `declined`: somebody said no to a link for it. */
export type ConnectionChange = ConnectionState | 'renewed' | 'declined';

export interface ConnectionChanges {
  /** Here at once; at the other replicas soon, unless the message is lost. Never throws. What is known here was set right before. */
  announce(place: ConnectionPlace, change: ConnectionChange): void;
  /** Returns a function that ends it. */
  listen(listener: (place: ConnectionPlace, change: ConnectionChange) => void): () => void;
}

export type ConnectionMessage = (
  | { readonly owner: ConnectionOwner; readonly server: string; readonly change: ConnectionChange }
  /** Work for which another replica may wait has ended. */
  | { readonly released: string }
) & {
  /** The replica that says so, which knows it already. */
  readonly from: string;
};

const CHANGES: ReadonlySet<unknown> = new Set([
  'missing',
  'active',
  'login needed',
  'renewed',
  'declined',
] satisfies ConnectionChange[]);

export const isConnectionMessage = (value: unknown): value is ConnectionMessage =>
  isObject(value) &&
  typeof value.from === 'string' &&
  (typeof value.released === 'string' ||
    (isOwner(value.owner) && typeof value.server === 'string' && CHANGES.has(value.change)));

const isOwner = (value: unknown): boolean =>
  value === 'shared' || (isObject(value) && typeof value.sub === 'string');

export function createConnectionChanges(
  { clock, log }: Runtime,
  replicas: Pick<Replicas<ConnectionMessage>, 'send' | 'listen' | 'ownName'>,
  known: Pick<KnownAccess, 'forget'>,
  findPlace: FindPlace,
): ConnectionChanges & LockReleases {
  const listeners = new Set<(place: ConnectionPlace, change: ConnectionChange) => void>();
  const waiting = new Map<string, Set<() => void>>();
  const { ownName: from } = replicas;
  const warn = createWarnThrottle(clock, (cause: unknown) =>
    log.warn('Other replicas hear of changed connections up to 30 s late.', { cause }),
  );

  function tell(place: ConnectionPlace, change: ConnectionChange): void {
    for (const listener of [...listeners]) listener(place, change);
  }

  function tellReleased(hash: string): void {
    for (const listener of [...(waiting.get(hash) ?? [])]) listener();
  }

  replicas.listen((message) => {
    if (message.from === from) return;
    if ('released' in message) {
      tellReleased(message.released);
      return;
    }
    const place = findPlace(message.owner, message.server);
    // Before anybody else hears of it.
    known.forget(place);
    tell(place, message.change);
  });

  return {
    announce(place, change) {
      tell(place, change);
      const { owner, server } = place;
      replicas.send({ owner, server, change, from }).catch(warn);
    },
    listen(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    announceRelease(hash) {
      // In this process nobody waits for it: they have its outcome.
      replicas.send({ released: hash, from }).catch(() => {});
    },
    onRelease(hash, listener) {
      const others = waiting.get(hash) ?? new Set();
      waiting.set(hash, others.add(listener));
      return () => {
        others.delete(listener);
        if (others.size === 0) waiting.delete(hash);
      };
    },
  };
}
