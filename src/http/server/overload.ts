// §12: more calls than this process can serve. Those that come first are let in, and the rest is refused
// at once, so that nobody waits long for an answer that then comes too late.
//
// What is measured is how long calls wait: to run (in the queue below), and before that to be read, for as long as
// a timer of 100 ms fires late. The load of the processor does not say that: it may be used up although nobody
// waits.

import { nextTick } from 'node:process';
import { GatewayError } from '../../errors/gateway-error.ts';
import type { Clock } from '../../platform/clock.ts';
import type { ClockAndLog } from '../../platform/log.ts';
import type { Endpoint } from '../endpoint/endpoint.ts';
import type { Reply, ReplyHeaders } from '../endpoint/message.ts';
import { renderError } from '../endpoint/render-error.ts';
import { type HeaderList, toHeaderList } from './headers.ts';

/**
 * The longest that a call should wait for its turn. Longer would serve a little more (refusals cost,
 * too), but new connections wait longer: Node.js accepts one in each turn of the event loop.
 */
const MAX_WAIT_MS = 500;
const TICK_MS = 100;
const LATE_MS = TICK_MS + MAX_WAIT_MS;
/** One long wait is no overload: a slow tool, garbage collection, a container that was stopped. */
const LATE_TICKS = 2;
/** At least so many are always let in: refusing so few would not shorten anybody's wait. */
const MIN_CALLS = 32;
/** The cost of refusing a call, most of it in node:http before anybody sees the call. */
const REFUSAL_MS = 0.03;
/** The number of calls that can be served is remembered so long after the last refusal. */
const QUIET_MS = 10_000;

export function createOverload({ clock, log }: ClockAndLog, runQueue: Pick<RunQueue, 'getWait'>) {
  let isTicking = false;
  let tickedAt = 0;
  /** When lateness was counted last: at a tick, or in the middle of a long turn of the event loop. */
  let countedAt = 0;
  let lateTicks = 0;
  /** Since the last tick. */
  let admitted = 0;
  let refused = 0;
  /** Calls that are let in between two ticks. */
  let limit = Number.POSITIVE_INFINITY;
  let quietSince = 0;
  let refusedInEpisode = 0;

  function start(now: number) {
    isTicking = true;
    tickedAt = countedAt = now;
    clock.after(TICK_MS, tick);
  }

  function tick() {
    const now = clock.monotonic();
    const elapsed = now - tickedAt;
    const isLate = elapsed >= LATE_MS;
    if (limit !== Number.POSITIVE_INFINITY) {
      if (isLate || refused > 0) {
        // Half of the way (on a scale of factors), since calls are often served one tick after they came.
        const servingMs = Math.max(TICK_MS, elapsed - refused * REFUSAL_MS);
        const factor = Math.sqrt(MAX_WAIT_MS / servingMs);
        limit = Math.max(MIN_CALLS, limit * Math.min(2, Math.max(0.5, factor)));
      }
    } else if (!isLate) {
      lateTicks = 0;
    } else if (countedAt === tickedAt) {
      countLateness(now);
    }
    if (isLate || refused > 0) quietSince = now;
    else if (isEpisode() && now - quietSince >= QUIET_MS) {
      if (refusedInEpisode > 0)
        log.info('All calls are served again.', { refused: refusedInEpisode });
      limit = Number.POSITIVE_INFINITY;
      lateTicks = refusedInEpisode = 0;
    }
    isTicking = false;
    // An idle process needs no timer, and the next call finds out by itself.
    if (admitted + refused > 0 || isEpisode()) start(now);
    admitted = refused = 0;
  }

  const isEpisode = () => limit !== Number.POSITIVE_INFINITY || refusedInEpisode > 0;

  function countLateness(now: number) {
    lateTicks += 1;
    countedAt = now;
    if (lateTicks < LATE_TICKS) return;
    limit = Math.max(MIN_CALLS, (admitted * MAX_WAIT_MS) / (now - tickedAt));
    quietSince = now;
  }

  return {
    /** Counts a call that came at `now` (by the clock's monotonic time); false if it must be refused. */
    tryAdmit(now: number): boolean {
      if (!isTicking) start(now);
      // A turn of the event loop that reads many calls takes long, and timers wait for its end.
      if (limit === Number.POSITIVE_INFINITY && now - countedAt >= LATE_MS) countLateness(now);
      if (admitted < limit && runQueue.getWait(now) < MAX_WAIT_MS) {
        admitted += 1;
        return true;
      }
      if (refusedInEpisode === 0)
        log.warn(
          'More calls come than this process can serve: some are refused with 503, so that the others do not wait long. Add replicas or WORKERS, or look for a tool that takes much CPU.',
        );
      refused += 1;
      refusedInEpisode += 1;
      return false;
    },
  };
}

// §12: the replies to calls that an overloaded process refuses, made once.

export interface OverloadRefusal {
  /** Value of the metrics' label `route`: the path of the endpoint, whatever the caller wrote in place of its parameter. */
  readonly route: string;
  readonly reply: Reply;
  readonly headers: HeaderList;
}

/**
 * By path, or by the part before its parameter. Documents, pages and probes are served: they cost little more than to
 * refuse them.
 */
export function createFindRefusal(endpoints: readonly Endpoint[], securityHeaders: ReplyHeaders) {
  const error = new GatewayError('overloaded', { headers: { 'Retry-After': '1' } });
  // At warn the log says once what happens.
  const logged = { key: error.key, message: error.message, logLevel: 'debug' as const };
  const refusals = new Map<string, OverloadRefusal>();
  for (const { kind, path: route, hasParameter, errors, headers: own } of endpoints) {
    if (kind === 'open') continue;
    const reply = { ...renderError(error, errors), error: logged };
    const headers = { ...securityHeaders, ...own, ...reply.headers, Vary: 'Origin' };
    const key = hasParameter === undefined ? route : getFolder(route);
    refusals.set(key, { route, reply, headers: toHeaderList(headers) });
  }

  /** Undefined for what is served all the same. */
  return function findRefusal(path: string): OverloadRefusal | undefined {
    return refusals.get(path) ?? refusals.get(getFolder(path));
  };
}

const getFolder = (path: string) => path.slice(0, path.lastIndexOf('/') + 1);

// §12: calls run in turns (iterations) of the event loop that stay short. Between two turns sockets are read, connections
// accepted and answers sent, so that tools that take much CPU stall none of these, however many are called
// at once. Node.js accepts one connection in each turn. So while connections come, turns are shorter still: of hundreds
// that come at once, the last one waits for as many turns.

/** Milliseconds that the calls of a turn should take. */
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

export type RunQueue = ReturnType<typeof createRunQueue>;

export function createRunQueue(clock: Clock) {
  const waiting: { readonly since: number; readonly start: () => void }[] = [];
  let isTurn = false;
  let turnStartedAt = 0;
  /** Tasks of this turn. */
  let runs = 0;
  /** Time and number of the first of them: the costs of a call. */
  let measuredRuns = 1;
  let measuredMs = TURN_MS;
  /** The most that a turn may run. */
  let maxRuns = 1;
  /** Turns in a row that left some waiting. */
  let busyTurns = 0;
  /** As they were at `creditedAt`. */
  let acceptingTurns = MAX_ACCEPTING_TURNS;
  let creditedAt = clock.monotonic();
  /** True if one came since the last turn ended. */
  let hasNewConnection = false;

  function startTurn(now: number) {
    isTurn = true;
    turnStartedAt = now;
    runs = 0;
    setImmediate(endTurn);
    // A tick that a microtask asks for comes when all microtasks have run: the tasks' own work is done then.
    queueMicrotask(() => nextTick(noteCosts));
  }

  function noteCosts() {
    measuredRuns = runs;
    measuredMs = clock.monotonic() - turnStartedAt;
  }

  function endTurn() {
    isTurn = false;
    const now = clock.monotonic();
    maxRuns = Math.max(1, hasNewConnection ? limitWhileAccepting(now) : limitUsually(now));
    // With fewer calls it is no shorter than they are.
    const isShort = hasNewConnection && runs + waiting.length > maxRuns;
    if (isShort && !takeAcceptingTurn(now)) maxRuns = Math.max(1, limitUsually(now));
    hasNewConnection = false;
    busyTurns = waiting.length === 0 || isStalled(now) ? 0 : busyTurns + 1;
    if (waiting.length === 0) return;
    startTurn(now);
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      runs += 1;
      next.start();
      if (runs >= maxRuns) return;
    }
  }

  function takeAcceptingTurn(now: number) {
    const added = (now - creditedAt) * ACCEPTING_TURNS_PER_MS;
    acceptingTurns = Math.min(MAX_ACCEPTING_TURNS, acceptingTurns + added);
    creditedAt = now;
    if (acceptingTurns < 1) return false;
    acceptingTurns -= 1;
    return true;
  }

  function limitUsually(now: number) {
    const msPerRun = Math.max(measuredMs, 0.001) / Math.max(measuredRuns, 1);
    // Whatever else the turn did, calls get as much time.
    const otherMs = now - turnStartedAt - runs * msPerRun;
    return Math.max(TURN_MS, otherMs) / msPerRun;
  }

  /** Counts all that the turn did: of most calls, all but the beginning comes in later ticks, and with their answers the next are read. */
  const limitWhileAccepting = (now: number) =>
    (ACCEPTING_TURN_MS * Math.max(runs, 1)) / Math.max(now - turnStartedAt, 0.001);

  const isStalled = (now: number) => now - turnStartedAt >= STALL_MS;

  return {
    /** Runs the task now, or, where this turn has enough to do, in one of the next, in their order. */
    run<Result>(task: () => Promise<Result> | Result): Promise<Result> | Result {
      if (!isTurn) startTurn(clock.monotonic());
      if (waiting.length === 0 && runs < maxRuns) {
        runs += 1;
        return task();
      }
      return new Promise((resolve, reject) => {
        function start() {
          try {
            resolve(task());
          } catch (thrown) {
            reject(thrown);
          }
        }
        waiting.push({ since: clock.monotonic(), start });
      });
    },
    /** For how many milliseconds the next one has waited; 0 while all that wait get their turn soon. */
    getWait(now: number): number {
      const next = waiting[0];
      const isBusy = next !== undefined && busyTurns >= BUSY_TURNS && !isStalled(now);
      return isBusy ? now - next.since : 0;
    },
    /** To be called for each connection that is accepted: there may be more. */
    noteConnection(): void {
      hasNewConnection = true;
    },
  };
}
