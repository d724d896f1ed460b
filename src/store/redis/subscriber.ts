// Messages between replicas arrive on a connection of their own: by RESP2 a subscribed one takes
// no other commands.
import { Cluster, Redis } from 'ioredis';
import { createAttempts } from '../../platform/clock.ts';
import { createListeners, type Listener } from '../listeners.ts';
import type { RedisAccess } from './command-runner.ts';
import { endWhenSilent, NEVER_RECONNECTING, type RedisClient } from './connection.ts';

/**
 * Milliseconds after which a silent connection is asked whether it lives. By PING and not by TCP keep-alive,
 * which proxies answer in the server's place, and the kernel for a process that hangs.
 */
const PING_EVERY_MS = 10_000;

/**
 * Connects when somebody subscribes for the first time, with the servers and options of the client for commands, and again
 * whenever the connection ends. Reconnecting and subscribing again are ours: ioredis's own lose the channels, or leave a
 * rejection unhandled, when a connection breaks before SUBSCRIBE is answered.
 */
export function createSubscriber({ client: commandClient, backoff, clock, log }: RedisAccess) {
  const listeners = createListeners(log);
  let state: 'unopened' | 'open' | 'closed' = 'unopened';
  /** Undefined before it is opened, and between two attempts. */
  let connection: Redis | undefined;
  /** The next one waits or, while connected, the next PING. */
  const attempts = createAttempts(clock, backoff);
  let wasRefused = false;

  // Requests make the commands' connection come back from a long pause (command-runner.ts); then this one does.
  commandClient.on('ready', () => {
    attempts.noteSuccess();
    if (state !== 'open') return;
    if (connection === undefined) open();
    // The sentinels named another primary: the old one may live on, but hears nothing any more.
    else if (commandClient instanceof Redis && !isAt(connection, commandClient))
      connection.disconnect();
  });
  // The same for a node that left the cluster.
  commandClient.on('-node', (left: Redis) => {
    if (connection !== undefined && isAt(connection, left)) connection.disconnect();
  });

  function open() {
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
    opened.on('message', (channel, message) => listeners.prepareDelivery(channel)(message));
    opened.once('ready', () => {
      schedulePing(opened);
      void subscribeTo(opened, listeners.channels());
    });
    opened.once('end', scheduleRetry);
  }

  function scheduleRetry() {
    attempts.stop();
    connection = undefined;
    if (state !== 'closed') attempts.again(open);
  }

  function schedulePing(on: Redis) {
    attempts.after(PING_EVERY_MS, () => {
      on.ping().catch(() => {});
      schedulePing(on);
    });
  }

  async function subscribeTo(on: Redis, channels: readonly string[]) {
    try {
      if (channels.length > 0) await on.subscribe(...channels);
      // Should it end, the next attempt comes as soon as a first one.
      attempts.noteSuccess();
      wasRefused = false;
    } catch (cause) {
      // The end of a lost connection leads to the next attempt; that of a refusing one is made.
      if (on.status !== 'ready') return;
      if (!wasRefused)
        log.warn(
          'Redis refuses to subscribe: messages of other replicas do not arrive. Allow the user of REDIS_URL the channels that begin with MCP_SESSION_KEY_PREFIX.',
          { cause },
        );
      wasRefused = true;
      on.disconnect();
    }
  }

  /** A command that no connection could take is made up for when the next one is ready. */
  function runIfReady(run: (on: Redis) => Promise<unknown>) {
    if (connection?.status === 'ready') run(connection).catch(() => {});
  }

  return {
    subscribe(channel: string, listener: Listener): () => void {
      if (state === 'closed') return () => {};
      const isFirst = !listeners.has(channel);
      const removeListener = listeners.add(channel, listener);
      if (state === 'unopened') {
        state = 'open';
        open();
      } else if (isFirst) runIfReady((on) => subscribeTo(on, [channel]));
      return () => {
        removeListener();
        if (!listeners.has(channel)) runIfReady((on) => on.unsubscribe(channel));
      };
    },
    close() {
      listeners.clear();
      state = 'closed';
      attempts.stop();
      connection?.disconnect();
    },
  };
}

const isAt = ({ options }: Redis, other: Redis) =>
  options.host === other.options.host && options.port === other.options.port;

/** In a cluster any node, since each hears every message. None before the first is known. */
function pickServer(client: RedisClient) {
  if (!(client instanceof Cluster)) return client.status === 'wait' ? undefined : client;
  const nodes = client.nodes();
  return nodes[Math.floor(Math.random() * nodes.length)];
}
