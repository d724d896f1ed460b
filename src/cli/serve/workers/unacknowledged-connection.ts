import type { Worker } from 'node:cluster';
import { isObject } from '../../../platform/json.ts';

/**
 * Closes the connection that was on its way to a worker when the worker died. `node:cluster` sends a
 * worker one connection at a time and forgets the one that is never acknowledged: it would stay
 * open, and its client would wait for an answer that nobody gives.
 */
export function closeUnacknowledged({ process: child }: Worker): void {
  const send = child.send;
  let sent: unknown;
  child.send = (...args: readonly unknown[]): boolean => {
    const [message, handle] = args;
    if (isObject(message) && message.act === 'newconn') sent = handle;
    return Reflect.apply(send, child, args);
  };
  child.on('internalMessage', (message: unknown) => {
    if (isObject(message) && message.ack !== undefined) sent = undefined;
  });
  child.once('exit', () => {
    if (isObject(sent) && typeof sent.close === 'function') sent.close();
  });
}
