// A server that accepts no connections for a while: the system has no room for more, and drops what asks for one.
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';

export interface FullServer {
  readonly url: URL;
  /** Connections that were asked for and are not there yet. */
  countWaiting(): Promise<number>;
  /** It accepts what comes from now on, and answers each request with "accepted". */
  accept(): void;
  close(): Promise<void>;
}

/** Its thread waits in one call, so that nothing is accepted: in this thread the test would wait, too. */
const CODE = `
const { createServer } = require('node:net');
const { parentPort, workerData } = require('node:worker_threads');
const server = createServer((socket) => {
  socket.on('error', () => {});
  socket.on('data', () => socket.write('HTTP/1.1 200 OK\\r\\nContent-Length: 8\\r\\n\\r\\naccepted'));
});
server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
  parentPort.postMessage(server.address().port);
  Atomics.wait(workerData, 0, 0);
});
`;

/** As many as the system keeps for a backlog of 1. */
const ROOM = 2;
/** In /proc/net/tcp. */
const SYN_SENT = '02';

export async function startFullServer(): Promise<FullServer> {
  const gate = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(CODE, { eval: true, workerData: gate });
  const [port]: number[] = await once(worker, 'message');
  const open = () => connect(Number(port), '127.0.0.1').on('error', () => {});
  const sockets: readonly Socket[] = Array.from({ length: ROOM }, open);
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  const end = () => {
    for (const socket of sockets) socket.destroy();
    Atomics.store(gate, 0, 1);
    Atomics.notify(gate, 0);
  };
  const ending = `:${Number(port).toString(16).toUpperCase().padStart(4, '0')}`;

  return {
    url: new URL(`http://127.0.0.1:${port}/mcp`),
    async countWaiting() {
      const lines = (await readFile('/proc/net/tcp', 'utf8')).split('\n');
      const fields = lines.map((line) => line.trim().split(/\s+/));
      return fields.filter(([, , remote, state]) => state === SYN_SENT && remote?.endsWith(ending))
        .length;
    },
    accept: end,
    async close() {
      end();
      await worker.terminate();
    },
  };
}
