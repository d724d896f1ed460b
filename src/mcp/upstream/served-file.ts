// The configuration file that is served now, as features see it that the servers of the file do not concern otherwise.
import type { NamedPaths } from '../../http/endpoint/endpoint.ts';

import type { ConnectionServer } from './connections.ts';

/** Asked each time: another file may take its place. */
export interface ServedFile extends NamedPaths {
  /** In the file's order: servers at which users log in themselves (§24). */
  listConnectionServers(): readonly ConnectionServer[];
  /** The claims that rules ask for: without them nobody knows what a user may. */
  listNamedClaims(): readonly string[];
}
