// §1, MCP "Streamable HTTP": the answer to one request is JSON, or a stream of events once
// something is sent before the result and the client takes a stream.
import { type GatewayRequest, getHeader, type ReplyStream } from '../../endpoint/message.ts';
import { toSseEvent } from '../../platform/sse.ts';
import type { OutgoingMessage, RequestId } from '../../protocol/json-rpc.ts';
import {
  type Answer,
  type McpResponse,
  renderResponse,
  type StreamResponse,
} from '../calls/outcome.ts';
import { createEventQueue } from './event-queue.ts';

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
  /** Where it becomes a stream, it is one that outlives its connection. To be called before anything is sent. */
  keep(how: KeepStream): void;
  /** Becomes a stream although there is nothing to send yet, where its client can come back to that. */
  begin(): void;
  /** Ends the connection, and becomes a stream for it: its client comes back for the answer, where it can. */
  disconnect(): void;
  /** Whether the client may come back for the answer after its connection broke. */
  isKept(): boolean;
}

export interface KeepStream {
  start(): EventChannel;
  /** Whether clients understand a stream that begins with nothing but an id to come back with. */
  readonly canBegin: boolean;
}

/** On which the events of one response are sent. */
export interface EventChannel {
  /** To be read once. */
  readonly items: ReplyStream;
  /** Shows the client that it has begun. */
  begin(): void;
  send(json: string, isNotification: boolean): void;
  /** With the last event. */
  end(json: string): void;
  disconnect(): void;
}

export function createResponseStream(isAccepted: boolean, id: RequestId | null): ResponseStream {
  let keepStream: KeepStream | undefined;
  let channel: EventChannel | undefined;
  let response: StreamResponse | undefined;
  let answer: Answer | undefined;
  let resolve: ((response: McpResponse) => void) | undefined;

  function startStream(): EventChannel {
    const started = keepStream === undefined ? createPlainChannel() : keepStream.start();
    response = { kind: 'stream', events: started.items, answer: () => answer };
    resolve?.(response);
    return started;
  }

  function end(value: Answer): void {
    if (answer !== undefined) return;
    answer = value;
    if (channel === undefined) resolve?.({ kind: 'json', answer: value });
    else channel.end(renderResponse(value, id).text);
  }

  function begin(): void {
    if (answer !== undefined || channel !== undefined || keepStream?.canBegin !== true) return;
    channel = startStream();
    channel.begin();
  }

  return {
    isAccepted,
    send(message) {
      if (answer !== undefined || !isAccepted) return;
      channel ??= startStream();
      channel.send(JSON.stringify({ jsonrpc: '2.0', ...message }), message.id === undefined);
    },
    end,
    respond(pending) {
      pending.then(end);
      return new Promise((settle) => {
        resolve = settle;
        if (response !== undefined) settle(response);
      });
    },
    keep(how) {
      if (isAccepted) keepStream = how;
    },
    begin,
    disconnect() {
      if (answer !== undefined || keepStream === undefined) return;
      begin();
      channel?.disconnect();
    },
    isKept: () => keepStream !== undefined && channel !== undefined,
  };
}

/** Of a stream that ends with its connection. */
function createPlainChannel(): EventChannel {
  const queue = createEventQueue();
  return {
    items: queue.items,
    begin() {},
    send(json, isNotification) {
      if (!isNotification || !queue.isFull()) queue.push(toSseEvent(json));
    },
    end(json) {
      queue.push(toSseEvent(json));
      queue.end();
    },
    disconnect() {},
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
