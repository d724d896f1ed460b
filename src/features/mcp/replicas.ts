// Word from replica to replica: what reached one and is waited for at another.
import { randomUUID } from 'node:crypto';
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
  /** The name of this one, new with each start. */
  readonly own: string;
  /** Says it to all replicas, this one included, or to the one of that name. */
  tell(word: Word, name?: string): Promise<void>;
  hear(listener: (word: Word) => void): void;
  close(): void;
}

export interface ReplicasDeps {
  readonly store: Pick<Store, 'publish' | 'subscribe'>;
  readonly log: Log;
  readonly channel: string;
}

export function createReplicas({ store, log, channel }: ReplicasDeps): Replicas {
  const own = randomUUID();
  const channelOf = (name: string) => `${channel}:${name}`;
  const listeners = new Set<(word: Word) => void>();
  const ends = [store.subscribe(channel, listen), store.subscribe(channelOf(own), listen)];

  function listen(message: string): void {
    const word = parseObject(message);
    if (!isWord(word)) {
      log.warn('A message of another program on the channel of the replicas was ignored.', {
        channel,
      });
      return;
    }
    for (const listener of listeners) listener(word);
  }

  return {
    own,
    tell: (word, name) =>
      store.publish(name === undefined ? channel : channelOf(name), JSON.stringify(word)),
    hear: (listener) => void listeners.add(listener),
    close() {
      for (const end of ends) end();
    },
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
