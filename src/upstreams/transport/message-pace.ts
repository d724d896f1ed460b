// §18.4: how many messages of servers are looked at: in a second of each stream, of each user's streams and of each
// server's, and in one turn of the event loop of all. A server, or a caller who makes servers talk, leaves the gateway
// time for everybody else: what is beyond the pace waits with the server.
import type { Clock } from '../../platform/clock.ts';

export interface MessagePace {
  open(source: PacedSource): StreamPace;
}

export interface PacedSource {
  readonly server: string;
  /** Whose stream it is (`nameOwner`); undefined for the gateway's own, and for what users share. */
  readonly user: string | undefined;
  /** Whether many callers share it: then it may be as fast as its server, and is never given up. */
  readonly isShared: boolean;
}

/** Of one stream: the answer to a call, a stream of notifications, the output of a process. */
export interface StreamPace {
  hasRoom(): boolean;
  /**
   * Counts what was looked at: so many messages of so many bytes. None are answers that a caller waits for, which
   * calls limit: they only take their part of a turn.
   */
  count(messages: number, bytes: number): void;
  /**
   * Calls `goOn` once there is room again, or `giveUp` where the stream has been beyond the pace for too long.
   * Until then the stream must wait.
   */
  wait(goOn: () => void, giveUp: () => void): void;
  /** It is over: nothing is called any more. */
  end(): void;
}

const SECOND_MS = 1000;
const STREAM_MESSAGES = 1000;
const USER_MESSAGES = 2000;
const SERVER_MESSAGES = 4000;
/** Some milliseconds of work. */
const TURN_MESSAGES = 100;
/** So few at the beginning of a stream wait for no second: most answers have no more, and others' must not hold them up. */
const FREE_MESSAGES = 16;
/** A longer message counts as several. */
const BYTES_A_MESSAGE = 8192;
/** The same for an answer that is waited for: it goes on as it came. */
const BYTES_AN_ANSWER = 32_768;
/** A stream that is beyond the pace for so long, and brought so many meanwhile, is given up. */
const MAX_BEHIND_MS = 60_000;
const MIN_BEHIND_MESSAGES = 1000;

/** What may be looked at in a second of the clock; what was more is taken off the seconds that follow. */
interface Window {
  second: number;
  used: number;
  readonly limit: number;
}

interface Waiter {
  readonly hasRoom: () => boolean;
  /** False where the stream has been given up. */
  check(): boolean;
  readonly goOn: () => void;
}

export function createMessagePace(clock: Clock): MessagePace {
  const windows = new Map<string, Window>();
  /** Who waits longest comes first. */
  const waiting = new Set<Waiter>();
  let leftInTurn = TURN_MESSAGES;
  let isTurnTimed = false;
  let isSecondTimed = false;

  const readSecond = () => Math.floor(clock.monotonic() / SECOND_MS);

  function findWindow(key: string, limit: number): Window {
    const known = windows.get(key);
    if (known !== undefined) return known;
    const window = { second: readSecond(), used: 0, limit };
    windows.set(key, window);
    timeSecond();
    return window;
  }

  function refill(window: Window): void {
    const now = readSecond();
    window.used = Math.max(0, window.used - window.limit * (now - window.second));
    window.second = now;
  }

  function hasRoomIn(window: Window): boolean {
    refill(window);
    return window.used < window.limit;
  }

  function timeTurn(): void {
    if (isTurnTimed) return;
    isTurnTimed = true;
    setImmediate(() => {
      isTurnTimed = false;
      leftInTurn = TURN_MESSAGES;
      resume();
    });
  }

  function timeSecond(): void {
    if (isSecondTimed) return;
    isSecondTimed = true;
    clock.after(SECOND_MS - (clock.monotonic() % SECOND_MS), () => {
      isSecondTimed = false;
      for (const [key, window] of windows) {
        refill(window);
        if (window.used === 0) windows.delete(key);
      }
      for (const waiter of [...waiting]) if (!waiter.check()) waiting.delete(waiter);
      resume();
      if (windows.size > 0) timeSecond();
    });
  }

  function resume(): void {
    for (const waiter of [...waiting]) {
      if (leftInTurn <= 0) break;
      if (!waiter.hasRoom()) continue;
      waiting.delete(waiter);
      waiter.goOn();
    }
    if (waiting.size === 0) return;
    if (leftInTurn <= 0) timeTurn();
    timeSecond();
  }

  return {
    open({ server, user, isShared }) {
      const own: Window = { second: readSecond(), used: 0, limit: STREAM_MESSAGES };
      let messages = 0;
      let waiter: Waiter | undefined;
      /** Since when it has waited in each second; and how many messages it had brought by then. */
      let behindSince = 0;
      let behindFrom = 0;
      let lastBehindAt = Number.NEGATIVE_INFINITY;

      /** That of the most callers comes last. */
      function listWindows(): readonly Window[] {
        return [
          ...(isShared ? [] : [own]),
          ...(user === undefined ? [] : [findWindow(`user ${user}`, USER_MESSAGES)]),
          findWindow(`server ${server}`, SERVER_MESSAGES),
        ];
      }

      const hasRoomInSecond = () => messages < FREE_MESSAGES || listWindows().every(hasRoomIn);

      function isTooFast(): boolean {
        const now = clock.monotonic();
        if (now - lastBehindAt > 2 * SECOND_MS) {
          behindSince = now;
          behindFrom = messages;
        }
        lastBehindAt = now;
        return now - behindSince >= MAX_BEHIND_MS && messages - behindFrom >= MIN_BEHIND_MESSAGES;
      }

      return {
        hasRoom: () => leftInTurn > 0 && hasRoomInSecond(),
        count(count, bytes) {
          const size =
            Math.floor(bytes / (count === 0 ? BYTES_AN_ANSWER : BYTES_A_MESSAGE)) + count;
          if (size === 0) return;
          leftInTurn -= size;
          timeTurn();
          if (count === 0) return;
          messages += count;
          // What is beyond a window all the same, as the first ones of a stream may be, takes nothing of what others share.
          for (const window of listWindows()) {
            if (!hasRoomIn(window)) break;
            window.used += size;
          }
        },
        wait(goOn, giveUp) {
          const isBehind = () => !hasRoomInSecond() && isTooFast();
          const check = () => {
            if (isShared || !isBehind()) return true;
            giveUp();
            return false;
          };
          waiter = { hasRoom: hasRoomInSecond, check, goOn };
          if (!check()) return;
          waiting.add(waiter);
          if (leftInTurn <= 0) timeTurn();
          timeSecond();
        },
        end() {
          if (waiter !== undefined) waiting.delete(waiter);
        },
      };
    },
  };
}
