// Connections that asked once and then say nothing, as keep-alive connections of clients and proxies do.
import { connect, type Socket } from 'node:net';

/** How many are opened at once: fewer than the backlog of a listening socket. */
const BATCH = 200;

/**
 * They stay open for as long as the server lets them (75 s).
 *
 * @returns closes them, and throws when the server had closed one before.
 */
export async function openIdleConnections(origin: string, count: number): Promise<() => void> {
  const { hostname, port } = new URL(origin);
  const sockets: Socket[] = [];
  let closed = 0;
  for (let first = 0; first < count; first += BATCH) {
    const batch = Array.from({ length: Math.min(BATCH, count - first) }, open);
    sockets.push(...(await Promise.all(batch)));
  }
  return () => {
    const lost = closed;
    for (const socket of sockets) socket.destroy();
    if (lost > 0) throw new Error(`${lost} of ${count} idle connections were closed`);
  };

  function open(): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const socket = connect(Number(port), hostname);
      socket.once('error', reject);
      socket.once('close', () => {
        closed++;
      });
      socket.once('data', () => resolve(socket));
      socket.write(`GET /health HTTP/1.1\r\nHost: ${hostname}:${port}\r\n\r\n`);
    });
  }
}
