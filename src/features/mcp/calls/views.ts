import type { Clock } from '../../../core/clock.ts';
import type { Metrics } from '../../../core/metrics/metrics.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Era } from '../protocol/revisions.ts';
import { createCallTool } from './call-tool.ts';
import { createMethods } from './methods.ts';
import type { View } from './view.ts';

/** What stands behind each path. */
export interface Catalogs {
  readonly all: Catalog;
  /** The server's own, under its own names; the same object each time. Undefined for an unknown server. */
  findServer(name: string): Catalog | undefined;
}

export interface Views {
  readonly all: View;
  findServer(name: string): View | undefined;
}

export interface ViewsDeps {
  readonly catalogs: Catalogs;
  readonly metrics: Metrics;
  readonly clock: Clock;
}

export function createViews({ catalogs, metrics, clock }: ViewsDeps): Views {
  const known = new WeakMap<Catalog, View>();

  function createView(catalog: Catalog, server: string | undefined): View {
    const createEraMethods = (era: Era) =>
      createMethods(catalog, createCallTool({ catalog, metrics, clock }, era));
    const methods = {
      session: createEraMethods('session'),
      stateless: createEraMethods('stateless'),
    };
    return { server, catalog, methods };
  }

  return {
    all: createView(catalogs.all, undefined),
    findServer(name) {
      const catalog = catalogs.findServer(name);
      if (catalog === undefined) return undefined;
      const view = known.get(catalog) ?? createView(catalog, name);
      known.set(catalog, view);
      return view;
    },
  };
}
