// §18.2: a view as the catalogue of its path: what is asked for is found, and passed on to whose it is.
import type { Clock } from '../../../core/clock.ts';
import type { IdentifiedCaller, ServedCatalog } from '../../mcp/catalog/served-catalog.ts';
import type { RelayCall } from '../relay/relayed-call.ts';
import type { Access } from './access.ts';
import type { ChangeHub } from './change-hub.ts';
import { createComplete } from './completion.ts';
import { ALL_OFFERS, describeView } from './describe-view.ts';
import { createFindItem } from './find-item.ts';
import { toWho } from './identify.ts';
import type { LinkedResources } from './linked-resources.ts';
import { createListPage } from './list-page.ts';
import { createPassOn } from './pass-on.ts';
import type { Plan } from './plan.ts';
import { createResolveResource } from './resolve-resource.ts';
import { createResolveTarget } from './resolve-target.ts';
import type { View } from './view.ts';
import { createWatching } from './watching.ts';

export interface ViewCatalogDeps {
  readonly view: View;
  /** That of `/mcp`. */
  readonly joined: View;
  readonly access: Access;
  readonly relayCall: RelayCall;
  readonly links: LinkedResources;
  readonly hub: ChangeHub;
  readonly clock: Clock;
  getPlan(): Plan;
}

export function createViewCatalog(deps: ViewCatalogDeps): ServedCatalog {
  const { view, links, getPlan } = deps;
  const getBuiltIn = () => (view.shown === 'joined' ? getPlan().builtIn?.catalog : undefined);
  const resolveResource = createResolveResource(view, deps.joined, links);
  const findItem = createFindItem({ ...deps, resolveResource });
  const passOn = createPassOn(view, deps.relayCall, links);
  const parts = { ...deps, ...findItem, passOn, getBuiltIn };

  return {
    server: view.path === '' ? undefined : view.path,
    offers: ALL_OFFERS,
    isShared: false,
    get mirrorHeaders() {
      return getBuiltIn()?.mirrorHeaders ?? [];
    },
    describe: (caller) => describeView(deps, caller),
    list: createListPage({ ...deps, dependsOnCaller: () => getPlan().policies.dependOnCaller }),
    resolve: createResolveTarget(parts),
    complete: createComplete(parts),
    ...createWatching({ ...deps, resolveResource }),
    endSession(caller) {
      const sessionId = caller.session?.sessionId;
      if (sessionId !== undefined) links.forget(sessionId);
      getBuiltIn()?.endSession(caller);
      // Whoever it belongs to cannot be told any more.
      endSessions(view, caller).catch(() => {});
    },
  };
}

async function endSessions(view: View, caller: IdentifiedCaller): Promise<void> {
  const who = toWho(caller);
  await Promise.all(view.listServers().map(({ upstream }) => upstream.endSession(who.upstream)));
}
