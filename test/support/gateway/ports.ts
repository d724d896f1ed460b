import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * Below those that the system gives to connections and to whoever listens on port 0: one of these may be
 * taken between the moment it was found free and the moment it is used. Each worker of the tests has its
 * own, so that no two find the same; 10,000 above them the nodes of a Redis cluster listen, too.
 */
const FIRST_PORT = 11_000;
const PORTS_PER_WORKER = 1_000;
const WORKERS = 10;

const worker = Number(process.env.VITEST_POOL_ID ?? 0) % WORKERS;
let next = randomInt(PORTS_PER_WORKER);

/** A loopback port that nobody else uses. */
export const freePort = (): Promise<number> => freePorts(1);

/** The first of `count` loopback ports, one beside the other, that nobody else uses. */
export async function freePorts(count: number): Promise<number> {
  for (let attempt = 0; attempt < PORTS_PER_WORKER; attempt += 1) {
    if (next + count > PORTS_PER_WORKER) next = 0;
    const first = FIRST_PORT + worker * PORTS_PER_WORKER + next;
    // Before anything is waited for: another call may begin meanwhile.
    next = (next + count) % PORTS_PER_WORKER;
    if (await areFree(first, count)) return first;
  }
  throw new Error(`No ${count} ports are free from ${FIRST_PORT + worker * PORTS_PER_WORKER} on`);
}

async function areFree(first: number, count: number): Promise<boolean> {
  const ports = Array.from({ length: count }, (_, at) => first + at);
  return (await Promise.all(ports.map(isFree))).every(Boolean);
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
