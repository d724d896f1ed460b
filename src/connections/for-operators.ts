// §24.6: what operators see and do with connections: how many, whose, and their end. Never a token.
import type { Owner } from '../store/store.ts';
import type { ConnectionInfo, ConnectionOwner, ConnectionServer } from './connection.ts';
import type { Connections } from './connections.ts';

export interface OperatedConnectionsDeps {
  readonly connections: Pick<
    Connections,
    'count' | 'describe' | 'end' | 'endOfUser' | 'endAtServer'
  >;
  /** Those of the configuration file that have connections, as it is now. */
  readonly listServers: () => readonly ConnectionServer[];
}

/** What of it is to end: at least one of both is said. `shared` is the connection that is everybody's. */
export interface EndedSelection {
  /** By its name; it need not be in the configuration file any more. */
  readonly server: string | undefined;
  readonly owner: ConnectionOwner | undefined;
}

export const createOperatedConnections = ({
  connections,
  listServers,
}: OperatedConnectionsDeps) => ({
  /** @throws StoreUnavailable */
  async count() {
    const counts = [];
    // One after the other, so that who looks at it leaves room in the store for calls.
    for (const { name, auth } of listServers()) {
      counts.push({ server: name, owner: auth.owner, ...(await connections.count(name)) });
    }
    return counts;
  },
  /** At each server where users have connections of their own. @throws StoreUnavailable */
  async describeOfUser(owner: Owner): Promise<readonly ConnectionInfo[]> {
    const infos: ConnectionInfo[] = [];
    for (const server of listServers()) {
      if (server.auth.owner === 'user') infos.push(await connections.describe(owner, server));
    }
    return infos;
  },
  /** @throws StoreUnavailable */
  async end({ server: name, owner }: EndedSelection) {
    if (owner === undefined) return connections.endAtServer(name ?? '', 'operator');
    if (name === undefined) return connections.endOfUser(owner, 'operator');
    const server = listServers().find((one) => one.name === name);
    if (server === undefined) return { ended: 0, failed: 0 };
    const { ended, problem } = await connections.end(owner, server, 'operator');
    return { ended: ended ? 1 : 0, failed: problem === undefined ? 0 : 1 };
  },
});
