import { setImmediate as turn } from 'node:timers/promises';

/** So that answers come in another order than the calls. */
export async function takeTurns(turns: unknown): Promise<void> {
  for (let left = Number(turns); left > 0; left -= 1) await turn();
}
