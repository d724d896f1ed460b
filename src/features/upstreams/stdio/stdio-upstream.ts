// §18.3: an MCP server whose processes run on this machine.
import type { CancelSignal } from '../../../core/cancellation.ts';
import type { Clock } from '../../../core/clock.ts';
import type { StdioUpstreamConfig } from '../../../core/gateway-file/gateway-file.ts';
import type { JsonObject } from '../../../core/json.ts';
import type { Log } from '../../../core/log.ts';
import { createWarnThrottle } from '../../../core/log-throttle.ts';
import { toSessionParams, toStatelessParams } from '../messages/envelope.ts';
import type { ServerNotification } from '../messages/server-message.ts';
import {
  GATEWAY_CALLER,
  type Upstream,
  type UpstreamCaller,
  type UpstreamDescription,
  type UpstreamRequest,
} from '../upstream.ts';
import { createEnvironment } from './environment.ts';
import type { FirstRequest } from './handshake.ts';
import { createListeners } from './listeners.ts';
import { createWantLogLevel } from './log-level.ts';
import { createOutputLog } from './output-log.ts';
import { findOwner, findProcessKey, GATEWAY_KEY, type ProcessKey } from './process-key.ts';
import type { StdioReplicas } from './replicas.ts';
import { createServerPool } from './server-pool.ts';
import type { RunDeps, RunningServer } from './server-run.ts';
import { createServerState } from './server-state.ts';
import { createSupervisedServer } from './supervised-server.ts';

export interface StdioUpstreamDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** Bytes of one message of the server (`MAX_UPSTREAM_BYTES`). */
  readonly maxBytes: number;
  /** The environment of the gateway: PATH, HOME, USER, LANG and TMPDIR of it reach the server. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Undefined where no other process shares the store; `onUpdate` is told what processes elsewhere say. */
  openReplicas?(onUpdate: (keyId: string, uri: string) => void): StdioReplicas;
  /** Whether a client's session goes on; never rejects. */
  isSessionActive(sessionId: string): Promise<boolean>;
  /** Called with the number of its processes, at each change. */
  onProcessCount?(count: number): void;
}

/** Starts the first process in the background. */
export function createStdioUpstream(
  config: StdioUpstreamConfig,
  deps: StdioUpstreamDeps,
): Upstream<StdioUpstreamConfig> {
  const { clock, log } = deps;
  const { name, isolation, timeoutMs } = config;
  const memory: { first: FirstRequest } = { first: 'server/discover' };
  const runDeps = createRunDeps(config, deps);
  const state = createServerState(name, log);
  const listeners = createListeners();
  const replicas = deps.openReplicas?.(listeners.tellUpdate);
  const wantLogLevel = createWantLogLevel();
  let description: UpstreamDescription | undefined;

  const pool = createServerPool({
    config,
    clock,
    isNeeded: listeners.hasSubscriptions,
    isSessionActive: deps.isSessionActive,
    onEnd(key, isLast) {
      listeners.disconnect(key);
      if (isLast) state.forgetFailure();
    },
    onFull: createWarnThrottle(clock, () =>
      log.warn(
        `All ${config.maxProcesses} processes of the server ${name} are busy, so a call was refused. If that happens often, raise "maxProcesses".`,
        { server: name },
      ),
    ),
    createServer: (key, capabilities) =>
      createSupervisedServer(
        { ...runDeps, memory },
        {
          capabilities,
          onUp(running) {
            description = running.description;
            listeners.connect(key, running, timeoutMs);
            state.setUp();
          },
          onDown(reason, retryMs) {
            listeners.disconnect(key);
            if (!pool.isAnyRunning()) state.setDown(reason, retryMs);
          },
          onNotification(message) {
            listeners.notify(key, message);
            tellReplicas(key, message);
          },
        },
      ),
  });

  const use = <Result>(
    caller: UpstreamCaller,
    signal: CancelSignal | undefined,
    task: (running: RunningServer) => Result | Promise<Result>,
  ): Promise<Result> =>
    pool.use(findProcessKey(isolation, caller), offerCapabilities(caller, config), signal, task);

  function send(
    { connection, description: { era } }: RunningServer,
    caller: UpstreamCaller,
    request: UpstreamRequest,
  ): Promise<JsonObject> {
    return connection.call(caller, request, (token) =>
      era === 'session'
        ? toSessionParams(request, token)
        : toStatelessParams(request, token, withoutRoots(caller, config)),
    );
  }

  function tellReplicas(key: ProcessKey, { method, params }: ServerNotification): void {
    if (method !== 'notifications/resources/updated' || typeof params.uri !== 'string') return;
    if (listeners.hasSubscriptions(key)) replicas?.noteUpdate(key.id, params.uri);
  }

  /** Subscriptions are one for all who share a process. */
  async function setSubscribed(caller: UpstreamCaller, { method, params }: UpstreamRequest) {
    const subscriptions = listeners.findSubscriptions(findProcessKey(isolation, caller));
    const owner = findOwner(caller);
    const uri = String(params.uri);
    const isWanted = method === 'resources/subscribe';
    if (isWanted) await subscriptions.add(owner, uri);
    else subscriptions.remove(owner, uri);
    try {
      await replicas?.change(owner, uri, isWanted);
    } catch (error) {
      subscriptions.remove(owner, uri);
      throw error;
    }
    return {};
  }

  /** What the client's session has subscribed to, at whichever replica. */
  async function takeUp(caller: UpstreamCaller, sessionId: string, uris: readonly string[]) {
    const { replaceAll } = listeners.findSubscriptions(findProcessKey(isolation, caller));
    if (uris.length === 0) replaceAll(sessionId, uris);
    else await use(caller, undefined, () => replaceAll(sessionId, uris));
  }

  /** Sessions may end without a word: what they subscribed to would be kept for ever. */
  function sweepLater(): void {
    cancelSweep = clock.after(SWEEP_MS, () => {
      sweepLater();
      for (const sessionId of listeners.listSessions()) void forgetIfEnded(sessionId);
    });
  }

  async function forgetIfEnded(sessionId: string): Promise<void> {
    if (!(await deps.isSessionActive(sessionId))) listeners.forgetSession(sessionId);
  }

  let cancelSweep = () => {};
  sweepLater();
  pool.open(GATEWAY_KEY, GATEWAY_CALLER.capabilities);
  return {
    config,
    get isUp() {
      return state.isUp;
    },
    get era() {
      return description?.era;
    },
    async describe(caller) {
      return description ?? use(caller, undefined, (running) => running.description);
    },
    request: (caller, request) =>
      use(caller, request.signal, (running) => {
        if (SUBSCRIPTION_METHODS.includes(request.method)) return setSubscribed(caller, request);
        if (isolation !== 'shared') wantLogLevel(running, request.logLevel);
        return send(running, caller, request);
      }),
    listen(caller, listener, uris = []) {
      const { sessionId } = caller;
      const stop = listeners.add(findProcessKey(isolation, caller), sessionId, listener, uris);
      // There may be no process now that could tell.
      if (uris.length > 0) use(caller, undefined, () => {}).catch(() => {});
      const stopWatching =
        sessionId === undefined
          ? undefined
          : replicas?.watch(
              sessionId,
              (all) => void takeUp(caller, sessionId, all).catch(() => {}),
            );
      return () => {
        stop();
        stopWatching?.();
      };
    },
    onStateChange: state.onChange,
    async endSession(caller) {
      const key = findProcessKey(isolation, caller);
      if (caller.sessionId !== undefined) {
        listeners.forgetSession(caller.sessionId);
        await replicas?.forget(caller.sessionId);
      }
      if (key.sessionId !== undefined) await pool.end(key);
    },
    async close(graceMs) {
      cancelSweep();
      await pool.close(graceMs);
      replicas?.close();
    },
  };
}

const SWEEP_MS = 900_000;

const SUBSCRIPTION_METHODS: readonly string[] = ['resources/subscribe', 'resources/unsubscribe'];

/** A shared process does not say whose call its question belongs to. */
const offerCapabilities = (caller: UpstreamCaller, config: StdioUpstreamConfig) =>
  config.isolation === 'shared' ? GATEWAY_CALLER.capabilities : withoutRoots(caller, config);

/** Roots would replace what the server may read. */
const withoutRoots = ({ capabilities }: UpstreamCaller, { roots }: StdioUpstreamConfig) => ({
  ...capabilities,
  roots: capabilities.roots && roots,
});

function createRunDeps(
  config: StdioUpstreamConfig,
  { clock, log, maxBytes, environment, onProcessCount }: StdioUpstreamDeps,
): RunDeps {
  const { name: server } = config;
  let processes = 0;
  let strayAnswers = 0;
  const warnOfStrayAnswers = createWarnThrottle(clock, () =>
    log.warn(
      `The server ${server} sent answers to no request, or second ones. They were dropped.`,
      { server, count: strayAnswers },
    ),
  );
  return {
    config,
    clock,
    maxBytes,
    environment: createEnvironment(environment, config.env),
    output: createOutputLog(config, log, clock),
    onStrayAnswer() {
      strayAnswers += 1;
      warnOfStrayAnswers();
    },
    countProcess(change) {
      processes += change;
      onProcessCount?.(processes);
    },
  };
}
