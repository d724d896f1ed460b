// §1, MCP "Streamable HTTP": the answer to one request is JSON, or a stream of events once
// something is sent before the result and the client takes a stream.

import {
  type GatewayRequest,
  getHeader,
  type ReplyStream,
  type WaitingWatcher,
} from '../../http/endpoint/message.ts';
import { writeExactJson } from '../../platform/exact-json.ts';
import { toSseEvent } from '../../platform/text.ts';
import {
  type Answer,
  type McpResponse,
  renderResponse,
  type StreamResponse,
} from '../calls/outcome.ts';
import type { OutgoingMessage, RequestId } from '../protocol/json-rpc.ts';

export interface KeepStream {
  start(): ResponseChannel;
  /** True if clients understand a stream that begins with nothing but an id to come back with. */
  readonly canPrime: boolean;
}

/** On which the events of one response, or of one stream of notifications, are sent. */
export interface EventChannel {
  /** To be read once. */
  readonly items: ReplyStream;
  /** Shows the client that it has begun. */
  begin(): void;
  /** Notifications to a client that reads far slower than they come are dropped. */
  send(json: string, isNotification: boolean): void;
  /** With the last event. */
  end(json: string): void;
  /** Ends it without a last event. */
  close(): void;
  /** More waits for its reader than a slow one may keep in memory. */
  isFull(): boolean;
  /** Half of that would stay free with so many characters more. */
  hasRoomToSpare(characters: number): boolean;
  /** Ends the connection: its reader comes again, where it can. */
  disconnect(): void;
}

/** All that a response needs. */
type ResponseChannel = Omit<EventChannel, 'close' | 'isFull' | 'hasRoomToSpare'>;

/** The way to the client until its request is answered. A class: as closures each call's had half a kilobyte more. */
export class ResponseStream {
  /** True if the client takes a stream: to others nothing is sent but the response. */
  readonly isAccepted: boolean;
  /** True if it may become a stream only because its call takes long; the era sets it. */
  mayBegin = false;
  private readonly id: RequestId | null;
  private keepStream: KeepStream | undefined;
  private channel: ResponseChannel | undefined;
  /** True once an event id was sent, with which the client can come back. */
  private hasId = false;
  private response: StreamResponse | undefined;
  private answer: Answer | undefined;
  private resolve: ((response: McpResponse) => void) | undefined;

  constructor(isAccepted: boolean, id: RequestId | null) {
    this.isAccepted = isAccepted;
    this.id = id;
  }

  /** From then on nothing reaches the client by it. */
  get isAnswered(): boolean {
    return this.answer !== undefined;
  }

  /** Notifications to a client that reads slower than they come are dropped. */
  send(message: OutgoingMessage): void {
    if (this.answer !== undefined || !this.isAccepted) return;
    this.channel ??= this.startStream();
    this.hasId = this.keepStream !== undefined;
    this.channel.send(writeExactJson({ jsonrpc: '2.0', ...message }), message.id === undefined);
  }

  /**
   * Resolves to the answer that `end` is given; or, when something is sent before it, at once to the stream, whose last
   * event it is then. Nothing is sent after the answer.
   */
  respond(): Promise<McpResponse> {
    return new Promise((resolve) => {
      this.resolve = resolve;
      if (this.response !== undefined) resolve(this.response);
      else if (this.answer !== undefined) resolve({ kind: 'json', answer: this.answer });
    });
  }

  /** The answer, unless there is one. */
  end(answer: Answer): void {
    if (this.answer !== undefined) return;
    this.answer = answer;
    if (this.channel === undefined) this.resolve?.({ kind: 'json', answer });
    else this.channel.end(renderResponse(answer, this.id).text);
  }

  /** The answer is another stream, which its own goes on with where it is one already. */
  pass(response: StreamResponse): void {
    this.response ??= response;
    this.resolve?.(response);
  }

  /** Has it outlive its connection, where it becomes a stream. To be called before anything is sent. */
  keep(how: KeepStream): void {
    if (this.isAccepted) this.keepStream = how;
  }

  /**
   * Becomes a stream although there is nothing to send yet, whose silence is then filled: where its client can come back to
   * that, or the call `isLate`.
   */
  begin(isLate: boolean): void {
    const isBegun = this.answer !== undefined || this.channel !== undefined;
    if (isBegun || !this.isAccepted || !this.mayBegin) return;
    const canPrime = this.keepStream?.canPrime === true;
    if (!canPrime && !isLate) return;
    this.channel = this.startStream();
    if (!canPrime) return;
    this.hasId = true;
    this.channel.begin();
  }

  /** Ends the connection, and becomes a stream for it: its client comes back for the answer, where it can. */
  disconnect(): void {
    if (this.answer !== undefined) return;
    this.begin(false);
    if (this.hasId) this.channel?.disconnect();
  }

  /** True if the client may come back for the answer after its connection broke. */
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

/** True if the caller names event streams among what it accepts; any type (a plain client) is not enough. */
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

const MAX_WAITING_CHARACTERS = 262_144;

type NextEvent = IteratorResult<string, undefined>;

/**
 * Server-sent events in their order, from who sends them to one reader. When that leaves early, what waits and what comes is
 * dropped. A class: thousands of them stand for minutes, and closures would take four times the memory.
 */
export class EventQueue implements ReplyStream, AsyncIterator<string, undefined> {
  protected readonly onLeave: () => void;
  /** Undefined where nothing waits: an array that has lost its members would keep their room. */
  private waiting: string[] | undefined;
  private waitingCharacters = 0;
  private hasEnded = false;
  private watcher: WaitingWatcher | undefined;
  /** Set by the reader's `next`, while there is nothing to read. */
  private resolveNext: ((result: NextEvent) => void) | undefined;

  /** `onLeave` is called when the reader leaves before the end. */
  constructor(onLeave: () => void = () => {}) {
    this.onLeave = onLeave;
  }

  push(event: string): void {
    if (this.hasEnded) return;
    if (this.resolveNext !== undefined) {
      this.passToReader({ done: false, value: event });
      return;
    }
    if (this.waiting === undefined) this.waiting = [event];
    else this.waiting.push(event);
    this.countWaiting(event.length);
  }

  /** Nothing more comes; what waits is still read. */
  end(): void {
    this.hasEnded = true;
    if (this.resolveNext !== undefined) this.passToReader({ done: true, value: undefined });
  }

  /** True if more waits for its reader than a slow one may keep in memory. */
  isFull(): boolean {
    return this.waitingCharacters >= MAX_WAITING_CHARACTERS;
  }

  /** True if half of that would stay free with so many characters more. */
  hasRoomToSpare(characters: number): boolean {
    return this.waitingCharacters + characters <= MAX_WAITING_CHARACTERS / 2;
  }

  watchWaiting(watcher: WaitingWatcher): void {
    this.watcher = watcher;
    watcher.noteWaiting(this.waitingCharacters);
  }

  [Symbol.asyncIterator](): AsyncIterator<string, undefined> {
    return this;
  }

  next(): Promise<NextEvent> {
    const event = this.waiting?.shift();
    if (event !== undefined) {
      if (this.waiting?.length === 0) this.waiting = undefined;
      this.countWaiting(-event.length);
      return Promise.resolve({ done: false, value: event });
    }
    if (this.hasEnded) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => {
      this.resolveNext = resolve;
    });
  }

  async return(): Promise<NextEvent> {
    const isEarly = !this.hasEnded;
    this.hasEnded = true;
    this.waiting = undefined;
    this.countWaiting(-this.waitingCharacters);
    this.passToReader({ done: true, value: undefined });
    if (isEarly) this.onLeave();
    return { done: true, value: undefined };
  }

  private countWaiting(change: number): void {
    this.waitingCharacters += change;
    this.watcher?.noteWaiting(this.waitingCharacters);
  }

  private passToReader(result: NextEvent): void {
    const resolve = this.resolveNext;
    this.resolveNext = undefined;
    resolve?.(result);
  }
}

/** The channel of a stream that ends with its connection; `onLeave` is called when that ends before. */
export class PlainChannel extends EventQueue implements EventChannel {
  get items(): ReplyStream {
    return this;
  }

  begin(): void {}

  send(json: string, isNotification: boolean): void {
    if (!isNotification || !this.isFull()) this.push(toSseEvent(json));
  }

  override end(json?: string): void {
    if (json !== undefined) this.push(toSseEvent(json));
    super.end();
  }

  close(): void {
    super.end();
  }

  disconnect(): void {
    this.onLeave();
  }
}
