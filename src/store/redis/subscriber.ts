// Receives messages between replicas on a separate connection: with RESP2, a subscribed connection accepts no other commands.
import { Cluster, Redis } from 'ioredis';
import { createAttempts } from '../../platform/clock.ts';
import { createListeners, type Listener } from '../listeners.ts';
import type { RedisAccess } from './command-runner.ts';
import { endWhenSilent, NEVER_RECONNECTING, type RedisClient } from './connection.ts';

/**
 * Milliseconds after which a silent connection is probed. With PING instead of TCP keep-alive, which proxies answer on behalf of
 * the server, and the kernel on behalf of a hanging process.
 */
const PING_EVERY_MS = 10_000;

/**
 * Connects at the first subscription, with the servers and options of the client for commands, and reconnects when the connection
 * ends. Does not use ioredis's own reconnection and resubscription: they lose channels, or leave a rejection unhandled, if a
 * connection breaks before SUBSCRIBE is answered.
 */
export function createSubscriber({ client: commandClient, backoff, clock, log }: RedisAccess) {
  const listeners = createListeners(log);
  let state: 'unopened' | 'open' | 'closed' = 'unopened';
  /** Undefined before the first connection, and between two attempts. */
  let connection: Redis | undefined;
  /** Schedules the next attempt or, while connected, the next PING. */
  const attempts = createAttempts(clock, backoff);
  let wasRefused = false;

  // Requests make the connection for commands return from a long backoff (command-runner.ts); then this one follows.
  commandClient.on('ready', () => {
    attempts.noteSuccess();
    if (state !== 'open') return;
    if (connection === undefined) open();
    // The sentinels named another primary: the old one may still run, but receives no more messages.
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
    // The connection may be silent, unless a response is due (to PING, SUBSCRIBE or AUTH).
    endWhenSilent(opened);
    // The command runner logs what operators need to know.
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
      // If the connection ends, the backoff starts over.
      attempts.noteSuccess();
      wasRefused = false;
    } catch (cause) {
      // A lost connection reconnects by itself; one that refuses the subscription is closed here.
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

  /** Skips the command without a connection: the next one subscribes to all channels when it is ready. */
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

/** On a cluster, any node, since each receives every message. Undefined until a node is known. */
function pickServer(client: RedisClient) {
  if (!(client instanceof Cluster)) return client.status === 'wait' ? undefined : client;
  const nodes = client.nodes();
  return nodes[Math.floor(Math.random() * nodes.length)];
}
