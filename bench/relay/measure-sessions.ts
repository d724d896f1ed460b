// What a session of a client costs in memory once it has called a server behind the gateway, and then does nothing.
import { freePort } from '../../test/support/gateway/ports.ts';
import { sendCall } from '../check-answers.ts';
import { runPostern } from '../contestants.ts';
import type { ServerProcess } from '../server-process.ts';
import { openTestbed, type Testbed } from '../testbed.ts';
import { nameInFile, startUpstream } from './upstreams.ts';

const SESSIONS = 10_000;
const AT_ONCE = 16;
/** Sessions before the first look: by then everything is loaded and compiled. */
const WARM_UPS = 500;
const GOAL_BYTES = 4096;

export async function measureSessions(): Promise<void> {
  const testbed = await openTestbed();
  const upstream = await startUpstream('session');
  try {
    const args = await nameInFile(testbed.folder, 'sessions', {
      bare: { url: upstream.url, prefix: '' },
    });
    const own = await measureGrowth(testbed, []);
    const relayed = await measureGrowth(testbed, args);
    console.log(
      `${SESSIONS} idle sessions: ${Math.round(relayed)} bytes of heap each with a session at a server, ${Math.round(own)} without: ${Math.round(relayed - own)} bytes (goal: under ${GOAL_BYTES})`,
    );
  } finally {
    await upstream.stop();
    await testbed.close();
  }
}

/** Bytes of heap per session. */
async function measureGrowth(testbed: Testbed, args: readonly string[]): Promise<number> {
  const heapPort = await freePort();
  const settings = { HEAP_PORT: String(heapPort), MCP_USER_SESSIONS_MAX: '0' };
  const server = await testbed.start(runPostern('redis', settings, args), {
    nodeOptions: ['--expose-gc', '--import', './bench/relay/heap-server.mjs'],
  });
  const readHeap = async () => Number(await (await fetch(`http://127.0.0.1:${heapPort}`)).text());

  await openSessions(testbed, server, WARM_UPS);
  const before = await readHeap();
  await openSessions(testbed, server, SESSIONS);
  const after = await readHeap();
  await server.stop();
  return (after - before) / SESSIONS;
}

/** Each makes one call. */
async function openSessions(testbed: Testbed, server: ServerProcess, count: number): Promise<void> {
  let left = count;
  async function openSome(): Promise<void> {
    while (left > 0) {
      left -= 1;
      const { status, body } = await sendCall(await testbed.createCall(server, 'session'), 1);
      if (status !== 200) throw new Error(`not a 200: ${status} ${body}`);
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, openSome));
}
