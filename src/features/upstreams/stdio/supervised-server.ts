// §18.3: a place for one process of a server, which is started again when it ends.
import type { Clock } from '../../../core/clock.ts';
import type { StdioUpstreamConfig } from '../../../core/gateway-file/gateway-file.ts';
import type { JsonObject } from '../../../core/json.ts';
import { quote } from '../../../core/quote.ts';
import type { ClientCapabilities } from '../../mcp/catalog/client-requests.ts';
import { type UpstreamDescription, UpstreamError } from '../upstream.ts';
import { createBackOff } from './back-off.ts';
import { type Child, startChild } from './child.ts';
import { type Connection, createConnection } from './connection.ts';
import type { EndReason } from './end-reason.ts';
import { type FirstRequest, shakeHands } from './handshake.ts';
import type { OutputLog } from './output-log.ts';
import { createWaiters } from './waiters.ts';

export interface SupervisedServer {
  /** The process, where requests can be sent to it. */
  readonly running: RunningServer | undefined;
  /**
   * Waits until requests can be sent: for a first start as long as a request may take, for a restart a second.
   *
   * @throws UpstreamError `unavailable`, which says when it is started again.
   */
  getRunning(signal?: AbortSignal): Promise<RunningServer>;
  /** Takes no requests any more; ends the process when none is under way, or after `graceMs`. */
  close(graceMs: number): Promise<void>;
}

export interface RunningServer {
  readonly description: UpstreamDescription;
  readonly connection: Connection;
}

/** What is the same for all processes of a server. */
export interface ServerDeps {
  readonly config: StdioUpstreamConfig;
  readonly clock: Clock;
  readonly maxBytes: number;
  readonly environment: Readonly<Record<string, string>>;
  readonly output: OutputLog;
  /** What is sent first to a process, as the last ones taught. */
  readonly memory: { first: FirstRequest };
  onStrayAnswer(): void;
  /** A process was started (1), or has ended (-1). */
  countProcess(change: 1 | -1): void;
}

export interface ServerOptions {
  /** Whether it is started again at once, or when it is needed. */
  readonly isKept: boolean;
  /** What the clients behind it can be asked. */
  readonly capabilities: ClientCapabilities;
  onUp(server: RunningServer): void;
  /** It ended, or could not be started; tried again in `retryMs`. */
  onDown(reason: EndReason, retryMs: number): void;
  onNotification(method: string, params: JsonObject): void;
}

/** Milliseconds that a request waits for a process that is started again. */
const RESTART_WAIT_MS = 1000;
/** Milliseconds after which a process ran well: its end is no failure to start. */
const RAN_WELL_MS = 30_000;

export function createSupervisedServer(deps: ServerDeps, options: ServerOptions): SupervisedServer {
  const { config, clock, memory } = deps;
  const backOff = createBackOff();
  const waiters = createWaiters<RunningServer>(clock);
  let child: Child | undefined;
  let running: RunningServer | undefined;
  let lastEnd: EndReason | undefined;
  let retry: { readonly at: number; readonly cancel: () => void } | undefined;
  let isClosed = false;

  function start(): void {
    retry = undefined;
    const { capabilities, onNotification } = options;
    const connection = createConnection({
      clock,
      timeoutMs: config.timeoutMs,
      canAttribute: config.isolation !== 'shared',
      write: (line) => started.write(line),
      onNotification,
      onStrayAnswer: deps.onStrayAnswer,
    });
    const first = memory.first;
    const startedAt = clock.monotonic();
    const handlers = {
      onLine: (line: Buffer) => void (connection.receive(line) || deps.output.writeStrayLine(line)),
      onErrorLine: deps.output.writeErrorLine,
      onEnd(reason: EndReason) {
        deps.countProcess(-1);
        connection.fail(new UpstreamError(reason.failure ?? 'unavailable', reason.what));
        const wasRunning = running?.connection === connection;
        running = undefined;
        child = undefined;
        if (isClosed) return;
        if (wasRunning && clock.monotonic() - startedAt >= RAN_WELL_MS) backOff.reset();
        // Some servers of the session era end by what they do not know.
        const isKilledByProbe = !wasRunning && first === 'server/discover' && started.isStarted;
        if (isKilledByProbe) memory.first = 'initialize';
        if (isKilledByProbe && !backOff.hasFailed) start();
        else scheduleRetry(reason);
      },
    };
    const started = startChild(config, handlers, deps);
    child = started;
    deps.countProcess(1);
    void connect(connection, started, first, capabilities);
  }

  async function connect(
    connection: Connection,
    started: Child,
    first: FirstRequest,
    capabilities: ClientCapabilities,
  ): Promise<void> {
    try {
      const description = await shakeHands(connection, first, capabilities);
      if (child !== started) return;
      memory.first = description.era === 'session' ? 'initialize' : 'server/discover';
      running = { description, connection };
      lastEnd = undefined;
      options.onUp(running);
      waiters.resolve(running);
    } catch (error) {
      started.kill(explainHandshake(error));
    }
  }

  function scheduleRetry(reason: EndReason): void {
    const delay = backOff.next();
    const cancel = clock.after(delay, () => {
      retry = undefined;
      if (options.isKept || waiters.count > 0) start();
    });
    lastEnd = reason;
    retry = { at: clock.monotonic() + delay, cancel };
    waiters.reject(createDownError());
    options.onDown(reason, delay);
  }

  function createDownError(): UpstreamError {
    const what = lastEnd?.what ?? 'it has not started yet';
    const inMs = retry === undefined ? undefined : Math.max(0, retry.at - clock.monotonic());
    const when =
      inMs === undefined
        ? 'it is being started'
        : `it is started again in ${Math.ceil(inMs / 1000)} s`;
    return new UpstreamError('unavailable', `${what}; ${when}`);
  }

  if (options.isKept) start();
  return {
    get running() {
      return running;
    },
    async getRunning(signal) {
      if (isClosed) throw new UpstreamError('unavailable', 'it was ended');
      if (running !== undefined) return running;
      if (child === undefined && retry === undefined) start();
      if (lastEnd === undefined) return waiters.wait(config.timeoutMs, createDownError, signal);
      const isTooLong = retry !== undefined && retry.at - clock.monotonic() > RESTART_WAIT_MS;
      if (isTooLong) throw createDownError();
      return waiters.wait(RESTART_WAIT_MS, createDownError, signal);
    },
    async close(graceMs) {
      isClosed = true;
      retry?.cancel();
      waiters.reject(new UpstreamError('unavailable', 'it was ended'));
      if (running !== undefined) await waitForIdle(running.connection, clock, graceMs);
      await child?.end();
    },
  };
}

function explainHandshake(error: unknown): EndReason {
  if (!(error instanceof UpstreamError)) return { what: 'it could not be connected to' };
  const { failure, message } = error;
  return {
    what: EXPLANATIONS[failure],
    ...(failure === 'error' && { advice: `The server said: ${quote(message)}` }),
  };
}

const EXPLANATIONS = {
  unavailable: 'it ended',
  timeout: 'it did not answer initialize in time',
  invalid: 'it speaks no revision of MCP that the gateway knows',
  aborted: 'it was ended',
  error: 'it refused initialize',
} as const;

const waitForIdle = (connection: Connection, clock: Clock, graceMs: number): Promise<void> =>
  new Promise((resolve) => {
    const cancel = clock.after(graceMs, resolve);
    void connection.waitUntilIdle().then(() => {
      cancel();
      resolve();
    });
  });
