// §18.3: a server may start processes of its own; they end with it.
import nodeProcess, { kill } from 'node:process';
import { type Clock, pause } from '../../../core/clock.ts';

/** Leaders of the groups that may still have a process. */
const groups = new Set<number>();

/** Milliseconds between two looks whether anybody is left in a group. */
const POLL_MS = 50;

/** From now on the group ends at the latest with this process, however that ends, but by SIGKILL. */
export function addGroup(leader: number): void {
  if (groups.size === 0) nodeProcess.on('exit', killAll);
  groups.add(leader);
}

/** Sends the signal to all processes of the group; 0 only asks. False where there is none left. */
export function signalGroup(leader: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return kill(-leader, signal);
  } catch {
    return false;
  }
}

/** Ends those that a leader left: by SIGTERM, and by SIGKILL after `graceMs`. */
export async function endGroup(leader: number, clock: Clock, graceMs: number): Promise<void> {
  const killAt = clock.monotonic() + graceMs;
  let isAlive = signalGroup(leader, 'SIGTERM');
  while (isAlive && clock.monotonic() < killAt) {
    await pause(clock, POLL_MS);
    isAlive = signalGroup(leader, 0);
  }
  if (isAlive) signalGroup(leader, 'SIGKILL');
  if (groups.delete(leader) && groups.size === 0) nodeProcess.off('exit', killAll);
}

function killAll(): void {
  for (const leader of groups) signalGroup(leader, 'SIGKILL');
}
