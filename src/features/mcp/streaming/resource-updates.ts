import type { Clock } from '../../../core/clock.ts';
import type { Log } from '../../../core/log.ts';
import type { Catalog } from '../catalog/catalog.ts';

/**
 * Calls `listener` with the URI of each resource that has changed, until the result is called.
 *
 * @throws what an author's `watch` throws.
 */
export type Updates = (listener: (uri: string) => void) => () => void;

export interface UpdatesDeps {
  readonly catalog: Catalog;
  readonly clock: Clock;
  readonly log: Log;
}

/** Each stream asks the store at each change: what changes all the time is told at this pace. */
const PACE_MS = 250;

/** The catalogue is watched once for all, and only while somebody listens. */
export function createUpdates({ catalog, clock, log }: UpdatesDeps): Updates {
  const listeners = new Set<(uri: string) => void>();
  /** Told a moment ago; true where it has changed since. */
  const paced = new Map<string, boolean>();
  let stop: (() => void) | undefined;

  function changed(uri: string): void {
    if (paced.has(uri)) {
      paced.set(uri, true);
      return;
    }
    paced.set(uri, false);
    clock.after(PACE_MS, () => {
      const again = paced.get(uri);
      paced.delete(uri);
      if (again) changed(uri);
    });
    for (const listener of listeners) tell(listener, uri);
  }

  /** What is called here comes from an author's emitter or timer, which must not be thrown at. */
  function tell(listener: (uri: string) => void, uri: string): void {
    try {
      listener(uri);
    } catch (cause) {
      log.error('A change of a resource could not be told; please report this.', { cause });
    }
  }

  return function listen(listener) {
    listeners.add(listener);
    try {
      stop ??= catalog.watchResources(changed);
    } catch (error) {
      listeners.delete(listener);
      throw error;
    }
    return () => {
      listeners.delete(listener);
      if (listeners.size > 0) return;
      stop?.();
      stop = undefined;
      paced.clear();
    };
  };
}
