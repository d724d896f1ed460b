// A TCP proxy on a loopback socket whose connections a test can cut.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface CuttingProxy {
  readonly port: number;
  /** Ends all connections that stand; others may be made. */
  cut(): void;
  close(): Promise<void>;
}

export async function startCuttingProxy(target: number): Promise<CuttingProxy> {
  const sockets = new Set<Socket>();

  function keep(socket: Socket): void {
    sockets.add(socket);
    socket.on('error', () => {}).once('close', () => sockets.delete(socket));
  }

  function cut(): void {
    for (const socket of sockets) socket.destroy();
  }

  const server = createServer((from) => {
    const to = connect(target, '127.0.0.1');
    keep(from);
    keep(to);
    from.pipe(to).pipe(from);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    async close() {
      cut();
      await new Promise((closed) => server.close(closed));
    },
  };
}
