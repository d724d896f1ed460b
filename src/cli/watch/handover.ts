// A new process of postern dev loads its files while the one before it serves, and then waits for its turn:
// where loading fails, nothing has ended.
import { once } from 'node:events';
import { isObject } from '../../platform/json.ts';

/** Set for a process that waits: others that have a channel to their parent (of tsx, of pm2) get no turn. */
const VARIABLE = 'POSTERN_DEV_HANDOVER';

export const HANDOVER_ENVIRONMENT = { [VARIABLE]: '1' } as const;

/** From the new process: everything is loaded that can be while another one has port and store. */
const LOADED = { kind: 'loaded' } as const;

/** To the new process: port and store are free. */
export const TURN = { kind: 'turn' } as const;

/** It comes from our own code in another process. */
export const isLoaded = (message: unknown): boolean =>
  isObject(message) && message.kind === LOADED.kind;

/** In the new process: says that it is loaded, and resolves once it may serve; at once where nobody hands over. */
export async function waitForTurn(): Promise<void> {
  if (process.env[VARIABLE] === undefined) return;
  delete process.env[VARIABLE];
  // Nothing else keeps this process alive meanwhile.
  process.channel?.ref();
  process.send?.(LOADED, undefined, undefined, () => {});
  await once(process, 'message');
  process.channel?.unref();
}
