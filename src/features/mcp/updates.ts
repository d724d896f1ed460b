import type { Catalog } from './catalog.ts';

/** Calls `listener` with the URI of each resource that has changed, until the result is called. */
export type Updates = (listener: (uri: string) => void) => () => void;

/** The catalogue is watched once for all, and only while somebody listens. */
export function createUpdates(catalog: Catalog): Updates {
  const listeners = new Set<(uri: string) => void>();
  let stop: (() => void) | undefined;

  function changed(uri: string): void {
    for (const listener of listeners) listener(uri);
  }

  return function listen(listener) {
    listeners.add(listener);
    stop ??= catalog.watchResources(changed);
    return () => {
      listeners.delete(listener);
      if (listeners.size > 0) return;
      stop?.();
      stop = undefined;
    };
  };
}
