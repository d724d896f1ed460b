// Spec §1, MCP "Streamable HTTP": the answer to one request is JSON, or a stream of events once
// there is something to say before the result and the client takes a stream.

import type { Reply } from '../../../core/message.ts';
import { EVENT_STREAM_HEADERS, sseEvent } from '../../../core/sse.ts';
import type { Outgoing } from '../protocol/json-rpc.ts';
import { createQueue } from './message-queue.ts';

/** The way to the client while its request is worked on. */
export interface Line {
  /** True when a stream is taken: what is said reaches the client. */
  readonly isOpen: boolean;
  /** Notifications to a client that reads slower than they come are dropped. */
  say(message: Outgoing): void;
  /** The answer. The first one counts; nothing is said after it. */
  finish(reply: Reply): void;
}

export interface OpenLine {
  readonly line: Line;
  /** Resolves to the answer, or to a stream at the first word that is said on the line. */
  readonly reply: Promise<Reply>;
}

export function openLine(takesStream: boolean): OpenLine {
  let resolve: (reply: Reply) => void = () => {};
  const reply = new Promise<Reply>((settle) => {
    resolve = settle;
  });
  let streaming: ReturnType<typeof beginStream> | undefined;
  let done = false;
  return {
    reply,
    line: {
      isOpen: takesStream,
      say(message) {
        if (done || !takesStream) return;
        if (streaming === undefined) {
          streaming = beginStream();
          resolve(streaming.reply);
        }
        streaming.say(message);
      },
      finish(reply) {
        if (done) return;
        done = true;
        if (streaming === undefined) resolve(reply);
        else streaming.finish(reply);
      },
    },
  };
}

function beginStream() {
  const queue = createQueue();
  let last: Reply | undefined;
  return {
    reply: {
      status: 200,
      headers: EVENT_STREAM_HEADERS,
      stream: queue.items,
      outcome: () => ({
        ...(last?.error && { error: last.error }),
        ...(last?.facts && { facts: last.facts }),
      }),
    } as const satisfies Reply,
    say(message: Outgoing) {
      if (message.id === undefined && queue.isFull()) return;
      queue.push(sseEvent({ jsonrpc: '2.0', ...message }));
    },
    /** A reply of ours holds the JSON-RPC response as text. */
    finish(reply: Reply) {
      last = reply;
      queue.push(`event: message\ndata: ${reply.body}\n\n`);
      queue.end();
    },
  };
}

/** Whether the caller names event streams among what it takes: a plain client's any type does not. */
export const takesEventStream = (accept = ''): boolean =>
  accept.split(',').some((range) => EVENT_STREAM.test(range) && !REFUSED.test(range));

const EVENT_STREAM = /^\s*text\/event-stream\s*(;|$)/i;

/** RFC 9110 §12.4.2: a weight of zero. */
const REFUSED = /;\s*q\s*=\s*0(\.0*)?\s*(;|$)/i;
