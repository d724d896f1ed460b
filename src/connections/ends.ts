// §24: connections end: here at once, and at the authorization server where it can be told (RFC 7009).

import type { ConnectionServer, EndedBy } from '../mcp/upstream/connection.ts';
import type { Connections } from '../mcp/upstream/connections.ts';
import { createWorkQueue } from '../platform/work-queue.ts';
import type { KeptConnections } from './kept-connections.ts';
import type { ConnectionPlace } from './records/place.ts';
import type { RevokeConnection } from './servers/revocation.ts';

interface End {
  readonly isEnded: boolean;
  readonly problem: string | undefined;
}

/** Of those that end together. */
const MAX_AT_ONCE = 20;

export function createConnectionEnds(
  { records, known, changes, observers, findPlace, listServers }: KeptConnections,
  revokeConnection: RevokeConnection,
): Pick<Connections, 'end' | 'endOfUser' | 'endAtServer'> {
  const findServer = (name: string) => listServers().find((one) => one.name === name);

  /** First here: whatever the authorization server says, nothing is sent by it from now on. */
  async function endOne(
    place: ConnectionPlace,
    server: ConnectionServer | undefined,
    by: EndedBy,
  ): Promise<End> {
    const taken = await records.take(place);
    known.forget(place);
    if (taken === undefined) return { isEnded: false, problem: undefined };
    changes.announce(place, 'missing');
    const { record } = taken;
    if (record !== undefined) {
      const { owner, server: name } = place;
      const event = { owner, server: name, connectionId: record.id, by };
      for (const observer of observers) observer.ended?.(event);
    }
    return { isEnded: true, problem: await revokeConnection(place, server, record) };
  }

  async function endAll(places: readonly ConnectionPlace[], by: EndedBy) {
    const queue = createWorkQueue({
      maxRunning: MAX_AT_ONCE,
      maxWaiting: places.length,
      createRefusal: () => new Error('unreachable'),
    });
    const ends = await Promise.all(
      places.map((place) => queue.run(() => endOne(place, findServer(place.server), by))),
    );
    const ended = ends.filter(({ isEnded }) => isEnded);
    return {
      ended: ended.length,
      failed: ended.filter(({ problem }) => problem !== undefined).length,
    };
  }

  return {
    async end(owner, server, by) {
      const { isEnded, problem } = await endOne(findPlace(owner, server.name), server, by);
      return { ended: isEnded, problem };
    },
    async endOfUser(owner, by) {
      // Any server will do: the list is the user's.
      const servers = await records.listOfUser(findPlace(owner, ''));
      return endAll(
        servers.map((server) => findPlace(owner, server)),
        by,
      );
    },
    async endAtServer(server, by) {
      const places: ConnectionPlace[] = [];
      for await (const owner of records.listOfServer(server)) places.push(findPlace(owner, server));
      return endAll(places, by);
    },
  };
}
