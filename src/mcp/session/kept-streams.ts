// §15.1: what the streams of this replica have sent, kept for clients whose connections break. What another replica could
// need goes to the store: the log of a stream that took long, whose connection broke, or for which somebody asks there.

import { randomUUID } from 'node:crypto';
import type { GatewayError } from '../../errors/gateway-error.ts';
import type { ReplyStream } from '../../http/endpoint/message.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { RequestId } from '../protocol/json-rpc.ts';
import { EventQueue } from '../streaming/event-queue.ts';
import { type EventChannel, renderResponse } from '../streaming/response-stream.ts';
import { createKeptAccounts, KeptStream } from './kept-stream.ts';
import {
  isPrimed,
  readIdOf,
  splitEvents,
  toEvent,
  toPrimer,
  toReplay,
} from './resumable-events.ts';
import type { McpReplicas } from './sessions.ts';
import { createShortStreams, type ShortStream } from './short-streams.ts';
import { KEPT_MS, type StoredStreams } from './stored-streams.ts';

export interface NewKeptStream extends Pick<KeptStream, 'sessionId' | 'protocolVersion' | 'user'> {
  /** The id of the call that it answers. */
  readonly requestId: RequestId | undefined;
  /** It is the stream of the session, which answers nothing. */
  readonly isOfSession: boolean;
  /** Nobody came back in time. */
  abandon(): void;
}

/** Milliseconds. What has ended sooner is written to the store when it ends only if its connection is broken by then. */
const LONG_MS = 1000;
/** Streams that ended within this time before the process stops are written then: its client may be on the way. */
const RECENT_MS = 10_000;
const SWEEP_MS = 10_000;
/** For how long what a session would hear is heard after its connection broke: many clients only leave. */
const LISTEN_MS = 30_000;

export type KeptStreams = ReturnType<typeof createKeptStreams>;

export function createKeptStreams(
  { clock }: Runtime,
  stored: StoredStreams,
  replicas: McpReplicas,
) {
  const accounts = createKeptAccounts();
  const shortStreams = createShortStreams(accounts.release);
  const broken = new Set<KeptStream>();
  /** Calls under way. */
  let running = 0;
  let isStopping = false;
  let isSweeping = false;
  let tellDrained: (() => void) | undefined;

  replicas.listen((message) => {
    if (message.about !== 'resume') return;
    const { sessionId, stream: name, replica } = message;
    const stream = find(sessionId, name);
    if (stream === undefined) return stored.tellReader({ sessionId, name }, replica, 'gone');
    // To be read there from now on.
    if (stream.readBy !== replica) stored.releaseReader(stream);
    stream.queue?.end();
    stream.queue = undefined;
    stream.readBy = replica;
    // Its client counts as there for as long as that replica asks.
    noteBroken(stream);
    void stored.saveForReader(stream);
  });

  function find(sessionId: string, name: string): KeptStream | undefined {
    const session = accounts.findSession(sessionId);
    if (session === undefined) return undefined;
    const known = session.streams.find((one) => one.name === name);
    if (known !== undefined) return known;
    const short = shortStreams.find(session, name, clock.monotonic());
    if (short === undefined) return undefined;
    const stream = openAgain(short);
    accounts.addAgain(stream);
    return stream;
  }

  // Streams that were short, and sent whole.

  /** False where it is kept as others are. */
  function keepAsShort(stream: KeptStream): boolean {
    const { session, name, events } = stream;
    const wasNeeded = stream.storedBytes > 0 || stream.saving !== undefined;
    // Nothing but notifications and the answer: so nothing has to be known of them.
    const isWhole =
      stream.firstPosition === 1 &&
      events.every(({ isNotification }, at) => isNotification === at < events.length - 1);
    if (wasNeeded || !isWhole || session.isOver) return false;
    const texts = events.map(({ text }) => text);
    if (!shortStreams.add(session, name, texts, clock.monotonic())) return false;
    accounts.drop(stream);
    return true;
  }

  /** Somebody comes back to it. */
  function openAgain({ session, name, text, endedAt }: ShortStream): KeptStream {
    const texts = splitEvents(text);
    const stream = new KeptStream(session, {
      name,
      replica: replicas.ownName,
      requestId: readIdOf(text)?.requestId,
      isOfSession: false,
      startedAt: endedAt,
      events: texts.map((event, at) => ({ text: event, isNotification: at < texts.length - 1 })),
      abandon: undefined,
    });
    stream.endedAt = endedAt;
    return stream;
  }

  // Sending.

  function end(stream: KeptStream, json: string): void {
    if (stream.endedAt !== undefined) return;
    const text = toEvent(stream, 'end', json);
    push(stream, text);
    accounts.append(stream, { text, isNotification: false });
    close(stream);
  }

  function close(stream: KeptStream): void {
    if (stream.endedAt !== undefined) return;
    const { queue } = stream;
    queue?.end();
    const isNeeded =
      queue === undefined ||
      isStopping ||
      stream.isOfSession ||
      clock.monotonic() - stream.startedAt > LONG_MS;
    stream.queue = undefined;
    stream.abandon = undefined;
    if (!stream.isOfSession) running -= 1;
    broken.delete(stream);
    stream.endedAt = clock.monotonic();
    if (isNeeded || !keepAsShort(stream)) accounts.addFinished(stream);
    scheduleSweep();
    if (isNeeded) void stored.saveForReader(stream);
    if (running === 0) tellDrained?.();
  }

  /** Its client has left without an id to come back with. */
  function forget(stream: KeptStream): void {
    stream.abandon = undefined;
    stream.endedAt = clock.monotonic();
    accounts.drop(stream);
    accounts.release(stream.session);
    running -= 1;
    if (running === 0) tellDrained?.();
  }

  function push(stream: KeptStream, text: string): void {
    stream.queue?.push(stream.unsent === '' ? text : stream.unsent + text);
    stream.unsent = '';
  }

  function noteBroken(stream: KeptStream): void {
    if (stream.endedAt !== undefined) return;
    stream.brokenAt = clock.monotonic();
    broken.add(stream);
    scheduleSweep();
  }

  function openQueue(stream: KeptStream): EventQueue {
    stream.queue?.end();
    const queue = new EventQueue(() => {
      if (stream.queue !== queue) return;
      stream.queue = undefined;
      if (hasId(stream)) noteBroken(stream);
      else forget(stream);
    });
    stream.queue = queue;
    stream.brokenAt = undefined;
    broken.delete(stream);
    return queue;
  }

  // Streams that nobody came back for.

  function scheduleSweep(): void {
    if (isSweeping) return;
    isSweeping = true;
    clock.after(SWEEP_MS, () => {
      isSweeping = false;
      sweep(clock.monotonic());
      const hasKept = accounts.hasFinished || !shortStreams.isEmpty;
      if (running > 0 || broken.size > 0 || hasKept) scheduleSweep();
    });
  }

  function sweep(now: number): void {
    const before = now - KEPT_MS;
    accounts.sweep(before);
    shortStreams.sweep(now);
    for (const stream of broken) {
      const patience = stream.isOfSession ? KEPT_MS - LISTEN_MS : 0;
      if (stream.brokenAt === undefined || stream.brokenAt > before + patience) continue;
      broken.delete(stream);
      stream.abandon?.();
    }
  }

  /** A class: thousands of them stand for minutes, and closures would take ten times the memory. */
  class StreamChannel implements EventChannel {
    readonly items: ReplyStream;
    private readonly stream: KeptStream;

    constructor(stream: KeptStream, items: ReplyStream) {
      this.stream = stream;
      this.items = items;
    }

    begin(): void {
      push(this.stream, '');
    }

    send(json: string, isNotification: boolean): void {
      const { stream } = this;
      // A client that reads far slower than notifications come does without some of them.
      if (stream.endedAt !== undefined || (isNotification && stream.queue?.isFull())) return;
      const position = stream.firstPosition + stream.events.length;
      const text = toEvent(stream, position, json);
      push(stream, text);
      accounts.append(stream, { text, isNotification });
      if (stream.readBy !== undefined) stored.scheduleNews(stream);
    }

    end(json: string): void {
      end(this.stream, json);
    }

    close(): void {
      push(this.stream, '');
      close(this.stream);
    }

    isFull(): boolean {
      return this.stream.queue?.isFull() === true;
    }

    hasRoomToSpare(characters: number): boolean {
      return this.stream.queue?.hasRoomToSpare(characters) !== false;
    }

    disconnect(): void {
      const { stream } = this;
      if (stream.endedAt !== undefined || stream.queue === undefined) return;
      push(stream, '');
      stream.queue.end();
      stream.queue = undefined;
      noteBroken(stream);
    }
  }

  return {
    /** A stream of the session that is kept here. */
    find,
    /** A stream that is sent for the first time. */
    start(begun: NewKeptStream): EventChannel {
      const { sessionId, user, protocolVersion } = begun;
      const stream = new KeptStream(accounts.openSession(sessionId, user, protocolVersion), {
        ...begun,
        name: randomUUID().slice(-12),
        replica: replicas.ownName,
        startedAt: clock.monotonic(),
        events: [],
      });
      accounts.add(stream);
      if (!stream.isOfSession) running += 1;
      scheduleSweep();
      const queue = openQueue(stream);
      stream.unsent = toPrimer(stream, 0);
      return new StreamChannel(stream, queue);
    },
    /** Sends what came after the position, and what comes, on a connection of its own: the one before is over. */
    attach(stream: KeptStream, position: number): ReplyStream {
      stored.releaseReader(stream);
      const queue = openQueue(stream);
      stream.unsent = '';
      queue.push(toPrimer(stream, position) + toReplay(stream, stream.toLog(), position));
      if (stream.endedAt === undefined && stream.lostPosition <= position) return queue;
      queue.end();
      stream.queue = undefined;
      return queue;
    },
    /** The session has ended: nobody may come back. */
    endSession(sessionId: string): void {
      for (const stream of accounts.endSession(sessionId)) {
        if (stream.queue === undefined) stream.abandon?.();
      }
    },
    /** From now on what ends is written to the store. */
    startStopping(): void {
      isStopping = true;
    },
    /** Resolves once all calls with such streams have ended and what they came to is in the store. */
    drain: (): Promise<void> =>
      running === 0
        ? Promise.resolve()
        : new Promise((resolve) => {
            tellDrained = resolve;
          }),
    /** Ends what has not ended, with what its clients are told, and writes it to the store. */
    async stop(error: GatewayError): Promise<void> {
      const streams = accounts.listStreams();
      for (const stream of streams.filter(({ isOfSession }) => !isOfSession)) {
        end(stream, renderResponse({ error }, stream.requestId ?? null).text);
      }
      const recent = clock.monotonic() - RECENT_MS;
      for (const stream of accounts.listStreams()) {
        if (stream.isUnsaved && (stream.endedAt ?? 0) > recent) void stored.save(stream);
      }
      for (const short of shortStreams.list(recent)) void stored.save(openAgain(short));
      await stored.finish();
    },
  };
}

/** True once an event id was sent, with which the client can come back. */
const hasId = ({ isOfSession, protocolVersion, firstPosition, events }: KeptStream): boolean =>
  isOfSession || isPrimed(protocolVersion) || firstPosition + events.length > 1;
