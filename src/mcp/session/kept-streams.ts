// §15.1: resumable streams that began on this replica: their connections, and when their events are written to the shared store:
// of a stream that took long, whose connection broke, or that is resumed on another replica.

import { randomUUID } from 'node:crypto';
import type { GatewayError } from '../../errors/gateway-error.ts';
import type { ReplyStream } from '../../http/endpoint/message.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { RequestId } from '../protocol/json-rpc.ts';
import { type EventChannel, EventQueue } from '../streaming/event-queue.ts';
import { renderResponse } from '../streaming/response-stream.ts';
import { createEventStore } from './event-store.ts';
import { KeptStream } from './kept-stream.ts';
import { isPrimed, KEPT_MS, toEvent, toPrimer, toReplay } from './resumable-events.ts';
import type { McpReplicas } from './sessions.ts';
import type { StoredStreams } from './stored-streams.ts';

export interface NewKeptStream extends Pick<KeptStream, 'sessionId' | 'protocolVersion' | 'user'> {
  /** The id of the answered request. */
  readonly requestId: RequestId | undefined;
  /** The stream of the session, which answers no request. */
  readonly isOfSession: boolean;
  /** Called when the client has not resumed the stream in time. */
  abandon(): void;
}

/** Milliseconds. A shorter stream is written to the store only if its connection is broken when it ends. */
const LONG_MS = 1000;
/** Streams that ended within this time before a shutdown are written: their clients may be about to resume. */
const RECENT_MS = 10_000;
const SWEEP_MS = 10_000;
/** How long a session's stream listens after its connection broke: many clients simply leave. */
const LISTEN_MS = 30_000;

export type KeptStreams = ReturnType<typeof createKeptStreams>;

export function createKeptStreams(
  { clock }: Runtime,
  stored: StoredStreams,
  replicas: McpReplicas,
) {
  const store = createEventStore(clock, replicas.ownName);
  const broken = new Set<KeptStream>();
  /** Calls in flight. */
  let running = 0;
  let isStopping = false;
  let isSweeping = false;
  let tellDrained: (() => void) | undefined;

  replicas.listen((message) => {
    if (message.about !== 'resume') return;
    const { sessionId, stream: name, replica } = message;
    const stream = store.find(sessionId, name);
    if (stream === undefined) return stored.tellReader({ sessionId, name }, replica, 'gone');
    if (stream.readBy !== replica) stored.releaseReader(stream);
    stream.queue?.end();
    stream.queue = undefined;
    stream.readBy = replica;
    // Its client counts as connected for as long as that replica asks.
    noteBroken(stream);
    void stored.saveForReader(stream);
  });

  // Sending.

  function end(stream: KeptStream, json: string) {
    if (stream.endedAt !== undefined) return;
    append(stream, 'end', json, false);
    close(stream);
  }

  function append(
    stream: KeptStream,
    position: number | 'end',
    json: string,
    isNotification: boolean,
  ) {
    const text = toEvent(stream, position, json);
    push(stream, text);
    store.append(stream, { text, isNotification });
  }

  function close(stream: KeptStream) {
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
    store.finish(stream, isNeeded);
    scheduleSweep();
    if (isNeeded) void stored.saveForReader(stream);
    if (running === 0) tellDrained?.();
  }

  /** Its client has left without an event id to resume from. */
  function forget(stream: KeptStream) {
    stream.abandon = undefined;
    stream.endedAt = clock.monotonic();
    store.forget(stream);
    running -= 1;
    if (running === 0) tellDrained?.();
  }

  function push(stream: KeptStream, text: string) {
    stream.queue?.push(stream.unsent === '' ? text : stream.unsent + text);
    stream.unsent = '';
  }

  function noteBroken(stream: KeptStream) {
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

  // Streams that were not resumed.

  function scheduleSweep() {
    if (isSweeping) return;
    isSweeping = true;
    clock.after(SWEEP_MS, () => {
      isSweeping = false;
      const now = clock.monotonic();
      const hasKept = store.sweep(now);
      abandonBroken(now - KEPT_MS);
      if (running > 0 || broken.size > 0 || hasKept) scheduleSweep();
    });
  }

  function abandonBroken(before: number) {
    for (const stream of broken) {
      const patience = stream.isOfSession ? KEPT_MS - LISTEN_MS : 0;
      if (stream.brokenAt === undefined || stream.brokenAt > before + patience) continue;
      broken.delete(stream);
      stream.abandon?.();
    }
  }

  /** A class: thousands stay open for minutes, and closures would take ten times the memory. */
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
      // Back-pressure: notifications are dropped while the client reads too slowly.
      if (stream.endedAt !== undefined || (isNotification && stream.queue?.isFull())) return;
      const position = stream.firstPosition + stream.events.length;
      append(stream, position, json, isNotification);
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
    find: store.find,
    /** Begins a stream. */
    start(begun: NewKeptStream): EventChannel {
      const { sessionId, user, protocolVersion } = begun;
      const stream = new KeptStream(store.openSession(sessionId, user, protocolVersion), {
        ...begun,
        name: randomUUID().slice(-12),
        replica: replicas.ownName,
        startedAt: clock.monotonic(),
        events: [],
      });
      store.add(stream);
      if (!stream.isOfSession) running += 1;
      scheduleSweep();
      const queue = openQueue(stream);
      stream.unsent = toPrimer(stream, 0);
      return new StreamChannel(stream, queue);
    },
    /** Replays the events after the position and continues on a new connection, which replaces the one before. */
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
    /** Forgets the streams of a session that has ended. */
    endSession(sessionId: string): void {
      for (const stream of store.endSession(sessionId)) {
        if (stream.queue === undefined) stream.abandon?.();
      }
    },
    /** From now on, all streams are written to the store when they end. */
    startStopping(): void {
      isStopping = true;
    },
    /** Resolves once all calls with resumable streams have ended. */
    drain: (): Promise<void> =>
      running === 0
        ? Promise.resolve()
        : new Promise((resolve) => {
            tellDrained = resolve;
          }),
    /** Ends open streams with an error, and writes these and the recently ended streams to the store. */
    async stop(error: GatewayError): Promise<void> {
      for (const stream of store.listStreams().filter(({ isOfSession }) => !isOfSession)) {
        end(stream, renderResponse({ error }, stream.requestId ?? null).text);
      }
      const recent = clock.monotonic() - RECENT_MS;
      for (const stream of store.listUnsaved(recent)) void stored.save(stream);
      await stored.finish();
    },
  };
}

/** True once an event id was sent: the client can resume. */
const hasId = ({ isOfSession, protocolVersion, firstPosition, events }: KeptStream) =>
  isOfSession || isPrimed(protocolVersion) || firstPosition + events.length > 1;
