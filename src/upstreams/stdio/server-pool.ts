// §18.3: the processes of a server: one for all, one for each user, or one for each session.
import type { ClientCapabilities } from '../../mcp/catalog/client-requests.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import { UpstreamError } from '../upstream.ts';
import type { Program } from './program.ts';
import type { ProcessKey, RunningServer } from './server-run.ts';
import type { SupervisedServer } from './supervised-server.ts';

interface PoolOwner {
  createServer(key: ProcessKey, capabilities: ClientCapabilities): SupervisedServer;
  /** Whether it is needed though nobody calls it. */
  isNeeded(key: ProcessKey): boolean;
  /** The process ends, and is not started again until it is needed. */
  onEnd(key: ProcessKey, isLast: boolean): void;
  /** All processes are busy, and one more was wanted. */
  onFull(): void;
}

/** A process, or the place for one. */
interface Place {
  readonly key: ProcessKey;
  readonly server: SupervisedServer;
  /** When a process that had to end for it has ended. */
  readonly isFree: Promise<void>;
  uses: number;
  idleSince: number;
  cancelCheck: () => void;
}

export function createServerPool(
  { config, clock, share: { isSessionActive } }: Program,
  { createServer, isNeeded, onEnd, onFull }: PoolOwner,
) {
  const places = new Map<string, Place>();
  const ending = new Set<Promise<void>>();
  const max = config.isolation === 'shared' ? 1 : config.maxProcesses;
  /** Nobody can keep all others out by opening sessions. */
  const maxOfUser = Math.ceil(max / 2);
  const idleMs = config.idleSeconds * 1000;
  let isClosed = false;

  function endPlace(place: Place, graceMs: number): Promise<void> {
    places.delete(place.key.id);
    place.cancelCheck();
    onEnd(place.key, places.size === 0);
    const ended = place.server.close(graceMs).finally(() => ending.delete(ended));
    ending.add(ended);
    return ended;
  }

  /** @throws UpstreamError where none can end for it. */
  function makeRoom({ user }: ProcessKey): Promise<void> {
    const all = [...places.values()];
    const own = user === undefined ? [] : all.filter(({ key }) => key.user === user);
    if (own.length >= maxOfUser) {
      return (
        endLongestIdle(own) ??
        failBusy(`all of the ${maxOfUser} processes that one user may have are busy`)
      );
    }
    if (all.length < max) return Promise.resolve();
    const ended = endLongestIdle(all);
    if (ended !== undefined) return ended;
    onFull();
    return failBusy(`all of its ${max} processes are busy`);
  }

  /** Undefined where all are busy. */
  function endLongestIdle(candidates: readonly Place[]): Promise<void> | undefined {
    const [longestIdle] = candidates
      .filter(({ uses }) => uses === 0)
      .sort((a, b) => a.idleSince - b.idleSince);
    return longestIdle && endPlace(longestIdle, 0);
  }

  function findPlace(key: ProcessKey, capabilities: ClientCapabilities): Place {
    const found = places.get(key.id);
    if (found !== undefined) return found;
    if (isClosed) throw new UpstreamError('unavailable', 'the gateway has ended it');
    const place: Place = {
      key,
      isFree: makeRoom(key),
      server: createServer(key, capabilities),
      uses: 0,
      idleSince: clock.monotonic(),
      cancelCheck: () => {},
    };
    places.set(key.id, place);
    if (config.isolation !== 'shared') checkLater(place, idleMs);
    return place;
  }

  function checkLater(place: Place, ms: number): void {
    place.cancelCheck = clock.after(ms, () => {
      const left = isKept(place) ? idleMs : place.idleSince + idleMs - clock.monotonic();
      const { sessionId } = place.key;
      if (left > 0) checkLater(place, left);
      else if (sessionId === undefined || !place.server.running) void endPlace(place, 0);
      else void endAfterSession(place, sessionId);
    });
  }

  /** A session may end without a word: it expires, or another one takes its place. */
  async function endAfterSession(place: Place, sessionId: string): Promise<void> {
    const isActive = await isSessionActive(sessionId);
    if (places.get(place.key.id) !== place) return;
    if (isActive || place.uses > 0) checkLater(place, idleMs);
    else await endPlace(place, 0);
  }

  const isKept = ({ key, uses, server }: Place): boolean =>
    uses > 0 || (server.running !== undefined && key.sessionId === undefined && isNeeded(key));

  async function use<Result>(
    key: ProcessKey,
    capabilities: ClientCapabilities,
    signal: CancelSignal | undefined,
    task: (running: RunningServer) => Result | Promise<Result>,
  ): Promise<Result> {
    const place = findPlace(key, capabilities);
    place.uses += 1;
    try {
      await place.isFree;
      return await task(await place.server.getRunning(signal));
    } finally {
      place.uses -= 1;
      place.idleSince = clock.monotonic();
    }
  }

  return {
    /** Starts the process in the background. */
    open(key: ProcessKey, capabilities: ClientCapabilities) {
      // Its failures are told otherwise; where its place is needed, it does not count as busy.
      findPlace(key, capabilities)
        .server.getRunning()
        .catch(() => {});
    },
    /**
     * Runs the task with the process, which is started where there is none, and not ended meanwhile.
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

function failBusy(reason: string): never {
  throw new UpstreamError('unavailable', reason);
}
