import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import type { ServedCatalog } from '../catalog/served-catalog.ts';

export interface ResourceUpdates {
  /**
   * Calls `listener` with the URI of each resource that has changed, until what it returns is called.
   *
   * @throws what an author's `watch` throws.
   */
  subscribe(listener: (uri: string) => void): () => void;
}

export interface ResourceUpdatesDeps {
  readonly catalog: Pick<ServedCatalog, 'watchResources'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Each stream asks the store at each change: a resource that changes all the time is told so often. */
const INTERVAL_MS = 250;

/** The catalogue is watched once for all, and only while somebody listens. */
export function createResourceUpdates({
  catalog,
  clock,
  log,
}: ResourceUpdatesDeps): ResourceUpdates {
  const listeners = new Set<(uri: string) => void>();
  /** Resources published a moment ago; true where they have changed since. */
  const recent = new Map<string, boolean>();
  let stopWatching: (() => void) | undefined;

  function publish(uri: string): void {
    if (recent.has(uri)) {
      recent.set(uri, true);
      return;
    }
    recent.set(uri, false);
    clock.after(INTERVAL_MS, () => {
      const hasChanged = recent.get(uri);
      recent.delete(uri);
      if (hasChanged) publish(uri);
    });
    for (const listener of listeners) callListener(listener, uri);
  }

  /** This is called from an author's emitter or timer, into which nothing must be thrown. */
  function callListener(listener: (uri: string) => void, uri: string): void {
    try {
      listener(uri);
    } catch (cause) {
      log.error('A client could not be told that a resource changed; please report this.', {
        cause,
      });
    }
  }

  return {
    subscribe(listener) {
      listeners.add(listener);
      try {
        stopWatching ??= catalog.watchResources(publish);
      } catch (error) {
        listeners.delete(listener);
        throw error;
      }
      return function unsubscribe() {
        listeners.delete(listener);
        if (listeners.size > 0) return;
        stopWatching?.();
        stopWatching = undefined;
        recent.clear();
      };
    },
  };
}
