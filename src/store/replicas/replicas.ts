// Messages from replica to replica: what reached one and is waited for at another.
import { randomUUID } from 'node:crypto';
import type { Clock } from '../../platform/clock.ts';
import { writeExactJson } from '../../platform/exact-json.ts';
import { parseObject } from '../../platform/json.ts';
import type { ClockAndLog } from '../../platform/log.ts';
import { noteMembers } from '../../platform/noted-json.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import type { Metrics } from '../../telemetry/metrics/metrics.ts';
import { callListener } from '../listeners.ts';
import type { Seal } from '../seal/seal.ts';
import type { Bus } from '../store.ts';

/** `Message` is what one feature's replicas say to each other; each has a channel of its own. */
export type Replicas<Message extends object> = ReturnType<typeof createReplicas<Message>>;

/** Members of `Runtime`. */
export interface ReplicaSurroundings extends ClockAndLog {
  readonly store: Bus;
  /** May wait for the shared store, the first time and now and then. */
  getSeal(): Promise<Seal>;
  readonly metrics: Pick<Metrics, 'recordDroppedReplicaMessage'>;
}

export function createReplicas<Message extends object>(
  { store, getSeal, clock, log, metrics }: ReplicaSurroundings,
  channel: string,
  isMessage: IsMessage<Message>,
) {
  const ownName = randomUUID();
  const toChannel = (name: string) => `${channel}:${name}`;
  const rememberNonce = createNonceMemory(clock);
  // Somebody may publish thousands: all are counted, and logged in one line a minute.
  let dropped = 0;
  const warn = createWarnThrottle(clock, (reason: DropReason, name: string) => {
    log.warn(`${DROPPED}: ${EXPLANATIONS[reason]}`, { channel: name, reason, dropped });
    dropped = 0;
  });
  const listeners = new Set<(message: Message) => void>();
  // The key may have to be fetched: messages that come meanwhile wait, so that they stay in order.
  const sealInOrder = createSequence();
  const openInOrder = createSequence();
  const unsubscribers = [channel, toChannel(ownName)].map((name) =>
    store.subscribe(name, (text) => void openInOrder(() => receive(name, text))),
  );
  let isClosed = false;

  async function receive(name: string, text: string) {
    const opened = await open(name, text).catch((cause: unknown) => {
      // Lost like a message that is sent while Redis is down.
      log.debug(
        'A message from another replica was lost: the key that opens it cannot be read from the store now.',
        { cause },
      );
    });
    if (isClosed || opened === undefined) return;
    if (typeof opened !== 'string') {
      for (const listener of listeners) callListener(log, listener, opened);
      return;
    }
    metrics.recordDroppedReplicaMessage(opened);
    dropped += 1;
    warn(opened, name);
  }

  /**
   * `name` is the channel where it was sent: it opens nowhere else. A message that was recorded and is published again does
   * nothing: within the minute it is known by its nonce, after it by its time. (Without that, an answer would still find no
   * question, for a question's id is used once, and streams go by the order of their ids. But a client may use the id of
   * a cancelled request again.)
   */
  async function open(name: string, text: string): Promise<Message | DropReason> {
    const [, version, nonce] = SEALED_MESSAGE.exec(text) ?? [];
    if (version === undefined || nonce === undefined) return 'unreadable';
    if (version !== VERSION) return 'other_version';
    const opened = (await getSeal()).open(toSealContext(name), text.slice(VERSION.length + 1));
    const { sentAt, message } = (opened && parseObject(opened)) || {};
    if (typeof sentAt !== 'number' || !isMessage(message)) return 'unreadable';
    if (Math.abs(clock.now() - sentAt) > FRESH_MS) return 'stale';
    if (opened !== undefined) noteMembers(message, opened, ['message']);
    return rememberNonce(nonce) ? message : 'repeated';
  }

  return {
    /** The name of this one, new with each start. */
    ownName,
    /**
     * Sends to all replicas, this one included, or to the one of that name, in the order of the calls.
     *
     * @throws StoreUnavailable
     */
    async send(message: Message, name?: string) {
      const to = name === undefined ? channel : toChannel(name);
      const sealed = await sealInOrder(async () => {
        const text = writeExactJson({ sentAt: clock.now(), message });
        return `${VERSION}.${(await getSeal()).seal(toSealContext(to), text)}`;
      });
      await store.publish(to, sealed);
    },
    /** Listeners are called in the order in which the messages arrived. */
    listen: (listener: (message: Message) => void) => void listeners.add(listener),
    close() {
      isClosed = true;
      for (const unsubscribe of unsubscribers) unsubscribe();
    },
  };
}

/** Runs one after the other, in the order of the calls, whether they fail or not. */
function createSequence() {
  let last: Promise<unknown> = Promise.resolve();
  return function runInOrder<Result>(work: () => Promise<Result>) {
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

// Messages between replicas are sealed: a program that can publish on the shared Redis still cannot
// answer or cancel in a user's name.

/** True if what was opened is a message that this version knows. */
type IsMessage<Message> = (value: unknown) => value is Message;

/** Why a message was dropped. */
type DropReason = 'unreadable' | 'other_version' | 'stale' | 'repeated';

/** Stands in front of what is sealed. A replica drops messages of versions that it does not know. */
const VERSION = '1';

/** The most that the clocks of two replicas, and the time of a message on its way, may differ in all. */
const FRESH_MS = 60_000;

const toSealContext = (channel: string) => `mcp:replica-message:${VERSION}:${channel}`;

/**
 * A sealed text begins with 96 random bits, which cannot be changed without breaking the seal. Only one
 * spelling of them is taken: decoders of base64 skip what they do not know.
 */
const SEALED_MESSAGE = /^(\d+)\.([\w-]{16})[\w=-]+$/;

/** Keeps each nonce for at least as long as its message could count as fresh. False for one that it has. */
function createNonceMemory(clock: Clock) {
  let recent = new Set<string>();
  let older = recent;
  let since = clock.monotonic();

  return function rememberNonce(nonce: string) {
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
