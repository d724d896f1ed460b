// A separate process that holds slow connections: thousands of them would stall the client that measures.
import { once } from 'node:events';
import {
  type ManualConnection,
  openConnection,
} from '../../../test/support/gateway/manual-connection.ts';

export interface SlowConnections {
  readonly port: number;
  /** The bytes that each of them sends at once. */
  readonly heads: readonly string[];
  /** And then once a second. */
  readonly drop: string;
  readonly patienceMs: number;
}

export interface SlowOutcome {
  readonly stillOpen: number;
  /** How long the longest was open. */
  readonly longestMs: number;
}

const AT_ONCE = 50;
const STEP_MS = 10;
const STEPS_PER_SECOND = 1000 / STEP_MS;

const [told] = await once(process, 'message');
const { port, heads, drop, patienceMs }: SlowConnections = told;
const connections: ManualConnection[] = [];
let longestMs = 0;

for (let at = 0; at < heads.length; at += AT_ONCE) {
  await Promise.all(heads.slice(at, at + AT_ONCE).map(open));
  await pause();
}
const end = performance.now() + patienceMs;
for (let step = 0; performance.now() < end && countOpen() > 0; step += 1) {
  // Spread over the second.
  for (let at = step % STEPS_PER_SECOND; at < connections.length; at += STEPS_PER_SECOND) {
    const connection = connections[at];
    if (connection && !connection.isClosed) connection.send(drop);
  }
  await pause();
}
const outcome: SlowOutcome = { stillOpen: countOpen(), longestMs };
for (const { socket } of connections) socket.destroy();
process.send?.(outcome);

async function open(head: string): Promise<void> {
  const connection = await openConnection(port, head);
  const openedAt = performance.now();
  connections.push(connection);
  void connection.closed.then(() => {
    longestMs = Math.max(longestMs, performance.now() - openedAt);
  });
}

function countOpen(): number {
  return connections.filter(({ isClosed }) => !isClosed).length;
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, STEP_MS));
}
