// Listeners to the changes of a server, and what is kept open for them: one stream for all that share a session.
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
import { nameSharer } from './server-session.ts';

export type ServerListeners = ReturnType<typeof createServerListeners>;

/** The audience of a stream; the same object for as long as somebody listens. */
export interface Audience {
  /** The one with the newest token, if several share it. */
  readonly caller: UpstreamCaller;
  /** Resources of subscriptions of the stateless era. */
  readonly uris: readonly string[];
  /** False where it is open only so that the server can ask. */
  readonly isHeard: boolean;
  notify(message: ServerNotification): void;
  /** Params of a log message that is the session's own. */
  log(params: JsonObject): void;
}

interface ServerStreams {
  /** Opens a stream, calls `onOpen` when it stands, and resolves when it has ended. */
  open(audience: Audience, ...attempt: Parameters<StreamAttempt>): Promise<AttemptEnd>;
  /** The audience wants more resources: true where it needs another stream for that. */
  extend(audience: Audience): boolean;
  readonly describe: (caller: UpstreamCaller) => UpstreamDescription | undefined;
}

/** Listens to nothing: what is open for it is open for questions. */
export const HELD_OPEN: UpstreamListener = { listChanged() {}, resourceUpdated() {} };

interface Entry {
  readonly caller: UpstreamCaller;
  readonly listener: UpstreamListener;
  readonly uris: readonly string[] | undefined;
}

interface Watch {
  caller: UpstreamCaller;
  readonly sessionHash: string | undefined;
  readonly audience: Audience;
  readonly loop: RetryLoop;
  /** True while changes are missed. */
  isGone: boolean;
}

/** Under this the gateway itself listens, where a server's lists are the same for all. */
const GATEWAY_SHARER = nameSharer(GATEWAY_CALLER);

export function createServerListeners(
  { clock, log }: UpstreamRuntime,
  { open, extend, describe }: ServerStreams,
) {
  /** Keyed by the name of those who share a stream. */
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
    const audience: Audience = {
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
    /** Changes while no stream stood were missed, unless the server tells them now. */
    const attempt: StreamAttempt = (signal, onOpen) =>
      open(audience, signal, (isResumed) => {
        if (watch.isGone && isResumed !== true) tellMissed(sharer, describe(watch.caller));
        watch.isGone = false;
        onOpen();
      }).finally(() => {
        watch.isGone ||= !signal.aborted;
      });
    const loop = startRetryLoop(clock, attempt);
    const watch: Watch = { caller, sessionHash, audience, loop, isGone: false };
    return watch;
  }

  function tellNotified(sharer: string, message: ServerNotification) {
    const change = readChange(message);
    if (change === undefined) return;
    // Many servers tell the session alone whose call has changed a list, or say it in the answer to that call.
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
      if (hasMore && extend(known.audience)) known.loop.replace();
      return stopListening;
    },
    /** A notification that came with an answer, to whoever listens for this caller. */
    notify: (caller: UpstreamCaller, message: ServerNotification) =>
      tellNotified(nameSharer(caller), message),
    /** A client's session has subscribed to other resources. */
    refreshSession(hash: string) {
      for (const { sessionHash, loop } of listWatches()) if (sessionHash === hash) loop.replace();
    },
    /** The caller has another session: what was given up is opened in it, and what stands in the one before, if it is heard. */
    move(caller: UpstreamCaller, isStanding: boolean) {
      const watch = bus.topics.get(nameSharer(caller))?.source;
      // For questions alone the next call opens one.
      if (watch === undefined || !isStanding || !watch.audience.isHeard) watch?.loop.revive();
      else {
        watch.isGone = true;
        watch.loop.restart();
      }
    },
    /** The caller's stream may stand now, if it does not: another one is gone. */
    retry: (caller: UpstreamCaller) => bus.topics.get(nameSharer(caller))?.source?.loop.restart(),
    /** The server is there again, maybe another one: all streams are opened anew. */
    restart() {
      for (const { loop } of listWatches()) loop.restart();
    },
    close: bus.endAll,
  };
}

// A stream that is kept open for as long as somebody listens: tried again after a pause that grows.

type RetryLoop = ReturnType<typeof startRetryLoop>;

/** Says if another attempt makes sense before something has changed; in milliseconds, where the server has said when. */
export type AttemptEnd = 'again' | 'never' | { readonly afterMs: number };

/**
 * One attempt, until its signal is aborted; calls `onOpen` when it stands, maybe where the one before has ended. What it throws
 * is a reason to try again.
 */
export type StreamAttempt = (
  signal: AbortSignal,
  onOpen: (isResumed?: boolean) => void,
) => Promise<AttemptEnd>;

function startRetryLoop(clock: Clock, attempt: StreamAttempt) {
  /** True if the attempts that began last have ended by themselves. */
  let hasGivenUp = false;
  let current = start(() => {});

  /** Attempts one after the other, until the result is called. */
  function start(onFirstOpen: () => void): () => void {
    hasGivenUp = false;
    let release = onFirstOpen;
    const controller = new AbortController();
    const { signal } = controller;
    const attempts = createAttempts(clock, pauseAfter);

    /** The stream before is not needed any more. */
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
      // A stream that stood for a while is none of a server that refuses.
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
    /** Ends the attempt under way and begins another one at once. */
    restart,
    /** As `restart`, where no further attempt made sense. */
    revive() {
      if (hasGivenUp) restart();
    },
    /** As `restart`, but what stands ends only when the other one stands. */
    replace() {
      current = start(current);
    },
    stop: () => current(),
  };
}
