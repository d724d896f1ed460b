// Messages between the replicas of this feature (store/replicas).
import { isObject } from '../../platform/json.ts';
import type { Replicas } from '../../store/replicas/replicas.ts';

export type McpReplicas = Replicas<ReplicaMessage>;

/** Each is about one session; `id` is that of a JSON-RPC request in it. */
export type ReplicaMessage =
  | {
      readonly about: 'answer';
      readonly sessionId: string;
      readonly id: string;
      readonly result?: unknown;
      readonly error?: unknown;
    }
  | { readonly about: 'cancelled'; readonly sessionId: string; readonly id: string | number }
  /** The session has got a new stream, or has ended: streams elsewhere are over. */
  | { readonly about: 'stream'; readonly sessionId: string; readonly id: string }
  /** A stream that began at the replica to which it is sent is read at the one that sends it. */
  | {
      readonly about: 'resume';
      readonly sessionId: string;
      readonly stream: string;
      readonly replica: string;
    }
  /** The answer: there is more of it in the store, it is there no longer, or it is read elsewhere by now. */
  | {
      readonly about: 'resumed';
      readonly sessionId: string;
      readonly stream: string;
      readonly news: 'news' | 'gone' | 'taken';
    };

const TOPICS: ReadonlySet<unknown> = new Set([
  'answer',
  'cancelled',
  'stream',
  'resume',
  'resumed',
]);

export const isReplicaMessage = (value: unknown): value is ReplicaMessage =>
  isObject(value) && TOPICS.has(value.about) && typeof value.sessionId === 'string';
