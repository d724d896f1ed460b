// What replicas send each other is sealed: a program that can publish on the shared Redis still cannot
// answer or cancel in a user's name.
import type { Clock } from '../clock.ts';
import { parseObject } from '../json.ts';
import type { Seal } from '../seal/seal.ts';

/** Whether what was opened is a message that this version knows. */
export type IsMessage<Message> = (value: unknown) => value is Message;

/** Why a message was dropped. */
export type DropReason = 'unreadable' | 'other_version' | 'stale' | 'repeated';

export interface ReplicaMessages<Message> {
  /** `channel` is where it is sent: it opens nowhere else. */
  seal(channel: string, message: Message): Promise<string>;
  open(channel: string, text: string): Promise<Message | DropReason>;
}

/** Stands in front of what is sealed. A replica drops messages of versions that it does not know. */
const VERSION = '1';

/** How far the clocks of two replicas, and the time of a message on its way, may be apart in all. */
const FRESH_MS = 60_000;

/**
 * A message that was recorded and is published again does nothing: within the minute it is known by
 * its nonce, after it by its time. (Without that, an answer would still find no question, for a
 * question's id is used once, and streams go by the order of their ids. But a client may use the id of
 * a cancelled request again.)
 */
export function createReplicaMessages<Message extends object>(
  getSeal: () => Promise<Seal>,
  clock: Clock,
  isMessage: IsMessage<Message>,
): ReplicaMessages<Message> {
  const rememberNonce = createNonceMemory(clock);

  return {
    async seal(channel, message) {
      const text = JSON.stringify({ sentAt: clock.now(), message });
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
