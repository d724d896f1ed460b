// §18.2: a path that is served, with all that answers for it.

import type { OwnCatalog } from '../mcp/catalog/own-catalog.ts';
import type { ConnectUser, RelayCall } from '../mcp/upstream/server-request.ts';
import type { Clock } from '../platform/clock.ts';
import type { ChangeHub, MissedLists } from './change-hub.ts';
import type { LinkedResources } from './linked-resources.ts';
import type { Plan } from './plan.ts';
import type { ItemAccess, View } from './view.ts';

export interface ServedPath {
  readonly view: View;
  /** That of `/mcp`, whose names are those of all paths but of a server's own. */
  readonly joined: View;
  readonly access: ItemAccess;
  readonly relayCall: RelayCall;
  readonly connectUser: ConnectUser;
  readonly links: LinkedResources;
  readonly hub: ChangeHub;
  readonly missedLists: MissedLists;
  readonly clock: Clock;
  getPlan(): Plan;
}

/** The gateway's own catalogue; undefined where this path does not serve it. */
export const findBuiltIn = ({
  view,
  getPlan,
}: Pick<ServedPath, 'view' | 'getPlan'>): OwnCatalog | undefined =>
  view.hasBuiltIn() ? getPlan().builtIn?.catalog : undefined;
