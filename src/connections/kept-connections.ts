// §24: where connections are kept, and who is told of them.

import type { ConnectionServer } from '../mcp/upstream/connection.ts';
import type { ConnectionObserver } from '../mcp/upstream/connections.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Replicas } from '../store/replicas/replicas.ts';
import type { Seal } from '../store/seal/seal.ts';
import { createKnownAccess, type KnownAccess } from './access/known-access.ts';
import {
  type ConnectionChanges,
  type ConnectionMessage,
  createConnectionChanges,
} from './changes.ts';
import { createPlaces, type FindPlace } from './records/place.ts';
import { type ConnectionRecords, createConnectionRecords } from './records/records.ts';
import type { LockReleases } from './records/run-exclusively.ts';

export interface KeptConnections {
  readonly seal: Seal;
  /** Those of the configuration file that have connections, as it is now. */
  readonly listServers: () => readonly ConnectionServer[];
  readonly findPlace: FindPlace;
  readonly records: ConnectionRecords;
  readonly known: KnownAccess;
  readonly changes: ConnectionChanges & LockReleases;
  readonly observers: readonly ConnectionObserver[];
}

export function createKeptConnections(
  runtime: Runtime,
  given: Pick<KeptConnections, 'seal' | 'listServers' | 'observers'>,
  replicas: Replicas<ConnectionMessage>,
): KeptConnections {
  const findPlace = createPlaces(runtime.config.oauth.provider?.issuer);
  const known = createKnownAccess(runtime.clock);
  return {
    ...given,
    findPlace,
    known,
    records: createConnectionRecords(runtime, given.seal),
    changes: createConnectionChanges(runtime, replicas, known, findPlace),
  };
}
