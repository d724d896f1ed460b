// Listeners to a server's changes, and the stream that is kept open for them: one for all callers that share a session.
import {
  GATEWAY_CALLER,
  nameOwnSession,
  type UpstreamCaller,
  type UpstreamDescription,
  type UpstreamListener,
  type UpstreamRuntime,
} from '../../mcp/upstream/upstream.ts';
import { type Clock, createAttempts } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import {
  createChangeListeners,
  readChange,
  type ServerNotification,
} from '../messages/server-message.ts';
import { BACK_OFF, pauseAfter } from '../transport/process-share.ts';
import { hashSession } from '../transport/session-records.ts';
import { nameSharer } from './sessions.ts';

export type ServerListeners = ReturnType<typeof createServerListeners>;

/** All listeners of a stream combined; the same object for as long as there is a listener. */
export interface StreamConsumer {
  /** The caller with the newest token, if several share the stream. */
  readonly caller: UpstreamCaller;
  /** The resources that clients of the stateless era subscribed to. */
  readonly uris: readonly string[];
  /** False if the stream is open only so that the server can send requests. */
  readonly isHeard: boolean;
  notify(message: ServerNotification): void;
  /** Receives the params of a log message that belongs to the session. */
  log(params: JsonObject): void;
}

interface ServerStreams {
  /** Opens a stream, calls `onOpen` when it is open, and resolves when it has ended. */
  open(consumer: StreamConsumer, ...attempt: Parameters<StreamAttempt>): Promise<AttemptEnd>;
  /** Called when a listener subscribes to more resources: true if that requires a new stream. */
  extend(consumer: StreamConsumer): boolean;
  readonly describe: (caller: UpstreamCaller) => UpstreamDescription | undefined;
}

/** A listener without topics: its stream is open only for questions. */
export const HELD_OPEN: UpstreamListener = { listChanged() {}, resourceUpdated() {} };

interface Entry {
  readonly caller: UpstreamCaller;
  readonly listener: UpstreamListener;
  readonly uris: readonly string[] | undefined;
}

interface Watch {
  caller: UpstreamCaller;
  readonly sessionHash: string | undefined;
  readonly consumer: StreamConsumer;
  readonly loop: RetryLoop;
  /** True while changes may be missed. */
  isGone: boolean;
}

/** The key of the gateway itself, which listens if the lists are the same for all callers. */
const GATEWAY_SHARER = nameSharer(GATEWAY_CALLER);

export function createServerListeners(
  { clock, log }: UpstreamRuntime,
  { open, extend, describe }: ServerStreams,
) {
  /** Keyed by the callers that share a stream. */
  const { bus, tell, tellMissed } = createChangeListeners<Entry, Watch>(
    {
      start: startWatch,
      stop: ({ loop }) => loop.stop(),
      onError: (cause) => log.error('A listener failed; please report this.', { cause }),
    },
    (_sharer, { uris }, uri) => uris?.includes(uri) !== false,
  );

  function startWatch(sharer: string, { caller }: Entry): Watch {
    const sessionId = nameOwnSession(caller);
    const sessionHash = sessionId === undefined ? undefined : hashSession(sessionId);
    const listEntries = () => [...(bus.topics.get(sharer)?.listeners ?? [])];
    const consumer: StreamConsumer = {
      get caller() {
        return watch.caller;
      },
      get uris() {
        return [...new Set(listEntries().flatMap(({ uris }) => uris ?? []))];
      },
      get isHeard() {
        return listEntries().some(({ listener }) => listener !== HELD_OPEN);
      },
      notify: (message) => tellNotified(sharer, message),
      log: (params) => bus.publish(sharer, ({ listener }) => listener.logged?.(params)),
    };
    /** Changes while no stream was open were missed, unless the server resumes the stream. */
    const attempt: StreamAttempt = (signal, onOpen) =>
      open(consumer, signal, (isResumed) => {
        if (watch.isGone && isResumed !== true) tellMissed(sharer, describe(watch.caller));
        watch.isGone = false;
        onOpen();
      }).finally(() => {
        watch.isGone ||= !signal.aborted;
      });
    const loop = startRetryLoop(clock, attempt);
    const watch: Watch = { caller, sessionHash, consumer, loop, isGone: false };
    return watch;
  }

  function tellNotified(sharer: string, message: ServerNotification) {
    const change = readChange(message);
    if (change === undefined) return;
    // Many servers notify only the session whose call changed a list, some only in the answer to that call.
    if (change.kind === 'list' && sharer !== GATEWAY_SHARER)
      bus.publish(GATEWAY_SHARER, ({ listener }) => listener.listMayHaveChanged?.(change.list));
    tell(sharer, change);
  }

  const listWatches = (): readonly Watch[] =>
    [...bus.topics.values()].flatMap(({ source }) => source ?? []);

  return {
    listen(
      caller: UpstreamCaller,
      listener: UpstreamListener,
      uris: readonly string[] | undefined,
    ) {
      const sharer = nameSharer(caller);
      const known = bus.topics.get(sharer)?.source;
      const stopListening = bus.subscribe(sharer, { caller, listener, uris });
      if (known === undefined) return stopListening;
      known.caller = caller;
      known.loop.revive();
      const hasMore = uris !== undefined && uris.length > 0;
      if (hasMore && extend(known.consumer)) known.loop.replace();
      return stopListening;
    },
    /** Publishes a notification that arrived with an answer to this caller's listeners. */
    notify: (caller: UpstreamCaller, message: ServerNotification) =>
      tellNotified(nameSharer(caller), message),
    /** A client's session has subscribed to other resources. */
    refreshSession(hash: string) {
      for (const { sessionHash, loop } of listWatches()) if (sessionHash === hash) loop.replace();
    },
    /**
     * The caller has a new session. Its stream is opened there if it was given up, or if it is open in the old session and has
     * listeners.
     */
    move(caller: UpstreamCaller, isStanding: boolean) {
      const watch = bus.topics.get(nameSharer(caller))?.source;
      // The next call opens one for questions only.
      if (watch === undefined || !isStanding || !watch.consumer.isHeard) watch?.loop.revive();
      else {
        watch.isGone = true;
        watch.loop.restart();
      }
    },
    /** Another stream of the session was closed: retries the caller's at once. */
    retry: (caller: UpstreamCaller) => bus.topics.get(nameSharer(caller))?.source?.loop.restart(),
    /** The server is up again, perhaps as a new process: reopens all streams. */
    restart() {
      for (const { loop } of listWatches()) loop.restart();
    },
    close: bus.endAll,
  };
}

// Keeps a stream open while there are listeners: retries with exponential backoff.

type RetryLoop = ReturnType<typeof startRetryLoop>;

/** Determines the next attempt: after the usual backoff, not before something changes, or after the time that the server named. */
export type AttemptEnd = 'again' | 'never' | { readonly afterMs: number };

/**
 * Makes one attempt, which lasts until its signal is aborted. Calls `onOpen` when the stream is open, possibly as the continuation
 * of the previous stream. If it throws, another attempt follows, whatever the error.
 */
export type StreamAttempt = (
  signal: AbortSignal,
  onOpen: (isResumed?: boolean) => void,
) => Promise<AttemptEnd>;

function startRetryLoop(clock: Clock, attempt: StreamAttempt) {
  /** True if the current attempts were given up. */
  let hasGivenUp = false;
  let current = start(() => {});

  /** Makes attempts one after another, until the returned function is called. */
  function start(onFirstOpen: () => void): () => void {
    hasGivenUp = false;
    let release = onFirstOpen;
    const controller = new AbortController();
    const { signal } = controller;
    const attempts = createAttempts(clock, pauseAfter);

    /** Ends the previous stream. */
    function noteOpen() {
      release();
      release = () => {};
    }

    async function run() {
      if (signal.aborted) return;
      const startedAt = clock.monotonic();
      const next = await attempt(signal, noteOpen).catch(() => 'again' as const);
      if (signal.aborted) return;
      if (next === 'never') {
        noteOpen();
        hasGivenUp = true;
        return;
      }
      if (next !== 'again') {
        attempts.noteSuccess();
        attempts.after(next.afterMs, () => void run());
        return;
      }
      // A stream that was open for a while has not been refused.
      if (clock.monotonic() - startedAt >= BACK_OFF.longestMs) attempts.noteSuccess();
      attempts.again(() => void run());
    }

    queueMicrotask(() => void run());
    return () => {
      noteOpen();
      attempts.stop();
      controller.abort();
    };
  }

  function restart() {
    current();
    current = start(() => {});
  }

  return {
    /** Ends the current attempt, and starts another at once. */
    restart,
    /** Like `restart`, but only if the attempts were given up. */
    revive() {
      if (hasGivenUp) restart();
    },
    /** Like `restart`, but the current stream ends only when the new one is open. */
    replace() {
      current = start(current);
    },
    stop: () => current(),
  };
}
