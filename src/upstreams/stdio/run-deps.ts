// What all processes of a server have in common.

import { PASSED_ON } from '../../config/file/expand.ts';
import type { Log } from '../../platform/log.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import type { ProgramUser, StdioUpstreamConfig } from '../config/upstream-config.ts';
import { createOutputLog } from './output-log.ts';
import type { RunDeps } from './server-run.ts';

export interface ProcessDeps
  extends Pick<RunDeps, 'answerMemory' | 'messagePace' | 'inheritedFiles' | 'clock' | 'maxBytes'> {
  readonly log: Log;
  /** The environment of the gateway: PATH, HOME, USER, LANG and TMPDIR of it reach the server. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Called with the number of its processes, at each change. */
  onProcessCount?(count: number): void;
}

export function createRunDeps(config: StdioUpstreamConfig, deps: ProcessDeps): RunDeps {
  const { name: server } = config;
  const { clock, log, environment, onProcessCount } = deps;
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
    ...deps,
    config,
    environment: createEnvironment(environment, config.env, config.runAs),
    output: createOutputLog(config, log, clock),
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
      onProcessCount?.(processes);
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
  ofGateway: Readonly<Record<string, string | undefined>>,
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
const describeUser = (
  ofGateway: Readonly<Record<string, string | undefined>>,
  { name, home }: ProgramUser,
): Readonly<Record<string, string | undefined>> => ({
  ...ofGateway,
  HOME: home ?? ofGateway.HOME,
  USER: name,
});
