// A balancer that passes on bytes, and cuts a connection on which there was none for some time, as those of clouds do.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect } from 'vitest';
import type { ManualClock } from './clock.ts';

export interface IdleBalancer {
  readonly port: number;
  /** How many connections it has cut. */
  readonly cut: number;
  /** Moves the time on, second by second; each byte that is due by then has passed before the next one. */
  pass(ms: number): Promise<void>;
  close(): Promise<void>;
}

interface BalancerOptions {
  readonly clock: ManualClock;
  readonly target: number;
  readonly idleMs: number;
  /** By when something has to come: `pass` waits until it has. */
  readonly dueMs: number;
}

export async function startIdleBalancer(options: BalancerOptions): Promise<IdleBalancer> {
  const { clock, target, idleMs, dueMs } = options;
  const open = new Set<{ readonly end: () => void; heardAt: number }>();
  let cut = 0;

  const server = createServer((client) => {
    const gateway = connect(target, '127.0.0.1');
    let cancel = (): void => {};
    const connection = { end, heardAt: clock.monotonic() };
    function end(): void {
      cancel();
      open.delete(connection);
      client.destroy();
      gateway.destroy();
    }
    function note(): void {
      connection.heardAt = clock.monotonic();
      cancel();
      cancel = clock.after(idleMs, () => {
        cut += 1;
        end();
      });
    }
    open.add(connection);
    note();
    for (const [from, to] of [
      [client, gateway],
      [gateway, client],
    ] as readonly (readonly [Socket, Socket])[]) {
      from.on('data', (bytes) => {
        note();
        to.write(bytes);
      });
      from.on('error', end);
      from.on('close', end);
    }
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  const isWaiting = () => [...open].some(({ heardAt }) => clock.monotonic() - heardAt > dueMs);

  return {
    port,
    get cut() {
      return cut;
    },
    async pass(ms) {
      for (let left = ms; left > 0 && cut === 0; left -= STEP_MS) {
        clock.advance(STEP_MS);
        // Under load bytes need a moment; where none come at all, the time goes on to the cut.
        await expect
          .poll(isWaiting, { timeout: 2_000, interval: 5 })
          .toBe(false)
          .catch(() => {});
      }
    },
    async close() {
      for (const { end } of open) end();
      await new Promise((closed) => server.close(closed));
    },
  };
}

const STEP_MS = 1_000;
