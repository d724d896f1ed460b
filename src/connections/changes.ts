// §24: what happened to a connection, told to all replicas: what they know of it ends, and whoever waits for it goes on.
import type { Clock } from '../platform/clock.ts';
import { isObject } from '../platform/json.ts';
import type { Log } from '../platform/log.ts';
import { createWarnThrottle } from '../platform/throttle.ts';
import type { Replicas } from '../store/replicas/replicas.ts';
import type { ConnectionOwner, ConnectionState } from './connection.ts';
import type { FindPlace, Place } from './records/place.ts';

export interface Change {
  /** `renewed`: it has another token, and is the same. `declined`: somebody said no to a link for it. */
  readonly what: ConnectionState | 'renewed' | 'declined';
}

export interface ConnectionChanges {
  /** Here at once; at the other replicas soon, unless the message is lost. Never rejects. */
  announce(place: Place, what: Change['what']): void;
  listen(listener: (place: Place, what: Change['what']) => void): () => void;
}

export interface ConnectionMessage extends Change {
  readonly owner: ConnectionOwner;
  readonly server: string;
  /** The replica that says so, which knows it already. */
  readonly from: string;
}

const WHAT: ReadonlySet<unknown> = new Set([
  'missing',
  'active',
  'login needed',
  'renewed',
  'declined',
] satisfies Change['what'][]);

export const isConnectionMessage = (value: unknown): value is ConnectionMessage =>
  isObject(value) &&
  (value.owner === 'shared' || (isObject(value.owner) && typeof value.owner.sub === 'string')) &&
  typeof value.server === 'string' &&
  typeof value.from === 'string' &&
  WHAT.has(value.what);

export interface ConnectionChangesDeps {
  readonly replicas: Pick<Replicas<ConnectionMessage>, 'send' | 'listen' | 'ownName'>;
  readonly findPlace: FindPlace;
  readonly clock: Clock;
  readonly log: Log;
}

export function createConnectionChanges({
  replicas,
  findPlace,
  clock,
  log,
}: ConnectionChangesDeps): ConnectionChanges {
  const listeners = new Set<(place: Place, what: Change['what']) => void>();
  const warn = createWarnThrottle(clock, (cause: unknown) =>
    log.warn('Other replicas hear of changed connections up to 30 s late.', { cause }),
  );

  function tell(place: Place, what: Change['what']): void {
    for (const listener of [...listeners]) listener(place, what);
  }

  replicas.listen(({ owner, server, what, from }) => {
    if (from !== replicas.ownName) tell(findPlace(owner, server), what);
  });

  return {
    announce(place, what) {
      tell(place, what);
      const { owner, server } = place;
      replicas.send({ owner, server, what, from: replicas.ownName }).catch(warn);
    },
    listen(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
