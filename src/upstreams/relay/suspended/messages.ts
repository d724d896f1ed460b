// What replicas say to each other about calls that wait for answers (store/replicas).
import { isObject } from '../../../platform/json.ts';

/** `ticket` names one request of a client that waits at the replica `from`. */
export type SuspendedCallMessage =
  /** To the replica of the call: the client came back. Sent again while it waits, without the answer. */
  | {
      readonly about: 'resume';
      readonly ticket: string;
      readonly from: string;
      readonly call: string;
      readonly sub?: string | undefined;
      readonly server: string;
      readonly key?: string;
      readonly answer?: unknown;
    }
  /** To the replica of the call: the client hung up. */
  | { readonly about: 'left'; readonly ticket: string; readonly call: string }
  /** To where it waits: the call goes on. */
  | { readonly about: 'going_on'; readonly ticket: string }
  /** To where it waits: nothing more comes of the call but what is in the store. */
  | { readonly about: 'settled'; readonly ticket: string }
  /** To where it waits: params of a notification of the server. */
  | { readonly about: 'progress' | 'log'; readonly ticket: string; readonly params: unknown };

const TOPICS: ReadonlySet<unknown> = new Set([
  'resume',
  'left',
  'going_on',
  'settled',
  'progress',
  'log',
]);

export const isSuspendedCallMessage = (value: unknown): value is SuspendedCallMessage =>
  isObject(value) && TOPICS.has(value.about) && typeof value.ticket === 'string';
