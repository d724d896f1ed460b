// Sends messages from replica to replica: one replica receives what another is waiting for.
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

/** `Message` is the type of one feature's messages; each feature has its own channel. */
export type Replicas<Message extends object> = ReturnType<typeof createReplicas<Message>>;

/** Members of `Runtime`. */
interface ReplicaSurroundings extends ClockAndLog {
  readonly store: Bus;
  /** May wait for the shared store, at first and from time to time. */
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
  // An attacker may publish thousands: all are counted, and logged in one line per minute.
  let dropped = 0;
  const warn = createWarnThrottle(clock, (reason: DropReason, name: string) => {
    log.warn(`${DROPPED}: ${EXPLANATIONS[reason]}`, { channel: name, reason, dropped });
    dropped = 0;
  });
  const listeners = new Set<(message: Message) => void>();
  // The key may have to be fetched: messages received in the meantime wait, so that their order is kept.
  const sealInOrder = createSequence();
  const openInOrder = createSequence();
  const unsubscribers = [channel, toChannel(ownName)].map((name) =>
    store.subscribe(name, (text) => void openInOrder(() => receive(name, text))),
  );
  let isClosed = false;

  async function receive(name: string, text: string) {
    const opened = await open(name, text).catch((cause: unknown) => {
      // Lost, like a message sent while Redis is down.
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
   * `name` is the channel of the message, which cannot be opened in another one. Replayed messages have no effect: within a
   * minute they are recognized by their nonce, and later by their time. (Without that, a replayed answer would still match no
   * request, since request IDs are used once, and streams are ordered by their IDs. But a client may reuse the ID of a cancelled
   * request.)
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
    /** The name of this replica, new at each startup. */
    ownName,
    /**
     * Sends to all replicas, including this one, or to the named one, in the order of the calls.
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
    /** Listeners are called in the order messages arrived. */
    listen: (listener: (message: Message) => void) => void listeners.add(listener),
    close() {
      isClosed = true;
      for (const unsubscribe of unsubscribers) unsubscribe();
    },
  };
}

/** Runs tasks one after the other, in the order of the calls, whether or not they fail. */
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
    'it comes from a different version of this service. This is normal during an upgrade; after it, look for a replica that was not upgraded.',
  stale:
    'it is more than a minute old, or from the future. Synchronize the clocks of all replicas (NTP). If they are right, somebody is publishing recorded messages: allow only the Redis user of the replicas to publish there.',
  repeated:
    'it was received before. Somebody is publishing recorded messages: allow only the Redis user of the replicas to publish there.',
};

// Messages between replicas are sealed: a program with permission to publish on the shared Redis still cannot answer or cancel
// requests on behalf of a user.

/** True for a message that this version knows. */
type IsMessage<Message> = (value: unknown) => value is Message;

/** The reason why a message was dropped. */
type DropReason = 'unreadable' | 'other_version' | 'stale' | 'repeated';

/** Precedes the sealed text. A replica drops messages of unknown versions. */
const VERSION = '1';

/** Maximum clock skew between two replicas, plus transmission time. */
const FRESH_MS = 60_000;

const toSealContext = (channel: string) => `mcp:replica-message:${VERSION}:${channel}`;

/**
 * A sealed text begins with 96 random bits, which cannot be changed without breaking the seal. Only one spelling is accepted:
 * base64 decoders skip unknown characters.
 */
const SEALED_MESSAGE = /^(\d+)\.([\w-]{16})[\w=-]+$/;

/** Remembers each nonce at least as long as its message could count as fresh. Returns false for a known nonce. */
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
