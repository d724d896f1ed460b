// §18.3: what the built-in catalogue tells of its changes, to one stream, for as long as the configuration file serves it.

import type { CatalogListener } from '../../mcp/catalog/catalog.ts';
import type { OwnCatalog } from '../../mcp/catalog/own-catalog.ts';
import type { IdentifiedCaller } from '../../mcp/catalog/served-catalog.ts';
import type { Plan } from './plan.ts';
import { BUILT_IN } from './prepare-list.ts';
import { type Access, toWho, type View } from './view.ts';

export interface BuiltInListening {
  /**
   * Begins or stops to listen, as the configuration file says now.
   *
   * @throws what an author's `watch` or `listen` throws, or what stops them.
   */
  follow(): void;
  stop(): void;
}

export interface BuiltInListeningDeps {
  readonly view: View;
  readonly access: Access;
  getPlan(): Plan;
}

interface Listening {
  readonly catalog: OwnCatalog;
  stop(): void;
}

export function createBuiltInListening(
  { view, access, getPlan }: BuiltInListeningDeps,
  caller: IdentifiedCaller,
  listener: CatalogListener,
  uris: readonly string[] | undefined,
): BuiltInListening {
  let current: Listening | undefined;

  function listenTo(catalog: OwnCatalog): void {
    const opened: Listening = { catalog, stop() {} };
    // An author's catalogue may tell something while it is told to begin, or after it was told to stop.
    const isHeard = () => current === opened;
    current = opened;
    try {
      opened.stop = catalog.listen(
        caller,
        {
          listChanged(list) {
            if (isHeard()) listener.listChanged(list);
          },
          resourceUpdated: (uri) => tellIfReadable(catalog, uri, isHeard),
          elicitationCompleted(elicitationId) {
            if (isHeard()) listener.elicitationCompleted?.(elicitationId);
          },
          logged(params) {
            if (isHeard()) listener.logged?.(params);
          },
        },
        uris,
      );
    } catch (error) {
      current = undefined;
      throw error;
    }
  }

  /** Configuration and rules may have changed since it subscribed. Who cannot be asked about misses it. */
  function tellIfReadable(catalog: OwnCatalog, uri: string, isHeard: () => boolean): void {
    const item = { server: BUILT_IN, ownUri: uri, uri, annotations: {} };
    if (!isHeard() || !view.includes(item) || !access.mayRead(item, toWho(caller))) return;
    Promise.resolve(catalog.canWatch(uri, caller)).then(
      (isWatched) => {
        if (isWatched && isHeard()) listener.resourceUpdated(uri);
      },
      () => {},
    );
  }

  function stop(): void {
    const former = current;
    current = undefined;
    former?.stop();
  }

  return {
    follow() {
      const catalog = view.hasBuiltIn() ? getPlan().builtIn?.catalog : undefined;
      if (current?.catalog === catalog) return;
      stop();
      if (catalog) listenTo(catalog);
    },
    stop,
  };
}
