// §1, MCP "Streamable HTTP": the answer to one request is JSON, or a stream of events once
// something is sent before the result and the client takes a stream.
import { type GatewayRequest, getHeader } from '../../endpoint/message.ts';
import { toSseEvent } from '../../platform/sse.ts';
import type { OutgoingMessage, RequestId } from '../../protocol/json-rpc.ts';
import {
  type Answer,
  type McpResponse,
  renderResponse,
  type StreamResponse,
} from '../calls/outcome.ts';
import { createEventQueue, type EventQueue } from './event-queue.ts';

/** The way to the client until its request is answered. */
export interface ResponseStream {
  /** Whether the client takes a stream: to others nothing is sent but the response. */
  readonly isAccepted: boolean;
  /** Notifications to a client that reads slower than they come are dropped. */
  send(message: OutgoingMessage): void;
  /**
   * Resolves to the answer; or, when something is sent before it, at once to the stream, whose last
   * event it is then. Nothing is sent after the answer.
   */
  respond(answer: Promise<Answer>): Promise<McpResponse>;
  /** Answers in place of what was to be the answer, unless that has come. */
  end(answer: Answer): void;
}

export function createResponseStream(isAccepted: boolean, id: RequestId | null): ResponseStream {
  let queue: EventQueue | undefined;
  let response: StreamResponse | undefined;
  let answer: Answer | undefined;
  let resolve: ((response: McpResponse) => void) | undefined;

  function startStream(): EventQueue {
    const events = createEventQueue();
    response = { kind: 'stream', events: events.items, answer: () => answer };
    resolve?.(response);
    return events;
  }

  function end(value: Answer): void {
    if (answer !== undefined) return;
    answer = value;
    if (queue === undefined) {
      resolve?.({ kind: 'json', answer: value });
    } else {
      queue.push(toSseEvent(renderResponse(value, id).text));
      queue.end();
    }
  }

  return {
    isAccepted,
    send(message) {
      if (answer !== undefined || !isAccepted) return;
      queue ??= startStream();
      if (message.id === undefined && queue.isFull()) return;
      queue.push(toSseEvent(JSON.stringify({ jsonrpc: '2.0', ...message })));
    },
    end,
    respond(pending) {
      pending.then(end);
      return new Promise((settle) => {
        resolve = settle;
        if (response !== undefined) settle(response);
      });
    },
  };
}

/** Whether the caller names event streams among what it accepts; any type (a plain client) is not enough. */
export function acceptsEventStream(request: GatewayRequest): boolean {
  const accept = getHeader(request, 'accept') ?? '';
  // As nearly all clients write it: nothing has to be taken apart.
  if (accept === USUAL_ACCEPT) return true;
  return accept.split(',').some((range) => EVENT_STREAM.test(range) && !REFUSED.test(range));
}

/** MCP "Sending Messages to the Server". */
const USUAL_ACCEPT = 'application/json, text/event-stream';

const EVENT_STREAM = /^\s*text\/event-stream\s*(;|$)/i;

/** RFC 9110 §12.4.2: a weight of zero. */
const REFUSED = /;\s*q\s*=\s*0(\.0*)?\s*(;|$)/i;
