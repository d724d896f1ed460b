// npm run bench -- memory --only streams: what idle sessions cost whose clients keep a stream open (GET /mcp).
import { connect, type Socket } from 'node:net';
import { freePort } from '../test/support/gateway/ports.ts';
import { openSession } from './calls.ts';
import { runPostern } from './contestants.ts';
import { describeMachine } from './machine.ts';
import { publish } from './published.ts';
import type { ServerProcess } from './server-process.ts';
import { openTestbed, type Testbed } from './testbed.ts';

export const STREAMS = 9000;
export const STREAMS_GOAL_MB = 250;
/** As many as one user may have. */
const STREAMS_PER_USER = 50;
/** Streams before the first look: by then everything is loaded and compiled. */
const WARM_UPS = 500;
const AT_ONCE = 16;
const WAIT_MS = 10_000;
const BYTES_PER_MB = 1_048_576;

export interface StreamsResult {
  readonly store: 'redis' | 'embedded';
  /** With all streams open, and nothing to do for a while. */
  readonly residentMb: number;
  /** Resident, of each stream and its session, beyond the first ones. */
  readonly bytesEach: number;
  readonly heapBytesEach: number;
}

export async function measureStreams(isPublished: boolean): Promise<void> {
  const machine = describeMachine();
  const results: StreamsResult[] = [];
  for (const store of ['redis', 'embedded'] as const) {
    const testbed = await openTestbed();
    try {
      results.push(await measureStore(testbed, store));
    } finally {
      await testbed.close();
    }
  }
  if (isPublished) publish({ streams: { machine, results } });
}

/** Resident memory as it is while they stand; then the heap in use, after a full collection. */
async function measureStore(testbed: Testbed, store: 'redis' | 'embedded'): Promise<StreamsResult> {
  const heapPort = await freePort();
  const server = await testbed.start(
    runPostern(store, { HEAP_PORT: String(heapPort), MCP_STREAMS: 'true' }),
    { nodeOptions: ['--expose-gc', '--import', './bench/relay/heap-server.mjs'] },
  );
  const readHeap = async () => Number(await (await fetch(`http://127.0.0.1:${heapPort}`)).text());

  const sockets = await openStreams(testbed, server, 0, WARM_UPS);
  const heapBefore = await readHeap();
  const residentBefore = server.readResidentMb();
  const cpuBefore = server.readCpuSeconds();
  sockets.push(...(await openStreams(testbed, server, WARM_UPS, STREAMS)));
  const openedFor = server.readCpuSeconds() - cpuBefore;
  const residentOpened = server.readResidentMb();
  const idleFrom = server.readCpuSeconds();
  await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
  const idleCpu = (server.readCpuSeconds() - idleFrom) / (WAIT_MS / 1000);
  const resident = server.readResidentMb();
  const heapAfter = await readHeap();
  const count = STREAMS - WARM_UPS;
  const lost = sockets.filter(({ destroyed }) => destroyed).length;
  for (const socket of sockets) socket.destroy();
  await server.stop();
  if (lost > 0) throw new Error(`${lost} of ${STREAMS} streams were closed`);
  const bytesEach = ((resident - residentBefore) * BYTES_PER_MB) / count;
  const heapBytesEach = (heapAfter - heapBefore) / count;
  console.log(
    `${store}: ${STREAMS} idle sessions with open streams: ${Math.round(resident)} MB (≤ ${STREAMS_GOAL_MB}; ${Math.round(residentOpened)} MB when the last was opened), of which ${toKb(bytesEach)} KB each; ${toKb(heapBytesEach)} KB of heap each; ${((openedFor / count) * 1e6).toFixed(0)} µs of CPU to open one; ${(idleCpu * 100).toFixed(1)} % of a core while nothing happens`,
  );
  return { store, residentMb: resident, bytesEach, heapBytesEach };
}

const toKb = (bytes: number): string => (bytes / 1024).toFixed(1);

/** The sessions with these numbers. */
export async function openStreams(
  testbed: Testbed,
  { url }: ServerProcess,
  first: number,
  end: number,
): Promise<Socket[]> {
  const sockets: Socket[] = [];
  let next = first;
  async function openSome(): Promise<void> {
    while (next < end) {
      const at = next++;
      const token = await testbed.signToken(`user-${Math.floor(at / STREAMS_PER_USER)}`);
      const authorization = `Bearer ${token}`;
      const session = await openSession(url, {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        authorization,
      });
      sockets.push(await openStream(new URL(url), authorization, session));
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, openSome));
  return sockets;
}

function openStream({ hostname, port }: URL, authorization: string, session: string) {
  return new Promise<Socket>((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    socket.once('error', reject);
    socket.once('data', (head) => {
      if (head.toString('latin1').startsWith('HTTP/1.1 200 ')) resolve(socket);
      else reject(new Error(`No stream: ${head}`));
    });
    socket.write(
      `GET /mcp HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAccept: text/event-stream\r\nAuthorization: ${authorization}\r\nMcp-Session-Id: ${session}\r\nMcp-Protocol-Version: 2025-11-25\r\n\r\n`,
    );
    // What comes is not kept here.
    socket.resume();
  });
}
