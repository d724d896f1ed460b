// Word from replica to replica: what reached one and is waited for at another.
import { parseObject } from '../../core/json.ts';
import type { Log } from '../../core/log.ts';
import type { Store } from '../../core/store/store.ts';

/** Every word is about one session; `id` is that of a JSON-RPC request in it. */
export type Word =
  | {
      readonly about: 'answer';
      readonly sessionId: string;
      readonly id: string;
      readonly result?: unknown;
    }
  | { readonly about: 'cancelled'; readonly sessionId: string; readonly id: string | number }
  /** The session has got a new stream, or has ended: streams elsewhere are over. */
  | { readonly about: 'stream'; readonly sessionId: string; readonly id: string };

export interface Replicas {
  /** Says it to all replicas, this one included. */
  tell(word: Word): Promise<void>;
  hear(listener: (word: Word) => void): void;
  close(): void;
}

export interface ReplicasDeps {
  readonly store: Pick<Store, 'publish' | 'subscribe'>;
  readonly log: Log;
  readonly channel: string;
}

export function createReplicas({ store, log, channel }: ReplicasDeps): Replicas {
  const listeners = new Set<(word: Word) => void>();
  const close = store.subscribe(channel, (message) => {
    const word = parseObject(Buffer.from(message));
    if (!isWord(word)) {
      log.warn('A message of another program on the channel of the replicas was ignored.', {
        channel,
      });
      return;
    }
    for (const listener of listeners) listener(word);
  });

  return {
    tell: (word) => store.publish(channel, JSON.stringify(word)),
    hear: (listener) => void listeners.add(listener),
    close,
  };
}

const ABOUT: ReadonlySet<unknown> = new Set(['answer', 'cancelled', 'stream']);

const isWord = (value: unknown): value is Word =>
  typeof value === 'object' &&
  value !== null &&
  'about' in value &&
  ABOUT.has(value.about) &&
  'sessionId' in value &&
  typeof value.sessionId === 'string';
