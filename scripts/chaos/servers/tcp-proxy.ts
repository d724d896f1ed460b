// A network that misbehaves: connections are passed on to a port, slowly, in drops, or not at all.
import { connect, createServer, type Socket } from 'node:net';
import { freePort } from '../../../test/support/gateway/ports.ts';

export type NetworkBehaviour =
  | { readonly kind: 'pass' }
  /** Delay of the server's bytes. */
  | { readonly kind: 'latency'; readonly ms: number }
  /** The server's bytes arrive a few at a time. */
  | { readonly kind: 'trickle'; readonly bytes: number; readonly everyMs: number }
  /** Connections are accepted and stay open; nothing is passed on. */
  | { readonly kind: 'silent' };

export interface TcpProxy {
  readonly port: number;
  /** For new connections and those that are open. */
  behave(behaviour: NetworkBehaviour): void;
  /** Resets all connections that are open. */
  reset(): void;
  close(): Promise<void>;
}

export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let behaviour: NetworkBehaviour = { kind: 'pass' };

  const server = createServer((client) => {
    const target = connect(targetPort, '127.0.0.1');
    for (const socket of [client, target]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => {});
    }
    const endBoth = () => {
      for (const socket of [client, target]) {
        socket.destroy();
        sockets.delete(socket);
      }
    };
    client.on('close', endBoth);
    target.on('close', endBoth);
    client.on('data', (chunk) => behaviour.kind !== 'silent' && target.write(chunk));
    passOn(target, client);
  });

  /** One chunk after the other, so that none overtakes an earlier one. */
  function passOn(target: Socket, client: Socket): void {
    let earlier = Promise.resolve();
    target.on('data', (chunk) => {
      const arrived = performance.now();
      earlier = earlier.then(() => deliver(chunk, client, arrived));
    });
  }

  /** When the network recovers, all waiting bytes arrive at once. */
  async function deliver(chunk: Buffer, client: Socket, arrived: number): Promise<void> {
    if (behaviour.kind === 'latency') await wait(arrived + behaviour.ms - performance.now());
    let at = 0;
    while (behaviour.kind === 'trickle' && at < chunk.length && client.writable) {
      client.write(chunk.subarray(at, at + behaviour.bytes));
      at += behaviour.bytes;
      await wait(behaviour.everyMs);
    }
    if (behaviour.kind !== 'silent' && client.writable) client.write(chunk.subarray(at));
  }

  server.listen(await freePort(), '127.0.0.1');
  await new Promise((listening) => server.once('listening', listening));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The proxy has no port');

  return {
    port: address.port,
    behave(wanted) {
      behaviour = wanted;
    },
    reset() {
      for (const socket of sockets) socket.resetAndDestroy();
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((closed) => server.close(closed));
    },
  };
}

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));
