// Messages between replicas arrive on a connection of their own: by RESP2 a subscribed one takes
// no other commands.
import type { Redis } from 'ioredis';
import { createListeners } from '../listeners.ts';
import type { Store } from '../store.ts';
import type { RedisClient } from './connection.ts';
import {
  createSubscriberConnection,
  type SubscriberConnectionOptions,
} from './subscriber-connection.ts';

export type SubscriberOptions = Omit<SubscriberConnectionOptions, 'onReady' | 'onMessage'>;

export interface Subscriber {
  readonly subscribe: Store['subscribe'];
  close(): void;
}

/** Connects when somebody subscribes for the first time, with the options of `commandClient`. */
export function createSubscriber(
  commandClient: RedisClient,
  options: SubscriberOptions,
): Subscriber {
  const { log } = options;
  const listeners = createListeners(log);
  const connection = createSubscriberConnection(commandClient, {
    ...options,
    onReady: (ready) => void subscribeTo(ready, listeners.channels()),
    onMessage: (channel, message) => listeners.prepareDelivery(channel)(message),
  });
  let wasRefused = false;

  async function subscribeTo(on: Redis, channels: readonly string[]): Promise<void> {
    try {
      if (channels.length > 0) await on.subscribe(...channels);
      connection.resetBackoff();
      wasRefused = false;
    } catch (cause) {
      // The end of a lost connection leads to the next attempt; that of a refusing one is made.
      if (on.status !== 'ready') return;
      if (!wasRefused) {
        log.warn(
          'Redis refuses to subscribe: messages of other replicas do not arrive. Allow the user of REDIS_URL the channels that begin with MCP_SESSION_KEY_PREFIX.',
          { cause },
        );
      }
      wasRefused = true;
      on.disconnect();
    }
  }

  /** What no connection, or a broken one, is not told is made up for when the next is ready. */
  const runIfReady = (run: (on: Redis) => Promise<unknown>) => {
    const ready = connection.getReady();
    if (ready !== undefined) run(ready).catch(() => {});
  };

  return {
    subscribe(channel, listener) {
      if (connection.state === 'closed') return () => {};
      const isFirst = !listeners.has(channel);
      const removeListener = listeners.add(channel, listener);
      if (connection.state === 'unopened') connection.open();
      else if (isFirst) runIfReady((on) => subscribeTo(on, [channel]));
      return () => {
        removeListener();
        if (!listeners.has(channel)) runIfReady((on) => on.unsubscribe(channel));
      };
    },
    close() {
      listeners.clear();
      connection.close();
    },
  };
}
