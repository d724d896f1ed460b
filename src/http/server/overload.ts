// §12: refuses calls when more arrive than this process can serve. It admits the first ones and refuses the rest at once, so that
// no call waits long for a reply that would arrive too late.
//  It measures how long calls wait to run (in the queue below), and how long they wait to be read before that, which is how late
// a 100 ms timer fires. CPU load does not show this: it may be high although no call is waiting.

import { nextTick } from 'node:process';
import { GatewayError } from '../../errors/gateway-error.ts';
import type { Clock } from '../../platform/clock.ts';
import type { ClockAndLog } from '../../platform/log.ts';
import type { Endpoint } from '../endpoint/endpoint.ts';
import type { Reply, ReplyHeaders } from '../endpoint/message.ts';
import { renderError } from '../endpoint/render-error.ts';
import { type HeaderList, toHeaderList } from './headers.ts';

/**
 * The longest wait of a call for its turn. A longer wait would serve slightly more calls, since refusals have a cost, but new
 * connections would wait longer: Node.js accepts one in each turn of the event loop.
 */
const MAX_WAIT_MS = 500;
const TICK_MS = 100;
const LATE_MS = TICK_MS + MAX_WAIT_MS;
/** A single long wait is not an overload: it may be a slow tool, garbage collection, or a container that was paused. */
const LATE_TICKS = 2;
/** At least this many are always admitted: refusing so few would not shorten any wait. */
const MIN_CALLS = 32;
/** The cost of refusing a call, most of it in node:http before the handler runs. */
const REFUSAL_MS = 0.03;
/** The limit is kept for this long after the last refusal. */
const QUIET_MS = 10_000;

export function createOverload({ clock, log }: ClockAndLog, runQueue: Pick<RunQueue, 'getWait'>) {
  let isTicking = false;
  let tickedAt = 0;
  /** The last time that lateness was counted: at a tick, or during a long turn of the event loop. */
  let countedAt = 0;
  let lateTicks = 0;
  /** Since the last tick. */
  let admitted = 0;
  let refused = 0;
  /** Calls that are admitted between two ticks. */
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
        // Halfway on a logarithmic scale, since calls are often served one tick after they arrived.
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
    // An idle process needs no timer: the next call starts it.
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
    /** Counts a call that arrived at `now` (monotonic); returns false if it must be refused. */
    tryAdmit(now: number): boolean {
      if (!isTicking) start(now);
      // Timers wait for the end of a turn of the event loop, which takes a long time if it reads many calls.
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

// §12: the replies to calls that an overloaded process refuses, created once.

interface OverloadRefusal {
  /** Value of the metrics' label `route`: the path of the endpoint, with the name of its parameter. */
  readonly route: string;
  readonly reply: Reply;
  readonly headers: HeaderList;
}

/**
 * Creates the lookup of refusals, by path or by the part before its parameter. Documents, pages and probes are served: they cost
 * little more than their refusals.
 */
export function createFindOverloadRefusal(
  endpoints: readonly Endpoint[],
  securityHeaders: ReplyHeaders,
) {
  const error = new GatewayError('overloaded', { headers: { 'Retry-After': '1' } });
  // The warning of the overload is logged once.
  const logged = { key: error.key, message: error.message, logLevel: 'debug' as const };
  const refusals = new Map<string, OverloadRefusal>();
  for (const { kind, path: route, hasParameter, errors, headers: own } of endpoints) {
    if (kind === 'open') continue;
    const reply = { ...renderError(error, errors), error: logged };
    const headers = { ...securityHeaders, ...own, ...reply.headers, Vary: 'Origin' };
    const key = hasParameter === undefined ? route : getFolder(route);
    refusals.set(key, { route, reply, headers: toHeaderList(headers) });
  }

  /** Undefined for requests that are always served. */
  return function findOverloadRefusal(path: string): OverloadRefusal | undefined {
    return refusals.get(path) ?? refusals.get(getFolder(path));
  };
}

const getFolder = (path: string) => path.slice(0, path.lastIndexOf('/') + 1);

// §12: calls run in short turns (iterations) of the event loop. Between two turns sockets are read, connections accepted and
// replies sent, so that CPU-heavy tools stall none of these, however many are called at once. Node.js accepts one connection per
// turn: while connections are arriving, turns are shorter still, since the last of hundreds of connections waits for as many
// turns.

/** Target duration of the calls of a turn, in milliseconds. */
const TURN_MS = 4;
/** The same for the whole turn, while connections are arriving. */
const ACCEPTING_TURN_MS = 0.25;
/** Token bucket of such short turns: a client that keeps opening connections slows calls no further. */
const MAX_ACCEPTING_TURNS = 512;
const ACCEPTING_TURNS_PER_MS = 0.05;
/**
 * Number of consecutive turns that must leave calls waiting before the queue counts as busy: one slow tool or a stall causes only
 * a few.
 */
const BUSY_TURNS = 20;
/** A turn of this length is a stall (a slow tool, a stopped container), and not a sign of overload. */
const STALL_MS = 500;

type RunQueue = ReturnType<typeof createRunQueue>;

export function createRunQueue(clock: Clock) {
  const waiting: { readonly since: number; readonly start: () => void }[] = [];
  let isTurn = false;
  let turnStartedAt = 0;
  /** Calls run in this turn. */
  let runs = 0;
  /** Time and number of the first calls of a turn: the cost of a call. */
  let measuredRuns = 1;
  let measuredMs = TURN_MS;
  /** Maximum number of calls per turn. */
  let maxRuns = 1;
  /** Number of consecutive turns that left calls waiting. */
  let busyTurns = 0;
  /** The token bucket as of `creditedAt`. */
  let acceptingTurns = MAX_ACCEPTING_TURNS;
  let creditedAt = clock.monotonic();
  /** True if a connection has arrived since the last turn ended. */
  let hasNewConnection = false;

  function startTurn(now: number) {
    isTurn = true;
    turnStartedAt = now;
    runs = 0;
    setImmediate(endTurn);
    // `nextTick` from a microtask runs after all microtasks: the calls' own work is done by then.
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
    // A turn with fewer calls is not shortened.
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
    // Calls get at least as much time as everything else in the turn.
    const otherMs = now - turnStartedAt - runs * msPerRun;
    return Math.max(TURN_MS, otherMs) / msPerRun;
  }

  /** Counts all work of the turn: most of a call runs in later ticks, and with its reply the next calls are read. */
  const limitWhileAccepting = (now: number) =>
    (ACCEPTING_TURN_MS * Math.max(runs, 1)) / Math.max(now - turnStartedAt, 0.001);

  const isStalled = (now: number) => now - turnStartedAt >= STALL_MS;

  return {
    /** Runs the task now or, if this turn is full, in one of the next turns, in order. */
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
    /** Returns the milliseconds that the next call has waited; 0 while all waiting calls get their turn soon. */
    getWait(now: number): number {
      const next = waiting[0];
      const isBusy = next !== undefined && busyTurns >= BUSY_TURNS && !isStalled(now);
      return isBusy ? now - next.since : 0;
    },
    /** Call it for each accepted connection: more may follow. */
    noteConnection(): void {
      hasNewConnection = true;
    },
  };
}
