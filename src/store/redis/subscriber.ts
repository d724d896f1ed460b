// Messages between replicas arrive on a connection of their own: by RESP2 a subscribed one takes
// no other commands.
import { Cluster, Redis } from 'ioredis';
import { createAttempts } from '../../platform/clock.ts';
import { createListeners } from '../listeners.ts';
import type { Bus } from '../store.ts';
import type { RedisAccess } from './command-runner.ts';
import { endWhenSilent, NEVER_RECONNECTING, type RedisClient } from './connection.ts';

export interface Subscriber {
  readonly subscribe: Bus['subscribe'];
  close(): void;
}

/** Connects when somebody subscribes for the first time, with the options of the client for commands. */
export function createSubscriber(redis: RedisAccess): Subscriber {
  const { log } = redis;
  const listeners = createListeners(log);
  const connection = createSubscriberConnection(redis, {
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

  /** A command that no connection could take is made up for when the next one is ready. */
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

// The connection on which messages arrive, opened again whenever it ends. Reconnecting and
// subscribing again are ours: ioredis's own lose the channels, or leave a rejection unhandled, when a
// connection breaks before SUBSCRIBE is answered.

interface SubscriberConnection {
  readonly state: 'unopened' | 'open' | 'closed';
  open(): void;
  /** The connection, while it takes commands. */
  getReady(): Redis | undefined;
  /** Should it end, the next attempt comes as soon as a first one. */
  resetBackoff(): void;
  close(): void;
}

interface ConnectionListener {
  /** Nothing is subscribed on it yet. */
  onReady(connection: Redis): void;
  onMessage(channel: string, message: string): void;
}

/**
 * Milliseconds after which a silent connection is asked whether it lives. By PING and not by TCP keep-alive,
 * which proxies answer in the server's place, and the kernel for a process that hangs.
 */
const PING_EVERY_MS = 10_000;

/** With the servers and options of the client for commands, which connects by itself. */
function createSubscriberConnection(
  { client: commandClient, backoff, clock, log }: RedisAccess,
  { onReady, onMessage }: ConnectionListener,
): SubscriberConnection {
  let state: SubscriberConnection['state'] = 'unopened';
  /** Undefined before it is opened, and between two attempts. */
  let connection: Redis | undefined;
  /** The next one waits or, while connected, the next PING. */
  const attempts = createAttempts(clock, backoff);

  // Requests make the commands' connection come back from a long pause (command-runner.ts); then this one does.
  commandClient.on('ready', () => {
    attempts.noteSuccess();
    if (state !== 'open') return;
    if (connection === undefined) openConnection();
    // The sentinels named another primary: the old one may live on, but hears nothing any more.
    else if (commandClient instanceof Redis && !isAt(connection, commandClient))
      connection.disconnect();
  });
  // The same for a node that left the cluster.
  commandClient.on('-node', (left: Redis) => {
    if (connection !== undefined && isAt(connection, left)) connection.disconnect();
  });

  function openConnection(): void {
    attempts.stop();
    const opened = pickServer(commandClient)?.duplicate(NEVER_RECONNECTING);
    if (opened === undefined) {
      scheduleRetry();
      return;
    }
    connection = opened;
    // Silent it may be, except while an answer is owed (to PING, SUBSCRIBE or AUTH).
    endWhenSilent(opened);
    // The command runner says what an operator must know.
    opened.on('error', (cause) => log.debug('The subscription to Redis is broken.', { cause }));
    opened.on('message', onMessage);
    opened.once('ready', () => {
      schedulePing(opened);
      onReady(opened);
    });
    opened.once('end', scheduleRetry);
  }

  function scheduleRetry(): void {
    attempts.stop();
    connection = undefined;
    if (state !== 'closed') attempts.again(openConnection);
  }

  function schedulePing(on: Redis): void {
    attempts.after(PING_EVERY_MS, () => {
      on.ping().catch(() => {});
      schedulePing(on);
    });
  }

  return {
    get state() {
      return state;
    },
    open() {
      state = 'open';
      openConnection();
    },
    getReady: () => (connection?.status === 'ready' ? connection : undefined),
    resetBackoff: attempts.noteSuccess,
    close() {
      state = 'closed';
      attempts.stop();
      connection?.disconnect();
    },
  };
}

const isAt = ({ options }: Redis, other: Redis): boolean =>
  options.host === other.options.host && options.port === other.options.port;

/** In a cluster any node, since each hears every message. None before the first is known. */
function pickServer(client: RedisClient): Redis | undefined {
  if (!(client instanceof Cluster)) return client.status === 'wait' ? undefined : client;
  const nodes = client.nodes();
  return nodes[Math.floor(Math.random() * nodes.length)];
}
