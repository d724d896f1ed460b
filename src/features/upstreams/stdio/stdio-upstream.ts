// §18.3: an MCP server that is a process on this machine.
import type { Clock } from '../../../core/clock.ts';
import type { StdioUpstreamConfig } from '../../../core/gateway-file/gateway-file.ts';
import type { Log } from '../../../core/log.ts';
import { createWarnThrottle } from '../../../core/log-throttle.ts';
import { toSessionParams, toStatelessParams } from '../messages/envelope.ts';
import {
  GATEWAY_CALLER,
  type Upstream,
  type UpstreamCaller,
  type UpstreamDescription,
} from '../upstream.ts';
import { createOutputLog } from './output-log.ts';
import { createSupervisedServer, type ServerDeps } from './supervised-server.ts';

export interface StdioUpstreamDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** Bytes of one message of the server (`MAX_UPSTREAM_BYTES`). */
  readonly maxBytes: number;
  /** The environment of the gateway: PATH, HOME, USER, LANG and TMPDIR of it reach the server. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Called with the number of its processes, at each change. */
  onProcessCount?(count: number): void;
}

const PASSED_ON = ['PATH', 'HOME', 'USER', 'LANG', 'TMPDIR'];

export function createStdioUpstream(
  config: StdioUpstreamConfig,
  { clock, log, maxBytes, environment, onProcessCount }: StdioUpstreamDeps,
): Upstream<StdioUpstreamConfig> {
  const { name: server } = config;
  const listeners = new Set<(isUp: boolean, reason: string) => void>();
  let description: UpstreamDescription | undefined;
  let isUp: boolean | undefined;
  let processes = 0;
  let strayAnswers = 0;

  const warnOfStrayAnswers = createWarnThrottle(clock, () => {
    log.warn(
      `The server ${server} answered requests that nobody waits for, or twice. These answers were dropped.`,
      { server, count: strayAnswers },
    );
  });

  function setUp(value: boolean, reason: string): void {
    if (isUp === value) return;
    isUp = value;
    for (const listener of listeners) listener(value, reason);
  }

  const deps: ServerDeps = {
    config,
    clock,
    maxBytes,
    environment: createEnvironment(environment, config),
    output: createOutputLog(config, log, clock),
    memory: { first: 'server/discover' },
    onStrayAnswer() {
      strayAnswers += 1;
      warnOfStrayAnswers();
    },
    countProcess(change) {
      processes += change;
      onProcessCount?.(processes);
    },
  };

  const shared = createSupervisedServer(deps, {
    isKept: true,
    capabilities: GATEWAY_CALLER.capabilities,
    onUp(running) {
      description = running.description;
      setUp(true, 'it answers');
    },
    onDown({ what, advice = '' }, retryMs) {
      setUp(false, `${what}; it is started again in ${retryMs / 1000} s. ${advice}`.trim());
    },
    onNotification() {},
  });

  return {
    config,
    get isUp() {
      return isUp;
    },
    async describe() {
      return description ?? (await shared.getRunning()).description;
    },
    async request(caller, request) {
      const { connection, description: running } = await shared.getRunning(request.signal);
      return connection.call(caller, request, (token) =>
        running.era === 'session'
          ? toSessionParams(request, token)
          : toStatelessParams(request, token, withoutRoots(caller, config)),
      );
    },
    listen: () => () => {},
    onStateChange: (listener) => void listeners.add(listener),
    endSession: async () => {},
    close: (graceMs) => shared.close(graceMs),
  };
}

/** Roots would replace what the server may read. */
const withoutRoots = ({ capabilities }: UpstreamCaller, { roots }: StdioUpstreamConfig) => ({
  ...capabilities,
  roots: capabilities.roots && roots,
});

const createEnvironment = (
  environment: Readonly<Record<string, string | undefined>>,
  { env }: StdioUpstreamConfig,
): Readonly<Record<string, string>> => {
  const passedOn = PASSED_ON.flatMap((name) => {
    const value = environment[name];
    return value === undefined ? [] : [[name, value]];
  });
  return { ...Object.fromEntries(passedOn), ...env };
};
