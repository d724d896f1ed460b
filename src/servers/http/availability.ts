// §18.4: availability of a server: while it cannot be reached, it is probed with a growing pause, and calls fail at once.
import { CredentialError, UpstreamError } from '../../mcp/upstream/upstream.ts';
import { createAttempts } from '../../platform/clock.ts';
import type { ClockAndLog } from '../../platform/log.ts';
import { BACK_OFF, pauseAfter } from '../transport/process-share.ts';
import { ConnectionError, isDownStatus, RefusalError } from './failures.ts';
import { type HttpUpstreamConfig, readHttpFacts } from './http-config.ts';
import type { CallOutcome } from './server-call.ts';

export type Availability = ReturnType<typeof createAvailability>;

type StateListener = (isUp: boolean, reason: string, wasUp: boolean | undefined) => void;

/** Time of the last probe while it was up, and the number of such probes in a row. */
const NO_SUSPICION = { lookedAt: Number.NEGATIVE_INFINITY, looks: 1 };

/** `name` is that of the configuration. `probe` rejects with an UpstreamError while the server is down. */
export function createAvailability(
  { clock, log }: ClockAndLog,
  name: string,
  probe: () => Promise<unknown>,
) {
  const listeners: StateListener[] = [];
  let isUp: boolean | undefined;
  let downReason = '';
  let isProbing = false;
  let suspicion = NO_SUSPICION;
  let isClosed = false;
  const probes = createAttempts(clock, pauseAfter);
  let cancelLook: (() => void) | undefined;

  function change(now: boolean, reason: string) {
    const before = isUp;
    isUp = now;
    for (const listener of listeners) listener(now, reason, before);
  }

  function noteUp() {
    if (isUp === true || isClosed) return;
    probes.stop();
    log.info(`The MCP server ${name} answers`, { server: name });
    change(true, 'it answers');
  }

  function noteDown(reason: UpstreamError) {
    if (isUp === false || isClosed) return;
    tellReason(reason);
    change(false, reason.message);
    probes.noteSuccess();
    probeLater();
  }

  function tellReason({ message, logMessage, cause }: UpstreamError) {
    downReason = message;
    log.warn(`The MCP server ${name} is not available: ${logMessage}`, { server: name, cause });
  }

  function probeLater() {
    if (isClosed) return;
    // A probe may still be in flight, and set the next one when it ends.
    probes.stop();
    probes.again(async () => {
      await look();
      if (isUp === false) probeLater();
    });
  }

  async function look() {
    if (isProbing) return;
    isProbing = true;
    try {
      await probe();
      noteUp();
    } catch (error) {
      if (!(error instanceof UpstreamError))
        log.error(`The MCP server ${name} could not be looked for`, { cause: error });
      else if (isUp !== false) noteDown(error);
      // The reason may have changed: an operator who has fixed the first problem has to learn of the next.
      else if (!isClosed && error.message !== downReason) tellReason(error);
    } finally {
      isProbing = false;
    }
  }

  function suspect() {
    if (isUp === false || isClosed || isProbing || cancelLook !== undefined) return;
    const now = clock.monotonic();
    const { lookedAt, looks } = suspicion;
    const sinceMs = now - lookedAt;
    const waitMs = Math.max(0, pauseAfter(looks) - sinceMs);
    const isLongAgo = sinceMs > 2 * BACK_OFF.longestMs;
    suspicion = { lookedAt: now + waitMs, looks: isLongAgo ? 1 : looks + 1 };
    if (waitMs === 0) {
      void look();
      return;
    }
    cancelLook = clock.after(waitMs, () => {
      cancelLook = undefined;
      if (isUp !== false) void look();
    });
  }

  return {
    /** Undefined until it was tried. */
    get isUp() {
      return isUp;
    },
    /** @throws UpstreamError while it is down. */
    check() {
      if (isUp === false) throw new UpstreamError('unavailable', downReason);
    },
    noteUp,
    /** The server cannot be reached, or refuses the gateway. */
    noteDown,
    /**
     * Something went wrong that may mean that the server is down: probes it at once. Ever less often while each probe finds it up: then
     * a tool fails, and not the server.
     */
    suspect,
    onChange: (listener: StateListener) => void listeners.push(listener),
    close() {
      isClosed = true;
      probes.stop();
      cancelLook?.();
    },
  };
}

// §18.4: conclusions from the outcome of a request. The failure of one caller's request concerns that caller: except for connections
// that fail, only the gateway's own request decides that a server is down.

export type Judge = ReturnType<typeof createAvailabilityJudge>;

export function createAvailabilityJudge(config: HttpUpstreamConfig, availability: Availability) {
  const isPersonal = readHttpFacts(config).personalBy !== undefined;
  /** 401 and 403 may concern one user only, where users can be told apart. */
  const mayConcernAll = (status: number) => isDownStatus(status) || (status === 401 && !isPersonal);

  function noteFailure(failure: unknown) {
    if (!(failure instanceof ConnectionError) || failure.isOwn) return;
    if (failure.isEverybodys) availability.noteDown(failure);
    // A single connection broke, or timed out while this process was busy.
    else availability.suspect();
  }

  return {
    /** A request was answered. */
    noteOutcome(outcome: CallOutcome, isHandshake: boolean) {
      const status = outcome.kind === 'refused' ? outcome.status : undefined;
      if (status !== undefined && mayConcernAll(status)) availability.suspect();
      else if (!isHandshake && status !== 401 && status !== 403) availability.noteUp();
    },
    /** A request had no answer. */
    noteFailure,
    /** No handshake was possible, for this caller at least. */
    noteFailedHandshake(failure: unknown) {
      if (failure instanceof ConnectionError) noteFailure(failure);
      else if (!(failure instanceof UpstreamError) || failure instanceof CredentialError) return;
      else if (isPersonal && failure instanceof RefusalError && !mayConcernAll(failure.status)) {
        return;
      } else if (isPersonal || availability.isUp === true) availability.suspect();
      // No caller was served yet, and the server cannot tell callers apart.
      else availability.noteDown(failure);
    },
  };
}
