// §18.3: a place for one process of a server, which is started again when it ends.
import type { ClientCapabilities } from '../../mcp/catalog/client-requests.ts';
import { computePauseMs } from '../../platform/back-off.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import type { Clock } from '../../platform/clock.ts';
import type { ServerNotification } from '../messages/server-message.ts';
import { UpstreamError } from '../upstream.ts';
import type { EndReason } from './end-reason.ts';
import type { FirstRequest } from './handshake.ts';
import { createAbortedError } from './open-requests.ts';
import type { Program } from './program.ts';
import type { RpcConnection } from './rpc-connection.ts';
import {
  type ProcessKey,
  type RunEnd,
  type RunningServer,
  type ServerRun,
  startRun,
} from './server-run.ts';

export type SupervisedServer = ReturnType<typeof createSupervisedServer>;

interface SupervisedHandlers {
  onUp(running: RunningServer): void;
  /** It ended, or could not be started; it is tried again in `retryMs`. */
  onDown(reason: EndReason, retryMs: number): void;
  onNotification(message: ServerNotification): void;
}

/** Milliseconds that a request waits for a first start: it may have much to do, such as a download. */
const START_WAIT_MS = 60_000;
/** Milliseconds that it waits for a process that is started again. */
const RESTART_WAIT_MS = 1000;
/** Milliseconds after which a process ran well: its end is no failure to start. */
const RAN_WELL_MS = 30_000;
/** §18.4: between starts. */
const BACK_OFF = { firstMs: 1000, longestMs: 30_000 };

/** `capabilities` say what the clients behind it can be asked. */
export function createSupervisedServer(
  program: Program,
  key: ProcessKey,
  capabilities: ClientCapabilities,
  { onUp, onDown, onNotification }: SupervisedHandlers,
) {
  const { clock } = program;
  const waiters = createWaiters<RunningServer>(clock);
  let run: ServerRun | undefined;
  let running: RunningServer | undefined;
  let lastEnd: EndReason | undefined;
  let retry: { readonly at: number; readonly cancel: () => void } | undefined;
  /** Starts in a row that failed. */
  let failures = 0;
  let isClosed = false;

  function start(): void {
    const { first } = program;
    retry = undefined;
    run = startRun(program, key, capabilities, {
      onNotification,
      onReady(ready) {
        program.first = ready.description.era === 'session' ? 'initialize' : 'server/discover';
        running = ready;
        lastEnd = undefined;
        onUp(ready);
        waiters.resolve(ready);
      },
      onEnd(end) {
        running = undefined;
        run = undefined;
        if (!isClosed) startAgain(end, first);
      },
    });
  }

  function startAgain({ reason, readyMs, isStarted }: RunEnd, first: FirstRequest): void {
    // Some servers of the session era end by a request that they do not know.
    const mayBeProbe = readyMs === undefined && isStarted && first === 'server/discover';
    if (mayBeProbe) program.first = 'initialize';
    if (mayBeProbe && failures === 0) {
      start();
      return;
    }
    if (readyMs !== undefined && readyMs >= RAN_WELL_MS) failures = 0;
    failures += 1;
    const delay = computePauseMs(BACK_OFF, failures);
    lastEnd = reason;
    retry = { at: clock.monotonic() + delay, cancel: clock.after(delay, start) };
    waiters.reject(createDownError());
    onDown(reason, delay);
  }

  function createDownError(): UpstreamError {
    const { what } = lastEnd ?? { what: 'it has not started yet' };
    const leftMs = retry === undefined ? 0 : retry.at - clock.monotonic();
    const when = leftMs > 0 ? `started again in ${Math.ceil(leftMs / 1000)} s` : 'being started';
    return new UpstreamError('unavailable', what, { next: `it is ${when}` });
  }

  function findPatienceMs(): number {
    if (lastEnd === undefined) return START_WAIT_MS;
    const isFar = retry !== undefined && retry.at - clock.monotonic() > RESTART_WAIT_MS;
    return isFar ? 0 : RESTART_WAIT_MS;
  }

  return {
    /** The process, where requests can be sent to it. */
    get running() {
      return running;
    },
    /**
     * Waits until requests can be sent: for a first start a minute, for a restart a second.
     *
     * @throws UpstreamError `unavailable`, which says when it is started again; `aborted` by the signal.
     */
    async getRunning(signal?: CancelSignal) {
      if (isClosed) throw createEndedError();
      if (running !== undefined) return running;
      if (run === undefined && retry === undefined) start();
      const patienceMs = findPatienceMs();
      if (patienceMs === 0) throw createDownError();
      return waiters.wait(patienceMs, createDownError, signal);
    },
    /** Takes no requests any more; ends the process when none is under way, or after `graceMs`. */
    async close(graceMs: number) {
      isClosed = true;
      retry?.cancel();
      waiters.reject(createEndedError());
      if (running !== undefined) await waitForIdle(running.connection, clock, graceMs);
      await run?.end();
    },
  };
}

const createEndedError = () => new UpstreamError('unavailable', 'its process was ended');

/** Resolves when no request is under way, after `graceMs` at the latest. */
const waitForIdle = (
  { waitUntilIdle }: RpcConnection,
  clock: Clock,
  graceMs: number,
): Promise<void> =>
  new Promise((resolve) => {
    const cancel = clock.after(graceMs, resolve);
    void waitUntilIdle().then(() => {
      cancel();
      resolve();
    });
  });

interface Waiter<Value> {
  resolve(value: Value): void;
  reject(error: UpstreamError): void;
}

/** Those that wait for the same thing, each for a time of its own. */
function createWaiters<Value>(clock: Clock) {
  const waiting = new Set<Waiter<Value>>();

  return {
    /** @throws UpstreamError what `createError` makes when the time is over; `aborted` by the signal. */
    wait: (ms: number, createError: () => UpstreamError, signal?: CancelSignal) =>
      new Promise<Value>((resolve, reject) => {
        const onAbort = () => waiter.reject(createAbortedError());
        const cancel = clock.after(ms, () => waiter.reject(createError()));
        function end(): void {
          cancel();
          signal?.removeEventListener('abort', onAbort);
          waiting.delete(waiter);
        }
        const waiter: Waiter<Value> = {
          resolve(value) {
            end();
            resolve(value);
          },
          reject(error) {
            end();
            reject(error);
          },
        };
        signal?.addEventListener('abort', onAbort);
        waiting.add(waiter);
      }),
    resolve(value: Value) {
      for (const waiter of [...waiting]) waiter.resolve(value);
    },
    reject(error: UpstreamError) {
      for (const waiter of [...waiting]) waiter.reject(error);
    },
  };
}
