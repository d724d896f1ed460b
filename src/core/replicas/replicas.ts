// Messages from replica to replica: what reached one and is waited for at another.
import { randomUUID } from 'node:crypto';
import type { Clock } from '../clock.ts';
import type { Log } from '../log.ts';
import { createWarnThrottle } from '../log-throttle.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { Seal } from '../seal/seal.ts';
import type { Store } from '../store/store.ts';
import { createReplicaMessages, type DropReason, type IsMessage } from './replica-messages.ts';

/** `Message` is what one feature's replicas say to each other; each has a channel of its own. */
export interface Replicas<Message> {
  /** The name of this one, new with each start. */
  readonly ownName: string;
  /**
   * Sends to all replicas, this one included, or to the one of that name, in the order of the calls.
   *
   * @throws StoreUnavailable
   */
  send(message: Message, name?: string): Promise<void>;
  /** Listeners are called in the order in which the messages arrived. */
  listen(listener: (message: Message) => void): void;
  close(): void;
}

export interface ReplicasDeps<Message> {
  readonly store: Pick<Store, 'publish' | 'subscribe'>;
  /** May wait for the shared store, the first time and now and then. */
  getSeal(): Promise<Seal>;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'recordDroppedReplicaMessage'>;
  readonly channel: string;
  readonly isMessage: IsMessage<Message>;
}

export function createReplicas<Message extends object>({
  store,
  getSeal,
  channel,
  isMessage,
  ...deps
}: ReplicasDeps<Message>): Replicas<Message> {
  const { clock, log } = deps;
  const ownName = randomUUID();
  const toChannel = (name: string) => `${channel}:${name}`;
  const messages = createReplicaMessages(getSeal, clock, isMessage);
  const countDropped = createDropCounter(deps);
  const listeners = new Set<(message: Message) => void>();
  // The key may have to be fetched: messages that come meanwhile wait, so that they stay in order.
  const sealInOrder = createSequence();
  const openInOrder = createSequence();
  const unsubscribers = [channel, toChannel(ownName)].map((name) =>
    store.subscribe(name, (text) => void openInOrder(() => receive(name, text))),
  );
  let isClosed = false;

  async function receive(name: string, text: string): Promise<void> {
    const opened = await messages.open(name, text).catch((cause: unknown) => {
      // Lost like a message that is sent while Redis is down.
      log.debug(
        'A message from another replica was lost: the key that opens it cannot be read from the store now.',
        { cause },
      );
    });
    if (isClosed || opened === undefined) return;
    if (typeof opened === 'string') countDropped(opened, name);
    else for (const listener of listeners) callListener(listener, opened);
  }

  /** What one listener throws must not keep the message from the next. */
  function callListener(listener: (message: Message) => void, message: Message): void {
    try {
      listener(message);
    } catch (cause) {
      log.error('A message from another replica could not be handled; please report this.', {
        cause,
      });
    }
  }

  return {
    ownName,
    async send(message, name) {
      const to = name === undefined ? channel : toChannel(name);
      await store.publish(to, await sealInOrder(() => messages.seal(to, message)));
    },
    listen: (listener) => void listeners.add(listener),
    close() {
      isClosed = true;
      for (const unsubscribe of unsubscribers) unsubscribe();
    },
  };
}

/** Runs one after the other, in the order of the calls, whether they fail or not. */
function createSequence() {
  let last: Promise<unknown> = Promise.resolve();
  return function runInOrder<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = last.then(work);
    last = result.catch(() => {});
    return result;
  };
}

const DROPPED = 'A message on the channel of the replicas was dropped';

const EXPLANATIONS: Readonly<Record<DropReason, string>> = {
  unreadable:
    'it is not sealed with the key of this replica. Set the same OAUTH_STATE_SECRET on all replicas, and a different MCP_SESSION_KEY_PREFIX for each service that shares the Redis. This is normal while replicas of 0.1.0 are running. Otherwise a program that is not a replica publishes there: allow only the Redis user of the replicas to publish.',
  other_version:
    'it comes from another version of this service. This is normal during an upgrade; after it, look for a replica that was not upgraded.',
  stale:
    'it is more than a minute old, or from the future. Synchronize the clocks of all replicas (NTP). If they are right, somebody is publishing recorded messages: allow only the Redis user of the replicas to publish there.',
  repeated:
    'it was received before. Somebody is publishing recorded messages: allow only the Redis user of the replicas to publish there.',
};

/** Somebody may publish thousands: all are counted, and logged in one line a minute. */
function createDropCounter({
  clock,
  log,
  metrics,
}: Pick<ReplicasDeps<object>, 'clock' | 'log' | 'metrics'>) {
  let dropped = 0;
  const warn = createWarnThrottle(clock, (reason: DropReason, channel: string) => {
    log.warn(`${DROPPED}: ${EXPLANATIONS[reason]}`, { channel, reason, dropped });
    dropped = 0;
  });

  return function countDropped(reason: DropReason, channel: string): void {
    metrics.recordDroppedReplicaMessage(reason);
    dropped += 1;
    warn(reason, channel);
  };
}
