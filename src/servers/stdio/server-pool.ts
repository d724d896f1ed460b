// §18.3: the processes of a server: one for all users, one per user, or one per session.

import type { ClientCapabilities } from '../../mcp/catalog/client-requests.ts';
import { UpstreamError } from '../../mcp/upstream/upstream.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import { createAttempts } from '../../platform/clock.ts';
import type { ServerNotification } from '../messages/server-message.ts';
import { pauseAfter } from '../transport/process-share.ts';
import type { EndReason } from './child.ts';
import type { Program } from './program.ts';
import { createAbortedError } from './rpc-connection.ts';
import { type ProcessKey, type RunningServer, startRun } from './server-run.ts';

/** Receives the events of each process, along with its key. */
interface PoolOwner {
  onUp(key: ProcessKey, running: RunningServer): void;
  /** Called when the process has ended, or could not be started; it is restarted in `retryMs`. */
  onDown(key: ProcessKey, reason: EndReason, retryMs: number): void;
  onNotification(key: ProcessKey, message: ServerNotification): void;
  /** True if the process is needed even without calls. */
  isNeeded(key: ProcessKey): boolean;
  /** Called when the process ends; it is not restarted until it is needed. */
  onEnd(key: ProcessKey, isLast: boolean): void;
  /** Called when another process was needed, and all are busy. */
  onFull(): void;
}

/** A process, or the slot for one. */
interface Place {
  readonly key: ProcessKey;
  readonly server: SupervisedServer;
  /** Resolves once the process that had to end for this one has ended. */
  readonly isFree: Promise<void>;
  uses: number;
  idleSince: number;
  cancelCheck: () => void;
}

export function createServerPool(program: Program, owner: PoolOwner) {
  const { config, clock } = program;
  const places = new Map<string, Place>();
  const ending = new Set<Promise<void>>();
  const max = config.isolation === 'shared' ? 1 : config.maxProcesses;
  /** A limit per user: no user can occupy all slots by opening sessions. */
  const maxOfUser = Math.ceil(max / 2);
  const idleMs = config.idleSeconds * 1000;
  let isClosed = false;

  function endPlace(place: Place, graceMs: number) {
    places.delete(place.key.id);
    place.cancelCheck();
    owner.onEnd(place.key, places.size === 0);
    const ended = place.server.close(graceMs).finally(() => ending.delete(ended));
    ending.add(ended);
    return ended;
  }

  /**
   * Resolves when there is a free slot, if necessary by ending the longest idle process. @throws UpstreamError if all are busy.
   */
  function makeRoom({ user }: ProcessKey) {
    const all = [...places.values()];
    const own = user === undefined ? [] : all.filter(({ key }) => key.user === user);
    const hasTooMany = own.length >= maxOfUser;
    if (!hasTooMany && all.length < max) return Promise.resolve();
    const [longestIdle] = (hasTooMany ? own : all)
      .filter(({ uses }) => uses === 0)
      .sort((a, b) => a.idleSince - b.idleSince);
    if (longestIdle !== undefined) return endPlace(longestIdle, 0);
    if (!hasTooMany) owner.onFull();
    const busy = hasTooMany
      ? `all of the ${maxOfUser} processes that one user may have are busy`
      : `all of its ${max} processes are busy`;
    throw new UpstreamError('unavailable', busy);
  }

  function findPlace(key: ProcessKey, capabilities: ClientCapabilities): Place {
    const found = places.get(key.id);
    if (found !== undefined) return found;
    if (isClosed) throw new UpstreamError('unavailable', 'the gateway has ended it');
    const place: Place = {
      key,
      isFree: makeRoom(key),
      server: createSupervisedServer(program, key, capabilities, owner),
      uses: 0,
      idleSince: clock.monotonic(),
      cancelCheck: () => {},
    };
    places.set(key.id, place);
    if (config.isolation !== 'shared') checkLater(place, idleMs);
    return place;
  }

  function checkLater(place: Place, ms: number) {
    place.cancelCheck = clock.after(ms, () => void check(place));
  }

  async function check(place: Place) {
    const { key, server, uses, idleSince } = place;
    const { sessionId } = key;
    const isRunning = server.running !== undefined;
    const isKept = uses > 0 || (isRunning && sessionId === undefined && owner.isNeeded(key));
    const left = isKept ? idleMs : idleSince + idleMs - clock.monotonic();
    if (left > 0) return checkLater(place, left);
    // A session may end without notice: it expires, or another session takes its place.
    const isActive =
      isRunning && sessionId !== undefined && (await program.share.isSessionActive(sessionId));
    if (places.get(key.id) !== place) return;
    if (isActive || place.uses > 0) checkLater(place, idleMs);
    else await endPlace(place, 0);
  }

  async function waitForProcess({ isFree, server }: Place, signal: CancelSignal | undefined) {
    await isFree;
    return server.getRunning(signal);
  }

  async function use<Result>(
    key: ProcessKey,
    capabilities: ClientCapabilities,
    signal: CancelSignal | undefined,
    task: (running: RunningServer) => Result | Promise<Result>,
  ): Promise<Result> {
    const place = findPlace(key, capabilities);
    place.uses += 1;
    try {
      // If the process is already running, there is nothing to wait for.
      return await task(place.server.running ?? (await waitForProcess(place, signal)));
    } finally {
      place.uses -= 1;
      place.idleSince = clock.monotonic();
    }
  }

  return {
    /** Starts the process in the background. */
    open(key: ProcessKey, capabilities: ClientCapabilities) {
      // Failures are reported elsewhere. The process does not count as busy if another one needs its slot.
      findPlace(key, capabilities)
        .server.getRunning()
        .catch(() => {});
    },
    /**
     * Runs the task with the process, which is started if necessary, and kept running during the task.
     *
     * @throws UpstreamError
     */
    use,
    /** Ends the process, if there is one. */
    async end(key: ProcessKey) {
      const place = places.get(key.id);
      if (place !== undefined) await endPlace(place, 0);
    },
    isAnyRunning: () => [...places.values()].some(({ server }) => server.running !== undefined),
    async close(graceMs: number) {
      isClosed = true;
      for (const place of [...places.values()]) void endPlace(place, graceMs);
      await Promise.all(ending);
    },
  };
}

// §18.3: supervises one process of a server, and restarts it when it ends.

type SupervisedServer = ReturnType<typeof createSupervisedServer>;

/** Milliseconds that a request waits for a first start, which may include a download. */
const START_WAIT_MS = 60_000;
/** Milliseconds that a request waits for a restart. */
const RESTART_WAIT_MS = 1000;
/** A process that ran for this many milliseconds has not failed to start, even if it ends. */
const RAN_WELL_MS = 30_000;

/** `capabilities` are those of the process's clients. */
function createSupervisedServer(
  program: Program,
  key: ProcessKey,
  capabilities: ClientCapabilities,
  owner: PoolOwner,
) {
  const { clock } = program;
  /** Settle functions of waiting requests, each with its own timeout. */
  const waits = new Set<(outcome: RunningServer | UpstreamError) => void>();
  let endRun: (() => Promise<void>) | undefined;
  let running: RunningServer | undefined;
  let lastEnd: EndReason | undefined;
  const starts = createAttempts(clock, pauseAfter);
  /** Monotonic milliseconds of the next restart; undefined if none is planned. */
  let retryAt: number | undefined;
  let isClosed = false;

  function start() {
    const { first } = program;
    retryAt = undefined;
    endRun = startRun(program, key, capabilities, {
      onNotification: (message) => owner.onNotification(key, message),
      onReady(ready) {
        program.first = ready.description.era === 'session' ? 'initialize' : 'server/discover';
        running = ready;
        lastEnd = undefined;
        owner.onUp(key, ready);
        settleWaits(ready);
      },
      onEnd({ reason, readyMs, isStarted }) {
        running = undefined;
        endRun = undefined;
        if (isClosed) return;
        // Some servers of the session era exit because of an unknown request.
        const mayBeProbe = readyMs === undefined && isStarted && first === 'server/discover';
        if (mayBeProbe) program.first = 'initialize';
        if (mayBeProbe && starts.countFailures() === 0) {
          start();
          return;
        }
        if (readyMs !== undefined && readyMs >= RAN_WELL_MS) starts.noteSuccess();
        lastEnd = reason;
        const delay = starts.again(start);
        retryAt = clock.monotonic() + delay;
        settleWaits(createDownError());
        owner.onDown(key, reason, delay);
      },
    });
  }

  function settleWaits(outcome: RunningServer | UpstreamError) {
    for (const settle of [...waits]) settle(outcome);
  }

  const wait = (ms: number, signal: CancelSignal | undefined): Promise<RunningServer> =>
    new Promise((resolve, reject) => {
      function settle(outcome: RunningServer | UpstreamError) {
        cancel();
        signal?.removeEventListener('abort', onAbort);
        waits.delete(settle);
        if (outcome instanceof UpstreamError) reject(outcome);
        else resolve(outcome);
      }
      const onAbort = () => settle(createAbortedError());
      const cancel = clock.after(ms, () => settle(createDownError()));
      signal?.addEventListener('abort', onAbort);
      waits.add(settle);
    });

  function createDownError() {
    const { what } = lastEnd ?? { what: 'it has not started yet' };
    const leftMs = retryAt === undefined ? 0 : retryAt - clock.monotonic();
    const when = leftMs > 0 ? `started again in ${Math.ceil(leftMs / 1000)} s` : 'being started';
    return new UpstreamError('unavailable', what, { next: `it is ${when}` });
  }

  return {
    /** The process, if it accepts requests. */
    get running() {
      return running;
    },
    /**
     * Waits until the process accepts requests: one minute for a first start, one second for a restart.
     *
     * @throws UpstreamError `unavailable`, with the time of the next start; `aborted` by the signal.
     */
    async getRunning(signal?: CancelSignal) {
      if (isClosed) throw createEndedError();
      if (running !== undefined) return running;
      if (endRun === undefined && retryAt === undefined) start();
      if (lastEnd === undefined) return wait(START_WAIT_MS, signal);
      const isFar = retryAt !== undefined && retryAt - clock.monotonic() > RESTART_WAIT_MS;
      if (isFar) throw createDownError();
      return wait(RESTART_WAIT_MS, signal);
    },
    /** Stops accepting requests; ends the process when none is in flight, or after `graceMs`. */
    async close(graceMs: number) {
      isClosed = true;
      starts.stop();
      settleWaits(createEndedError());
      if (running !== undefined) {
        const { waitUntilIdle } = running.connection;
        await new Promise<void>((resolve) => {
          const cancel = clock.after(graceMs, resolve);
          void waitUntilIdle().then(() => {
            cancel();
            resolve();
          });
        });
      }
      await endRun?.();
    },
  };
}

const createEndedError = () => new UpstreamError('unavailable', 'its process was ended');
