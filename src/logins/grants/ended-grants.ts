// §5.11: that a grant has ended, told to all replicas: what its client has open ends with it. Calls that begin later need
// none of this, since each asks the store.
import { createExpiringMap } from '../../platform/bounded-map.ts';
import { isObject } from '../../platform/json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Replicas } from '../../store/replicas/replicas.ts';

export interface EndedGrants {
  /** Never rejects: what is open anywhere then lives as long as it would have. */
  announce(grantId: string): Promise<void>;
  listen(listener: (grantId: string) => void): void;
  /** Whether it was heard of lately: for what was let in before that, and is about to be open. */
  hasEnded(grantId: string): boolean;
}

export interface EndedGrantMessage {
  readonly grantId: string;
}

export const isEndedGrantMessage = (value: unknown): value is EndedGrantMessage =>
  isObject(value) && typeof value.grantId === 'string';

/** Longer than it takes from the look at the store until a stream is open. */
const REMEMBERED_MS = 60_000;
const MAX_REMEMBERED = 10_000;

export function createEndedGrants(
  { clock, log }: Pick<Runtime, 'clock' | 'log'>,
  replicas: Pick<Replicas<EndedGrantMessage>, 'send' | 'listen'>,
): EndedGrants {
  const recent = createExpiringMap<true>(MAX_REMEMBERED, clock.monotonic);
  replicas.listen(({ grantId }) => recent.set(grantId, true, clock.monotonic() + REMEMBERED_MS));

  return {
    announce: (grantId) =>
      replicas.send({ grantId }).catch((cause: unknown) =>
        log.warn('Streams and calls of a login that has ended may go on for some minutes.', {
          grant: grantId,
          cause,
        }),
      ),
    listen: (listener) => replicas.listen(({ grantId }) => listener(grantId)),
    hasEnded: (grantId) => recent.get(grantId) === true,
  };
}
