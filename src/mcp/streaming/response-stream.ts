// §1, MCP "Streamable HTTP": the response to a POST: JSON, or an event stream once a message is sent before the result and the
// client accepts a stream.

import { GatewayError, getStackFacts, toGatewayError } from '../../errors/gateway-error.ts';
import {
  type GatewayRequest,
  getHeader,
  type Reply,
  type ReplyStream,
} from '../../http/endpoint/message.ts';
import { toJsonRpcError } from '../../http/endpoint/render-error.ts';
import { writeExactJson } from '../../platform/exact-json.ts';
import { findWritten, surround } from '../../platform/json.ts';
import { findText } from '../../platform/noted-json.ts';
import type { OutgoingMessage, RequestId } from '../protocol/json-rpc.ts';
import { type EventChannel, PlainChannel } from './event-queue.ts';

/** The `result` or the `error` of a JSON-RPC response. `failure` is the error to log for a result that reports one. */
export type Answer =
  | { readonly result: object; readonly failure?: GatewayError }
  | { readonly error: GatewayError };

/** One JSON-RPC response, an event stream that ends with it, or 202 for messages without a response. */
export type McpResponse =
  | { readonly kind: 'json'; readonly answer: Answer }
  | StreamResponse
  | { readonly kind: 'accepted' };

export interface StreamResponse {
  readonly kind: 'stream';
  /** Server-sent events, as text. */
  readonly events: ReplyStream;
  /** The answer, once the stream has ended; absent for a stream of notifications. */
  answer?(): Answer | undefined;
}

export const ACCEPTED: McpResponse = { kind: 'accepted' };

export interface KeepStream {
  start(): ResponseChannel;
  /** True if clients accept a primer: a first event with an id and no data. */
  readonly canPrime: boolean;
}

type ResponseChannel = Omit<EventChannel, 'close' | 'isFull' | 'hasRoomToSpare'>;

/** The way to the client until its request is answered. A class: closures took half a kilobyte more for each call. */
export class ResponseStream {
  /** True if the client accepts a stream: other clients are sent the response only. */
  readonly isAccepted: boolean;
  /** True from 2025-03-26 on, in both eras: slowness alone may turn it into a stream. Set by the era. */
  isStreamableRevision = false;
  private readonly id: RequestId | null;
  private keepStream: KeepStream | undefined = undefined;
  private channel: ResponseChannel | undefined = undefined;
  /** True once an event id was sent: the client can resume. */
  private hasId = false;
  private response: StreamResponse | undefined = undefined;
  private answer: Answer | undefined = undefined;
  private resolve: ((response: McpResponse) => void) | undefined = undefined;

  constructor(isAccepted: boolean, id: RequestId | null) {
    this.isAccepted = isAccepted;
    this.id = id;
  }

  /** Nothing is sent after the answer. */
  get isAnswered(): boolean {
    return this.answer !== undefined;
  }

  /** Drops notifications while the client reads too slowly. */
  send(message: OutgoingMessage): void {
    if (this.answer !== undefined || !this.isAccepted) return;
    this.channel ??= this.startStream();
    this.hasId = this.keepStream !== undefined;
    this.channel.send(writeExactJson({ jsonrpc: '2.0', ...message }), message.id === undefined);
  }

  /** Resolves to the answer given to `end`; or, once a message is sent before it, to the stream that ends with it. */
  respond(): Promise<McpResponse> {
    return new Promise((resolve) => {
      this.resolve = resolve;
      if (this.response !== undefined) resolve(this.response);
      else if (this.answer !== undefined) resolve({ kind: 'json', answer: this.answer });
    });
  }

  /** Answers, unless that was done before. */
  end(answer: Answer): void {
    if (this.answer !== undefined) return;
    this.answer = answer;
    if (this.channel === undefined) this.resolve?.({ kind: 'json', answer });
    else this.channel.end(renderResponse(answer, this.id).text);
  }

  /** Answers with the promise's value or its error. Resolves like `respond`. */
  answerWith(answering: Promise<Answer>): Promise<McpResponse> {
    answering.then(
      (answer) => this.end(answer),
      (thrown: unknown) => this.end(toErrorAnswer(thrown)),
    );
    return this.respond();
  }

  /** Answers with another stream; a response that is a stream already continues with it. */
  pass(response: StreamResponse): void {
    this.response ??= response;
    this.resolve?.(response);
  }

  /** Lets the stream outlive its connection. To be called before the first message. */
  keep(how: KeepStream): void {
    if (this.isAccepted) this.keepStream = how;
  }

  /**
   * Becomes a stream before the first message, so that heartbeats are sent: if it may begin with an empty event (2025-11-25), or
   * the call `isLate`.
   */
  begin(isLate: boolean): void {
    const isBegun = this.answer !== undefined || this.channel !== undefined;
    if (isBegun || !this.isAccepted || !this.isStreamableRevision) return;
    const canPrime = this.keepStream?.canPrime === true;
    if (!canPrime && !isLate) return;
    this.channel = this.startStream();
    if (!canPrime) return;
    this.hasId = true;
    this.channel.begin();
  }

  /** Turns the response into a stream and closes the connection: clients that can will resume it to get the answer. */
  disconnect(): void {
    if (this.answer !== undefined) return;
    this.begin(false);
    if (this.hasId) this.channel?.disconnect();
  }

  /** True if the client can resume after its connection broke. */
  isKept(): boolean {
    return this.hasId;
  }

  private startStream(): ResponseChannel {
    const started = this.keepStream === undefined ? new PlainChannel() : this.keepStream.start();
    this.response = { kind: 'stream', events: started.items, answer: () => this.answer };
    this.resolve?.(this.response);
    return started;
  }
}

/** True if `Accept` names event streams; a wildcard (a plain HTTP client) is not enough. */
export function acceptsEventStream(request: GatewayRequest): boolean {
  const accept = getHeader(request, 'accept') ?? '';
  // Nearly all clients send exactly this.
  if (accept === USUAL_ACCEPT) return true;
  return accept.split(',').some((range) => EVENT_STREAM.test(range) && !REFUSED.test(range));
}

/** MCP "Sending Messages to the Server". */
const USUAL_ACCEPT = 'application/json, text/event-stream';

const EVENT_STREAM = /^\s*text\/event-stream\s*(;|$)/i;

/** RFC 9110 §12.4.2: a weight of zero. */
const REFUSED = /;\s*q\s*=\s*0(\.0*)?\s*(;|$)/i;

// §4.4, §7.1: JSON-RPC responses as text.

export const toErrorAnswer = (thrown: unknown): Answer => ({ error: toGatewayError(thrown) });

/** The answer to a method whose result cannot be sent. */
export const toFailedAnswer = (cause: unknown): Answer => ({
  error: new GatewayError('method_failed', { cause, facts: getStackFacts(cause) }),
});

/** The JSON-RPC response as text, and the error that it reports. A result that cannot be serialized is a failure of its method. */
export function renderResponse(
  answer: Answer,
  id: RequestId | null,
): { readonly text: string; readonly error?: GatewayError } {
  if ('error' in answer) {
    const { error } = answer;
    return { text: writeExactJson({ jsonrpc: '2.0', error: toJsonRpcError(error), id }), error };
  }
  try {
    const written = findText(answer.result);
    const text =
      written === undefined
        ? writeExactJson({ jsonrpc: '2.0', result: answer.result, id })
        : // Newlines have no meaning in JSON, and would end a server-sent event.
          `${RESULT_HEAD}${written.replace(/[\r\n]/g, ' ')},"id":${JSON.stringify(id)}}`;
    return answer.failure === undefined ? { text } : { text, error: answer.failure };
  } catch (cause) {
    return renderResponse(toFailedAnswer(cause), id);
  }
}

/** Like `renderResponse`, but a result whose bytes are known is not serialized again. */
export function renderBody(
  answer: Answer,
  id: RequestId | null,
): Pick<Reply, 'body' | 'pieces'> & { readonly error?: GatewayError } {
  const hasFailed = 'error' in answer || answer.failure !== undefined;
  const written = hasFailed ? undefined : findWritten(answer.result);
  if (written !== undefined) {
    const response = surround(RESULT_HEAD, written, `,"id":${JSON.stringify(id)}}`);
    return typeof response === 'string' ? { body: response } : { pieces: response };
  }
  const { text, error } = renderResponse(answer, id);
  return error === undefined ? { body: text } : { body: text, error };
}

const RESULT_HEAD = '{"jsonrpc":"2.0","result":';
