// §18.3: an MCP server whose processes run on this machine.

import { LOG_SEVERITIES, type LogSeverity } from '../../mcp/protocol/methods.ts';
import type { Era } from '../../mcp/protocol/revisions.ts';
import { toSessionParams, toStatelessParams } from '../../mcp/upstream/envelope.ts';
import {
  GATEWAY_CALLER,
  type Upstream,
  type UpstreamCaller,
  type UpstreamRuntime,
} from '../../mcp/upstream/upstream.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import { hideSecretArguments } from '../../platform/secret-texts.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import { createDescriptionMemory } from '../transport/description-memory.ts';
import type { ProcessShare } from '../transport/process-share.ts';
import { SUBSCRIBING } from '../transport/session-records.ts';
import { defineTransport } from '../transport/transport.ts';
import type { EndReason } from './child.ts';
import { createProgramListeners } from './listeners.ts';
import { openProgram, type ProgramHost } from './program.ts';
import { createServerPool } from './server-pool.ts';
import { findProcessKey, GATEWAY_KEY, type RunningServer } from './server-run.ts';
import {
  buildStdio,
  completeStdio,
  readStdioFacts,
  type StdioUpstreamConfig,
  stdioMembers,
} from './stdio-config.ts';

export const stdioTransport = defineTransport<StdioUpstreamConfig>({
  kind: 'stdio',
  types: { all: ['stdio'], told: '"stdio"' },
  addresses: [stdioMembers.command],
  members: Object.values(stdioMembers),
  words: {
    address: 'a program to start',
    server: 'a program that Postern starts',
    whyNoOthers: '. A program gets its settings and secrets by env or args.',
  },
  verb: 'runs',
  hasProcesses: true,
  build: buildStdio,
  complete: completeStdio,
  findFacts: readStdioFacts,
  describe(config) {
    const target = hideSecretArguments(config.command);
    const asking: StdioUpstreamConfig = { ...config, isolation: 'user', maxProcesses: 2 };
    return {
      target,
      auth: undefined,
      program: config,
      advice: `check the command, its arguments and its environment: ${target}.`,
      asking: config.isolation === 'shared' ? asking : undefined,
    };
  },
  open: (runtime, config, { share, host }) => createStdioUpstream(runtime, config, share, host),
});

/** Starts the first process in the background. */
export function createStdioUpstream(
  runtime: UpstreamRuntime,
  config: StdioUpstreamConfig,
  share: ProcessShare,
  host: ProgramHost,
): Upstream {
  const { clock, log } = runtime;
  const { name, isolation, timeoutMs } = config;
  const program = openProgram(runtime, config, share, host);
  const state = createProgramState(runtime, name);
  const listeners = createProgramListeners(runtime, config, share, (caller) =>
    use(caller, undefined, () => {}),
  );
  /** Descriptions, one per process. */
  const descriptions = createDescriptionMemory();
  let lastEra: Era | undefined;

  const pool = createServerPool(program, {
    isNeeded: listeners.hasSubscriptions,
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
    onUp(key, running) {
      descriptions.note(key.id, running.description);
      lastEra = running.description.era;
      listeners.connect(key, running, timeoutMs);
      state.setUp();
    },
    onDown(key, reason, retryMs) {
      listeners.disconnect(key);
      if (key.id !== GATEWAY_KEY.id) state.noteFailedProcess(reason, retryMs);
      else if (!pool.isAnyRunning()) state.setDown(reason, retryMs);
    },
    onNotification: listeners.notify,
  });

  const use = <Result>(
    caller: UpstreamCaller,
    signal: CancelSignal | undefined,
    task: (running: RunningServer) => Result | Promise<Result>,
  ) =>
    pool.use(
      findProcessKey(isolation, caller),
      // A shared process does not say to which call a request belongs.
      isolation === 'shared' ? GATEWAY_CALLER.capabilities : caller.capabilities,
      signal,
      task,
    );

  const peekDescription = (caller: UpstreamCaller) =>
    descriptions.find(findProcessKey(isolation, caller).id);

  pool.open(GATEWAY_KEY, GATEWAY_CALLER.capabilities);
  return {
    config,
    facts: readStdioFacts(config),
    get isUp() {
      return state.isUp;
    },
    get era() {
      return lastEra;
    },
    describe: async (caller) =>
      peekDescription(caller) ?? use(caller, undefined, (running) => running.description),
    peekDescription,
    request: (caller, request) =>
      use(caller, request.signal, (running) => {
        if (SUBSCRIBING.has(request.method)) return listeners.changeSubscription(caller, request);
        if (isolation !== 'shared') wantLogLevel(running, request.logLevel);
        const { connection, description } = running;
        return connection.call(caller, request, (token) =>
          description.era === 'session'
            ? toSessionParams(request, token)
            : toStatelessParams(request, token, caller.capabilities),
        );
      }),
    listen: (caller, listener, uris = []) => listeners.listen(caller, listener, uris),
    onStateChange: state.onChange,
    async endSession(caller) {
      const key = findProcessKey(isolation, caller);
      await listeners.endSession(caller);
      if (key.sessionId !== undefined) await pool.end(key);
    },
    async close(graceMs) {
      await pool.close(graceMs);
      listeners.close();
    },
  };
}

// MCP "Logging" (session era): a process has a single log level for all of its calls.

/** In milliseconds; no caller waits for it. */
const TIMEOUT_MS = 60_000;

/** The last level that was set. */
const levels = new WeakMap<RunningServer, LogSeverity>();

/** Sets the least severe level that this call or any in-flight call wants. */
function wantLogLevel(running: RunningServer, level: LogSeverity | undefined) {
  const { connection, description } = running;
  const canSet = description.era === 'session' && description.capabilities.logging !== undefined;
  if (level === undefined || !canSet) return;
  const wanted = new Set([level, ...connection.listOpenRequests().map(({ logLevel }) => logLevel)]);
  const least = LOG_SEVERITIES.find((severity) => wanted.has(severity));
  if (least === undefined || levels.get(running) === least) return;
  levels.set(running, least);
  // Sent before the call, so that the server reads it first. If the request fails, the level stays.
  connection.ask('logging/setLevel', { level: least }, TIMEOUT_MS).catch(() => {});
}

// §18.4: availability of a server, for its callers and the operator.

function createProgramState({ clock, log }: UpstreamRuntime, server: string) {
  const listeners = new Set<(isUp: boolean, reason: string) => void>();
  let isUp: boolean | undefined;

  function set(value: boolean, reason: string) {
    isUp = value;
    for (const listener of listeners) listener(value, reason);
  }

  const warnOfProcess = createWarnThrottle(clock, (reason: EndReason, retryMs: number) =>
    log.warn(`A process of the MCP server ${server} is not available: ${tell(reason, retryMs)}`, {
      server,
      ...tellLastWords(reason),
    }),
  );

  return {
    /** Undefined if no start was attempted. */
    get isUp() {
      return isUp;
    },
    /** Called when a process is available. */
    setUp() {
      if (isUp === true) return;
      log.info(`The MCP server ${server} answers`, { server });
      set(true, 'it answers');
    },
    /** Called when no process is available; the next start is in `retryMs`. */
    setDown(ended: EndReason, retryMs: number) {
      if (isUp === false) return;
      log.warn(`The MCP server ${server} is not available: ${tell(ended, retryMs)}`, {
        server,
        ...tellLastWords(ended),
      });
      // The reason omits the time until the next start, since it is shown for as long as the state lasts.
      set(false, addAdvice(ended.what, ended));
    },
    /**
     * Called when one process of several, for a user or a session, is unavailable: only its owner is affected. Logged at most once
     * a minute.
     */
    noteFailedProcess: warnOfProcess,
    /** Called when no process is restarted until one is needed. */
    forgetFailure() {
      if (isUp === false) isUp = undefined;
    },
    onChange: (listener: (isUp: boolean, reason: string) => void) => void listeners.add(listener),
  };
}

/** Matches the ending that `tell` adds to a line of the log. */
export const NEXT_START = /; it is started again in \d+ s(?:\. |$)/;

/** For commands, which restart nothing. */
export const leaveOutNextStart = (message: string): string =>
  message.replace(NEXT_START, (said) => (said.endsWith('. ') ? '. ' : ''));

const tell = (ended: EndReason, retryMs: number) =>
  addAdvice(`${ended.what}; it is started again in ${Math.ceil(retryMs / 1000)} s`, ended);

const addAdvice = (said: string, { advice }: EndReason) =>
  advice === undefined ? said : `${said}. ${advice}`;

const tellLastWords = ({ lastWords = [] }: EndReason) =>
  lastWords.length > 0 && { errorOutput: lastWords };
