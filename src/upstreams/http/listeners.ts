// Who wants to hear what changes at a server, and what is kept open for that: one stream for all that share a session.
import { computePauseMs } from '../../platform/back-off.ts';
import type { Clock } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { ListName } from '../../protocol/list-kinds.ts';
import { routeToListener } from '../messages/route-notification.ts';
import type { ServerNotification } from '../messages/server-message.ts';
import type { UpstreamCaller, UpstreamDescription, UpstreamListener } from '../upstream.ts';
import { nameSharer } from './server-session.ts';

export interface Listeners {
  listen(
    caller: UpstreamCaller,
    listener: UpstreamListener,
    uris: readonly string[] | undefined,
  ): () => void;
  /** A notification that came with an answer, to whoever listens for this caller. */
  notify(caller: UpstreamCaller, message: ServerNotification): void;
  /** A client's session has subscribed to other resources. */
  refreshSession(sessionHash: string): void;
  /** The server is there again, maybe another one: all streams are opened anew. */
  restart(): void;
  close(): void;
}

/** What a stream is for; the same object for as long as somebody listens. */
export interface Audience {
  /** Of several that share it the one with the newest token. */
  readonly caller: UpstreamCaller;
  /** Resources of subscriptions of the stateless era. */
  readonly uris: readonly string[];
  notify(message: ServerNotification): void;
  /** Params of a log message that is the session's own. */
  log(params: JsonObject): void;
}

export interface ListenersDeps {
  readonly clock: Clock;
  /** Opens a stream, calls `onOpen` when it stands, and resolves when it has ended. */
  open(audience: Audience, signal: AbortSignal, onOpen: () => void): Promise<'again' | 'never'>;
  /** The audience wants more resources: true where it needs another stream for that. */
  extend(audience: Audience): boolean;
  readonly hashSession: (sessionId: string) => string;
  readonly describe: (caller: UpstreamCaller) => UpstreamDescription | undefined;
}

interface Entry {
  readonly listener: UpstreamListener;
  readonly uris: readonly string[] | undefined;
}

interface Watch {
  caller: UpstreamCaller;
  readonly sessionHash: string | undefined;
  readonly entries: Set<Entry>;
  readonly loop: RetryLoop;
}

export function createListeners(deps: ListenersDeps): Listeners {
  const { clock, open, describe } = deps;
  const watches = new Map<string, Watch>();

  function startWatch(caller: UpstreamCaller, first: Entry): Watch {
    const entries = new Set([first]);
    const { sessionId } = caller;
    const sessionHash = sessionId === undefined ? undefined : deps.hashSession(sessionId);
    let isGone = false;
    /** What changed while no stream stood was missed. */
    async function attempt(signal: AbortSignal, onOpen: () => void): Promise<'again' | 'never'> {
      const end = await open(toAudience(watch), signal, () => {
        if (isGone) tellMissed(entries, describe(watch.caller));
        isGone = false;
        onOpen();
      }).finally(() => {
        isGone ||= !signal.aborted;
      });
      return end;
    }
    const watch: Watch = { caller, sessionHash, entries, loop: startRetryLoop(clock, attempt) };
    return watch;
  }

  return {
    listen(caller, listener, uris) {
      const sharer = nameSharer(caller);
      const entry = { listener, uris };
      const known = watches.get(sharer);
      const watch = known ?? startWatch(caller, entry);
      watches.set(sharer, watch);
      watch.caller = caller;
      watch.entries.add(entry);
      const hasMore = known !== undefined && uris !== undefined && uris.length > 0;
      if (hasMore && deps.extend(toAudience(watch))) watch.loop.replace();

      return function stopListening() {
        if (!watch.entries.delete(entry) || watch.entries.size > 0) return;
        watch.loop.stop();
        watches.delete(sharer);
      };
    },
    notify(caller, message) {
      const watch = watches.get(nameSharer(caller));
      if (watch !== undefined) tell(watch.entries, message);
    },
    refreshSession(sessionHash) {
      for (const watch of watches.values()) {
        if (watch.sessionHash === sessionHash) watch.loop.replace();
      }
    },
    restart() {
      for (const { loop } of watches.values()) loop.restart();
    },
    close() {
      for (const { loop } of watches.values()) loop.stop();
      watches.clear();
    },
  };
}

const toAudience = (watch: Watch): Audience => ({
  get caller() {
    return watch.caller;
  },
  get uris() {
    return [...new Set([...watch.entries].flatMap(({ uris }) => uris ?? []))];
  },
  notify: (message) => tell(watch.entries, message),
  log(params) {
    for (const { listener } of watch.entries) listener.logged?.(params);
  },
});

function tell(entries: ReadonlySet<Entry>, message: ServerNotification): void {
  const { uri } = message.params;
  for (const { listener, uris } of entries) {
    const isForeign = typeof uri === 'string' && uris !== undefined && !uris.includes(uri);
    if (!isForeign) routeToListener(message, listener);
  }
}

const LISTS: readonly ListName[] = ['tools', 'prompts', 'resources'];

function tellMissed(
  entries: ReadonlySet<Entry>,
  description: UpstreamDescription | undefined,
): void {
  const lists = LISTS.filter((list) => tellsChanges(description, list));
  for (const { listener } of entries) {
    for (const list of lists) listener.listChanged(list);
  }
}

/** Whether the server says when this list changes. */
export function tellsChanges(
  description: UpstreamDescription | undefined,
  list: ListName,
): boolean {
  const capability = description?.capabilities[list];
  return Object(capability).listChanged === true;
}

// What is kept open for as long as somebody listens: tried again after a pause that grows.

interface RetryLoop {
  /** Ends the attempt under way and begins another one at once. */
  restart(): void;
  /** As `restart`, but what stands ends only when the other one stands. */
  replace(): void;
  stop(): void;
}

/**
 * One attempt, until its signal is aborted; calls `onOpen` when it stands. It resolves to whether another one makes
 * sense before something has changed; what it throws is a reason to try again.
 */
type Attempt = (signal: AbortSignal, onOpen: () => void) => Promise<'again' | 'never'>;

const BACK_OFF = { firstMs: 1000, longestMs: 30_000 };

function startRetryLoop(clock: Clock, attempt: Attempt): RetryLoop {
  let current = start(() => {});

  /** Attempts one after the other, until the result is called. */
  function start(onFirstOpen: () => void): () => void {
    let release = onFirstOpen;
    const controller = new AbortController();
    const { signal } = controller;
    let failures = 0;
    let cancelPause = () => {};

    /** What stood before is not needed any more. */
    function noteOpen(): void {
      release();
      release = () => {};
    }

    async function run(): Promise<void> {
      if (signal.aborted) return;
      const startedAt = clock.monotonic();
      const next = await attempt(signal, noteOpen).catch(() => 'again' as const);
      if (signal.aborted) return;
      if (next === 'never') {
        noteOpen();
        return;
      }
      // What stood for a while is no server that refuses.
      if (clock.monotonic() - startedAt >= BACK_OFF.longestMs) failures = 0;
      failures += 1;
      cancelPause = clock.after(computePauseMs(BACK_OFF, failures), () => void run());
    }

    queueMicrotask(() => void run());
    return () => {
      noteOpen();
      cancelPause();
      controller.abort();
    };
  }

  return {
    restart() {
      current();
      current = start(() => {});
    },
    replace() {
      current = start(current);
    },
    stop: () => current(),
  };
}
