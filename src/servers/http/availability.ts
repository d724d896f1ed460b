// §18.4: availability of a server: while it cannot be reached, it is probed at growing intervals, and calls fail at once.
import { CredentialError, UpstreamError } from '../../mcp/upstream/upstream.ts';
import { createAttempts } from '../../platform/clock.ts';
import type { ClockAndLog } from '../../platform/log.ts';
import { BACK_OFF, pauseAfter } from '../transport/process-share.ts';
import { ConnectionError, isDownStatus, RefusalError } from './failures.ts';
import { type HttpUpstreamConfig, readHttpFacts } from './http-config.ts';
import type { CallOutcome } from './server-call.ts';

export type Availability = ReturnType<typeof createAvailability>;

type StateListener = (isUp: boolean, reason: string, wasUp: boolean | undefined) => void;

/** The time of the last probe while the server was up, and the number of such probes in a row. */
const NO_SUSPICION = { lookedAt: Number.NEGATIVE_INFINITY, looks: 1 };

/**
 * Availability is derived from the outcomes of requests. A failed request of a caller concerns only that caller: except for failed
 * connections, only the gateway's own request, `probe`, can show that a server is down; it then rejects with an UpstreamError.
 */
export function createAvailability(
  { clock, log }: ClockAndLog,
  config: HttpUpstreamConfig,
  probe: () => Promise<unknown>,
) {
  const { name } = config;
  const isPersonal = readHttpFacts(config).personalBy !== undefined;
  const listeners: StateListener[] = [];
  const state: { isUp: boolean | undefined } = { isUp: undefined };
  let downReason = '';
  let isProbing = false;
  let suspicion = NO_SUSPICION;
  let isClosed = false;
  const probes = createAttempts(clock, pauseAfter);
  let cancelLook: (() => void) | undefined;

  function change(isUp: boolean, reason: string) {
    const wasUp = state.isUp;
    state.isUp = isUp;
    for (const listener of listeners) listener(isUp, reason, wasUp);
  }

  function noteUp() {
    if (state.isUp === true || isClosed) return;
    probes.stop();
    log.info(`The MCP server ${name} answers`, { server: name });
    change(true, 'it answers');
  }

  /** The server cannot be reached, or refuses the gateway. */
  function noteDown(reason: UpstreamError) {
    if (state.isUp === false || isClosed) return;
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
    // A probe may still be in flight, and schedule the next one when it ends.
    probes.stop();
    probes.again(async () => {
      await look();
      if (state.isUp === false) probeLater();
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
      else if (state.isUp !== false) noteDown(error);
      // The reason may have changed: an operator who has fixed the first problem must learn about the next.
      else if (!isClosed && error.message !== downReason) tellReason(error);
    } finally {
      isProbing = false;
    }
  }

  /**
   * A failure may mean that the server is down, so it is probed at once. While each probe finds the server up, probes become rarer:
   * a tool is failing then, not the server.
   */
  function suspect() {
    if (state.isUp === false || isClosed || isProbing || cancelLook !== undefined) return;
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
      if (state.isUp !== false) void look();
    });
  }

  /** 401 and 403 may concern only one user, if users can be told apart. */
  const mayConcernAll = (status: number) => isDownStatus(status) || (status === 401 && !isPersonal);

  /** Called when a request got no answer. */
  function noteFailure(failure: unknown) {
    if (!(failure instanceof ConnectionError) || failure.isOwn) return;
    if (failure.isEverybodys) noteDown(failure);
    // A single connection broke, or timed out while this process was busy.
    else suspect();
  }

  return {
    /** `isUp` is undefined until the first attempt. Code that checks it on every call holds this object. */
    state,
    /** For calls while it is down. */
    createDownError: () => new UpstreamError('unavailable', downReason),
    noteUp,
    /** Called when a request was answered. */
    noteOutcome(outcome: CallOutcome, isHandshake: boolean) {
      const status = outcome.kind === 'refused' ? outcome.status : undefined;
      if (status !== undefined && mayConcernAll(status)) suspect();
      else if (!isHandshake && status !== 401 && status !== 403) noteUp();
    },
    noteFailure,
    /** Called when no handshake was possible, at least for this caller. */
    noteFailedHandshake(failure: unknown) {
      if (failure instanceof ConnectionError) noteFailure(failure);
      else if (!(failure instanceof UpstreamError) || failure instanceof CredentialError) return;
      else if (isPersonal && failure instanceof RefusalError && !mayConcernAll(failure.status)) {
        return;
      } else if (isPersonal || state.isUp === true) suspect();
      // No caller has been served yet, and the server cannot tell callers apart.
      else noteDown(failure);
    },
    suspect,
    onChange: (listener: StateListener) => void listeners.push(listener),
    close() {
      isClosed = true;
      probes.stop();
      cancelLook?.();
    },
  };
}
