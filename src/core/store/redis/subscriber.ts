// Messages between replicas arrive on a connection of their own: by RESP2 a subscribed one takes
// no other commands. Reconnecting and subscribing again are ours: ioredis's own lose the channels,
// or leave a rejection unhandled, when a connection breaks before SUBSCRIBE is answered.
import { Cluster, type Redis } from 'ioredis';
import type { Clock } from '../../clock.ts';
import type { Log } from '../../log.ts';
import { createListeners } from '../listeners.ts';
import type { Store } from '../store.ts';
import type { Backoff, RedisClient } from './connect.ts';

export interface SubscriberOptions {
  readonly backoff: Backoff;
  readonly clock: Clock;
  readonly log: Log;
}

export interface Subscriber {
  readonly subscribe: Store['subscribe'];
  close(): void;
}

/**
 * How often a silent connection is asked whether it lives. By PING and not by TCP keep-alive,
 * which proxies answer in the server's place, and the kernel for a process that hangs.
 */
const PING_EVERY_MS = 10_000;

/**
 * The rest is as for commands, `socketTimeout` too: it runs only while an answer is owed (to
 * PING, SUBSCRIBE or AUTH), so it ends a dead connection and never a silent one.
 */
const OPTIONS = {
  lazyConnect: false,
  enableOfflineQueue: false,
  autoResubscribe: false,
  retryStrategy: () => null,
};

/** `commandClient` is the one whose servers and options are used; it connects by itself. */
export function createSubscriber(
  commandClient: RedisClient,
  { backoff, clock, log }: SubscriberOptions,
): Subscriber {
  const listeners = createListeners(log);
  let state: 'unopened' | 'open' | 'closed' = 'unopened';
  /** Undefined before the first listener, and between two attempts. */
  let connection: Redis | undefined;
  let attempts = 0;
  let wasRefused = false;
  /** The next attempt or, while connected, the next PING. */
  let cancelNext = () => {};

  // Requests make the commands' connection come back from a long pause (command-runner.ts); then this one does.
  commandClient.on('ready', () => {
    attempts = 0;
    if (state === 'open' && connection === undefined) open();
  });
  // A node that left the cluster may live on, but hears nothing any more.
  commandClient.on('-node', (left: Redis) => {
    const { host, port } = left.options;
    const current = connection?.options;
    if (current?.host === host && current?.port === port) connection?.disconnect();
  });

  function open(): void {
    cancelNext();
    const opened = pickServer(commandClient)?.duplicate(OPTIONS);
    if (opened === undefined) {
      scheduleRetry();
      return;
    }
    connection = opened;
    // The command runner says what an operator must know.
    opened.on('error', (cause) => log.debug('The subscription to Redis is broken.', { cause }));
    opened.on('message', (channel, message) => listeners.prepareDelivery(channel)(message));
    opened.once('ready', () => {
      schedulePing(opened);
      void subscribeTo(opened, listeners.channels());
    });
    opened.once('end', scheduleRetry);
  }

  function scheduleRetry(): void {
    cancelNext();
    connection = undefined;
    if (state === 'closed') return;
    attempts += 1;
    cancelNext = clock.after(backoff(attempts), open);
  }

  function schedulePing(on: Redis): void {
    cancelNext = clock.after(PING_EVERY_MS, () => {
      on.ping().catch(() => {});
      schedulePing(on);
    });
  }

  async function subscribeTo(on: Redis, channels: readonly string[]): Promise<void> {
    try {
      if (channels.length > 0) await on.subscribe(...channels);
      attempts = 0;
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
    if (connection?.status === 'ready') run(connection).catch(() => {});
  };

  return {
    subscribe(channel, listener) {
      if (state === 'closed') return () => {};
      const isFirst = !listeners.has(channel);
      const removeListener = listeners.add(channel, listener);
      if (state === 'unopened') {
        state = 'open';
        open();
      } else if (isFirst) {
        runIfReady((on) => subscribeTo(on, [channel]));
      }
      return () => {
        removeListener();
        if (!listeners.has(channel)) runIfReady((on) => on.unsubscribe(channel));
      };
    },
    close() {
      state = 'closed';
      cancelNext();
      listeners.clear();
      connection?.disconnect();
    },
  };
}

/** In a cluster any node, since each hears every message. None before the first is known. */
function pickServer(client: RedisClient): Redis | undefined {
  if (!(client instanceof Cluster)) return client;
  const nodes = client.nodes();
  return nodes[Math.floor(Math.random() * nodes.length)];
}
