// Messages from replica to replica: what reached one and is waited for at another.
import { randomUUID } from 'node:crypto';
import type { Clock } from '../../platform/clock.ts';
import { writeExactJson } from '../../platform/exact-json.ts';
import { parseObject } from '../../platform/json.ts';
import type { ClockAndLog } from '../../platform/log.ts';
import { noteMembers } from '../../platform/noted-json.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import type { Metrics } from '../../telemetry/metrics/metrics.ts';
import type { Seal } from '../seal/seal.ts';
import type { Bus } from '../store.ts';

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

/** Members of `Runtime`. */
export interface ReplicaSurroundings extends ClockAndLog {
  readonly store: Bus;
  /** May wait for the shared store, the first time and now and then. */
  getSeal(): Promise<Seal>;
  readonly metrics: Pick<Metrics, 'recordDroppedReplicaMessage'>;
}

export function createReplicas<Message extends object>(
  surroundings: ReplicaSurroundings,
  channel: string,
  isMessage: IsMessage<Message>,
): Replicas<Message> {
  const { store, getSeal, clock, log } = surroundings;
  const ownName = randomUUID();
  const toChannel = (name: string) => `${channel}:${name}`;
  const messages = createReplicaMessages(getSeal, clock, isMessage);
  const countDropped = createDropCounter(surroundings);
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

  /** An error of one listener must not keep the message from the next. */
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
    'it is not sealed with the key of this replica. Set the same OAUTH_STATE_SECRET on all replicas, and a different MCP_SESSION_KEY_PREFIX for each service that shares the Redis. Otherwise a program that is not a replica publishes there: allow only the Redis user of the replicas to publish.',
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
}: Pick<ReplicaSurroundings, 'clock' | 'log' | 'metrics'>) {
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

// Messages between replicas are sealed: a program that can publish on the shared Redis still cannot
// answer or cancel in a user's name.

/** True if what was opened is a message that this version knows. */
type IsMessage<Message> = (value: unknown) => value is Message;

/** Why a message was dropped. */
type DropReason = 'unreadable' | 'other_version' | 'stale' | 'repeated';

interface ReplicaMessages<Message> {
  /** `channel` is where it is sent: it opens nowhere else. */
  seal(channel: string, message: Message): Promise<string>;
  open(channel: string, text: string): Promise<Message | DropReason>;
}

/** Stands in front of what is sealed. A replica drops messages of versions that it does not know. */
const VERSION = '1';

/** The most that the clocks of two replicas, and the time of a message on its way, may differ in all. */
const FRESH_MS = 60_000;

/**
 * A message that was recorded and is published again does nothing: within the minute it is known by
 * its nonce, after it by its time. (Without that, an answer would still find no question, for a
 * question's id is used once, and streams go by the order of their ids. But a client may use the id of
 * a cancelled request again.)
 */
function createReplicaMessages<Message extends object>(
  getSeal: () => Promise<Seal>,
  clock: Clock,
  isMessage: IsMessage<Message>,
): ReplicaMessages<Message> {
  const rememberNonce = createNonceMemory(clock);

  return {
    async seal(channel, message) {
      const text = writeExactJson({ sentAt: clock.now(), message });
      return `${VERSION}.${(await getSeal()).seal(toSealContext(channel), text)}`;
    },
    async open(channel, text) {
      const [, version, nonce] = SEALED_MESSAGE.exec(text) ?? [];
      if (version === undefined || nonce === undefined) return 'unreadable';
      if (version !== VERSION) return 'other_version';
      const opened = (await getSeal()).open(toSealContext(channel), text.slice(VERSION.length + 1));
      const { sentAt, message } = (opened && parseObject(opened)) || {};
      if (typeof sentAt !== 'number' || !isMessage(message)) return 'unreadable';
      if (Math.abs(clock.now() - sentAt) > FRESH_MS) return 'stale';
      if (opened !== undefined) noteMembers(message, opened, ['message']);
      return rememberNonce(nonce) ? message : 'repeated';
    },
  };
}

const toSealContext = (channel: string): string => `mcp:replica-message:${VERSION}:${channel}`;

/**
 * A sealed text begins with 96 random bits, which cannot be changed without breaking the seal. Only one
 * spelling of them is taken: decoders of base64 skip what they do not know.
 */
const SEALED_MESSAGE = /^(\d+)\.([\w-]{16})[\w=-]+$/;

/** Keeps each nonce for at least as long as its message could count as fresh. False for one that it has. */
function createNonceMemory(clock: Clock): (nonce: string) => boolean {
  let recent = new Set<string>();
  let older = recent;
  let since = clock.monotonic();

  return function rememberNonce(nonce) {
    if (clock.monotonic() - since > 2 * FRESH_MS) {
      older = recent;
      recent = new Set();
      since = clock.monotonic();
    }
    if (recent.has(nonce) || older.has(nonce)) return false;
    recent.add(nonce);
    return true;
  };
}
