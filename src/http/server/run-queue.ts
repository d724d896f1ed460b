// §12: calls run in turns (iterations) of the event loop that stay short. Between two turns sockets are read, connections
// accepted and answers sent, so that tools that take much CPU stall none of these, however many are called
// at once. Node.js accepts one connection in each turn. So while connections come, turns are shorter still: of hundreds
// that come at once, the last one waits for as many turns.
import { nextTick } from 'node:process';
import type { Clock } from '../../platform/clock.ts';

export interface RunQueue {
  /** Runs the task now, or, where this turn has enough to do, in one of the next, in their order. */
  run<Result>(task: () => Promise<Result> | Result): Promise<Result> | Result;
  /** For how many milliseconds the next one has waited; 0 while all that wait get their turn soon. */
  getWait(now: number): number;
  /** To be called for each connection that is accepted: there may be more. */
  noteConnection(): void;
}

interface WaitingTask {
  readonly since: number;
  readonly start: () => void;
}

/** What the calls of a turn should take. */
const TURN_MS = 4;
/** The same while connections come, with whatever else the turn does. */
const ACCEPTING_TURN_MS = 0.25;
/** So many turns may be that short at once, and then so many in a second: who opens connections all the time slows calls no more than that. */
const MAX_ACCEPTING_TURNS = 512;
const ACCEPTING_TURNS_PER_MS = 0.05;
/** So many turns in a row must have left some waiting: one slow tool, or a stall, leaves them few. */
const BUSY_TURNS = 20;
/** A turn that takes so long is a stall (a slow tool, a stopped container): what waited meanwhile waited for that. */
const STALL_MS = 500;

export function createRunQueue(clock: Clock): RunQueue {
  const waiting: WaitingTask[] = [];
  let isTurn = false;
  let turnStartedAt = 0;
  /** Tasks of this turn. */
  let runs = 0;
  /** What the first of them took, and how many these were: the costs of a call. */
  let measuredRuns = 1;
  let measuredMs = TURN_MS;
  /** How many a turn may run. */
  let maxRuns = 1;
  /** Turns in a row that left some waiting. */
  let busyTurns = 0;
  /** As they were at `creditedAt`. */
  let acceptingTurns = MAX_ACCEPTING_TURNS;
  let creditedAt = clock.monotonic();
  /** Whether one came since the last turn ended. */
  let hasNewConnection = false;

  function startTurn(now: number): void {
    isTurn = true;
    turnStartedAt = now;
    runs = 0;
    setImmediate(endTurn);
    // A tick that a microtask asks for comes when all microtasks have run: the tasks' own work is done then.
    queueMicrotask(() => nextTick(noteCosts));
  }

  function noteCosts(): void {
    measuredRuns = runs;
    measuredMs = clock.monotonic() - turnStartedAt;
  }

  function endTurn(): void {
    isTurn = false;
    const now = clock.monotonic();
    maxRuns = Math.max(1, hasNewConnection ? limitWhileAccepting(now) : limitUsually(now));
    // Where fewer calls come, it is no shorter than they are.
    const isShort = hasNewConnection && runs + waiting.length > maxRuns;
    if (isShort && !takeAcceptingTurn(now)) maxRuns = Math.max(1, limitUsually(now));
    hasNewConnection = false;
    busyTurns = waiting.length === 0 || isStalled(now) ? 0 : busyTurns + 1;
    if (waiting.length > 0) runWaiting(now);
  }

  function takeAcceptingTurn(now: number): boolean {
    const added = (now - creditedAt) * ACCEPTING_TURNS_PER_MS;
    acceptingTurns = Math.min(MAX_ACCEPTING_TURNS, acceptingTurns + added);
    creditedAt = now;
    if (acceptingTurns < 1) return false;
    acceptingTurns -= 1;
    return true;
  }

  function limitUsually(now: number): number {
    const msPerRun = Math.max(measuredMs, 0.001) / Math.max(measuredRuns, 1);
    // Whatever else the turn did, calls get as much time.
    const otherMs = now - turnStartedAt - runs * msPerRun;
    return Math.max(TURN_MS, otherMs) / msPerRun;
  }

  /** By all that the turn did: of most calls, all but the beginning comes in later ticks, and with their answers the next are read. */
  const limitWhileAccepting = (now: number): number =>
    (ACCEPTING_TURN_MS * Math.max(runs, 1)) / Math.max(now - turnStartedAt, 0.001);

  const isStalled = (now: number) => now - turnStartedAt >= STALL_MS;

  function runWaiting(now: number): void {
    startTurn(now);
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      runs += 1;
      next.start();
      if (runs >= maxRuns) return;
    }
  }

  return {
    run(task) {
      if (!isTurn) startTurn(clock.monotonic());
      if (waiting.length === 0 && runs < maxRuns) {
        runs += 1;
        return task();
      }
      return new Promise((resolve, reject) => {
        function start(): void {
          try {
            resolve(task());
          } catch (thrown) {
            reject(thrown);
          }
        }
        waiting.push({ since: clock.monotonic(), start });
      });
    },
    getWait(now) {
      const next = waiting[0];
      const isBusy = next !== undefined && busyTurns >= BUSY_TURNS && !isStalled(now);
      return isBusy ? now - next.since : 0;
    },
    noteConnection() {
      hasNewConnection = true;
    },
  };
}
