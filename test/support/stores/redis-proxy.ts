// A TCP proxy before Redis on a loopback socket, at which single connections of a tracked store fail as networks do.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** The connection that hears of changes, or the one whose reads Redis remembers. */
export type TrackedConnection = 'listener' | 'reader';

export interface RedisProxy {
  /** As REDIS_URL takes it. */
  readonly url: string;
  /** What Redis sends to it from now on is lost, and the connection stands. */
  silence(which: TrackedConnection): void;
  /** Redis sees its end; the store does not, and is sent nothing more. */
  endAtRedis(which: TrackedConnection): void;
  close(): Promise<void>;
}

/** What each of them says in its first commands. */
const SIGNS = { listener: '__redis__:invalidate', reader: 'TRACKING' } as const;

interface ProxiedConnection {
  readonly from: Socket;
  readonly to: Socket;
  /** What the store has sent, as far as it matters. */
  said: string;
}

export async function startRedisProxy(target: number): Promise<RedisProxy> {
  const connections = new Set<ProxiedConnection>();

  function find(which: TrackedConnection): ProxiedConnection {
    const found = [...connections].filter(({ said }) => said.includes(SIGNS[which]));
    if (found.length !== 1) throw new Error(`There are ${found.length} of ${which}`);
    return found[0] as ProxiedConnection;
  }

  const server = createServer((from) => {
    const to = connect(target, '127.0.0.1');
    const connection: ProxiedConnection = { from, to, said: '' };
    connections.add(connection);
    from.on('data', (chunk) => {
      if (connection.said.length < 4096) connection.said += chunk.toString('latin1');
      to.write(chunk);
    });
    to.on('data', (chunk) => from.write(chunk));
    to.on('close', () => from.destroy());
    from.on('close', () => {
      connections.delete(connection);
      to.destroy();
    });
    for (const socket of [from, to]) socket.on('error', () => {});
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));

  function silence(which: TrackedConnection): Socket {
    const { to } = find(which);
    to.removeAllListeners('data').removeAllListeners('close').resume();
    return to;
  }

  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    silence: (which) => void silence(which),
    endAtRedis: (which) => void silence(which).destroy(),
    async close() {
      for (const { from, to } of connections) {
        from.destroy();
        to.destroy();
      }
      await new Promise((closed) => server.close(closed));
    },
  };
}
