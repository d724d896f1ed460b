// §18.3: the program of a server: what all of its processes have in common.

import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { devNull } from 'node:os';
import { PASSED_ON } from '../../config/file/expand.ts';
import type { Env } from '../../config/setting.ts';
import type { UpstreamRuntime } from '../../mcp/upstream/upstream.ts';
import type { Clock } from '../../platform/clock.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import type { ProgramUser } from '../config/common-members.ts';
import type { ProcessShare } from '../transport/process-share.ts';
import { createOutputLog, type OutputLog } from './output-log.ts';
import type { StdioUpstreamConfig } from './stdio-config.ts';

/** Sent first: servers of the session era may ignore `server/discover`, or even end by it. */
export type FirstRequest = 'server/discover' | 'initialize';

export interface Program {
  readonly config: StdioUpstreamConfig;
  readonly clock: Clock;
  /** `MAX_UPSTREAM_BYTES`: longest line of its standard output, and most that may wait to be read by it. */
  readonly maxBytes: number;
  readonly share: ProcessShare;
  /** All that a process finds in its environment. */
  readonly environment: Readonly<Record<string, string>>;
  /** Descriptors that the gateway itself inherited, as `findInheritedFiles` found them. */
  readonly inheritedFiles: readonly number[];
  readonly output: OutputLog;
  /** Sent first to a process, as the former ones taught. */
  first: FirstRequest;
  onStrayAnswer(): void;
  /** A process that all share wanted to ask a client. */
  onUnattributed(method: string): void;
  /** A process was started (1), or has ended (-1). */
  countProcess(change: 1 | -1): void;
}

/** The process that the programs of servers are started from. */
export interface ProgramHost {
  /** The environment of the gateway: PATH, HOME, USER, LANG and TMPDIR of it reach the server. */
  readonly environment: Env;
  readonly inheritedFiles: readonly number[];
  /** Called with the number of a server's processes, at each change. */
  onProcessCount?(server: string, count: number): void;
}

export function openProgram(
  { config: settings, clock, log }: Pick<UpstreamRuntime, 'config' | 'clock' | 'log'>,
  config: StdioUpstreamConfig,
  share: ProcessShare,
  host: ProgramHost,
): Program {
  const { name: server } = config;
  let processes = 0;
  let strayAnswers = 0;
  let isUnattributedNoted = false;
  const warnOfStrayAnswers = createWarnThrottle(clock, () =>
    log.warn(
      `The server ${server} sent answers to no request, or second ones. They were dropped.`,
      { server, count: strayAnswers },
    ),
  );
  return {
    config,
    clock,
    maxBytes: settings.upstreams.maxBytes,
    share,
    environment: createEnvironment(host.environment, config.env, config.runAs),
    inheritedFiles: host.inheritedFiles,
    output: createOutputLog(config, log, clock),
    first: 'server/discover',
    onStrayAnswer() {
      strayAnswers += 1;
      warnOfStrayAnswers();
    },
    onUnattributed(method) {
      if (isUnattributedNoted) return;
      isUnattributedNoted = true;
      log.warn(describeUnattributed(config, method), { server });
    },
    countProcess(change) {
      processes += change;
      host.onProcessCount?.(server, processes);
    },
  };
}

/** The server itself may not say which of its tools are missing for that reason. */
function describeUnattributed({ name, roots }: StdioUpstreamConfig, method: string): string {
  const needsRoots = method === 'roots/list' && !roots;
  return `The MCP server ${name} wanted to ask a client (${method}) and was refused: with "isolation": "shared" all users have one process, which cannot say whom it asks. If it may ask, set "isolation": "user"${needsRoots ? ' and "roots": true' : ''} for it in the configuration file. Tools that it lists only for clients that it can ask appear then, too.`;
}

// §18.3: what a server finds in its environment.

function createEnvironment(
  ofGateway: Env,
  own: Readonly<Record<string, string>>,
  runAs: ProgramUser | undefined,
): Readonly<Record<string, string>> {
  const passedOn = PASSED_ON.flatMap((name) => {
    const value = (runAs === undefined ? ofGateway : describeUser(ofGateway, runAs))[name];
    return value === undefined ? [] : [[name, value]];
  });
  return { ...Object.fromEntries(passedOn), ...own };
}

/** Without an entry in the system it has no home of its own: then the gateway's is as good as any. */
const describeUser = (ofGateway: Env, { name, home }: ProgramUser): Env => ({
  ...ofGateway,
  HOME: home ?? ofGateway.HOME,
  USER: name,
});

// Open files of the gateway that would stay open in every program, whichever user it runs as. Node.js opens none so, but LMDB
// does with the file of the embedded store, which then could be read and written; who started the gateway may have, too.

const DESCRIPTORS = '/proc/self/fdinfo';
/** One of the flags that open(2) knows. */
const CLOSES_AT_EXEC = 0o2000000;

/** Their descriptors, on Linux. Looked for once, when the store is open: later there may be thousands of connections. */
export function findInheritedFiles(): readonly number[] {
  try {
    return readdirSync(DESCRIPTORS)
      .map(Number)
      .filter((descriptor) => descriptor > 2 && isInherited(descriptor));
  } catch {
    return [];
  }
}

function isInherited(descriptor: number): boolean {
  try {
    const info = readFileSync(`${DESCRIPTORS}/${descriptor}`, 'utf8');
    const [, flags] = /^flags:\s*([0-7]+)$/m.exec(info) ?? [];
    return flags !== undefined && (Number.parseInt(flags, 8) & CLOSES_AT_EXEC) === 0;
  } catch {
    // The folder itself was open while it was read.
    return false;
  }
}

/** Runs `start` with three pipes for a program, and nothing in place of each of these files. */
export function startWithout<Started>(
  inherited: readonly number[],
  start: (stdio: ['pipe', 'pipe', 'pipe']) => Started,
): Started {
  const nothing = openSync(devNull, 'r');
  const rest = Array.from({ length: Math.max(2, ...inherited) - 2 }, (_, index) =>
    inherited.includes(index + 3) ? nothing : ('ignore' as const),
  );
  const stdio: ['pipe', 'pipe', 'pipe'] = ['pipe', 'pipe', 'pipe'];
  // Node.js takes more of them than its type has.
  Object.assign(stdio, [...stdio, ...rest]);
  try {
    return start(stdio);
  } finally {
    closeSync(nothing);
  }
}
