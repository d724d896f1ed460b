// §18.3: one process of a server: starts it, connects its streams, and ends it with all of its child processes.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import nodeProcess from 'node:process';
import type { Readable } from 'node:stream';
import type { UpstreamError, UpstreamFailure } from '../../mcp/upstream/upstream.ts';
import { type Clock, pause } from '../../platform/clock.ts';
import { getErrorCode } from '../../platform/error-code.ts';
import { releaseChunks } from '../../platform/pieces.ts';
import { hideSecretArguments } from '../../platform/secret-texts.ts';
import type { ProgramUser } from '../config/common-members.ts';
import { type MessagePace, type PacedSource, PacedStream } from '../transport/message-pace.ts';
import type { CountedAnswer } from '../transport/process-share.ts';
import { createLineSplitter, type Program, readErrorOutput, startWithout } from './program.ts';
import type { StdioUpstreamConfig } from './stdio-config.ts';

interface Child {
  /** False if the command could not be started. */
  readonly isStarted: boolean;
  /** Writes a line. Returns false, and writes nothing, while too much is waiting to be read. */
  write(line: string): boolean;
  /** Lets the process end on its own, and then ends it by signals. Resolves when the process and its process group have ended. */
  end(): Promise<void>;
  /** Kills the process; `reason` is reported as the reason of its end. */
  kill(reason: EndReason): void;
}

interface ChildHandlers {
  /** Called for each line of standard output, in pieces; returns the number of messages that it counts as. */
  onLine(line: readonly Buffer[]): number;
  /** Called for each line of stderr, or the beginning of a long one. */
  onErrorLine(line: Buffer): void;
  /** Counts the memory of messages; undefined if that memory is bounded in another way. */
  countAnswer(onDrop: (error: UpstreamError) => void): CountedAnswer | undefined;
  /** Called once when the process has ended or could not be started; no other call follows. */
  onEnd(reason: EndReason): void;
}

/** Milliseconds from closing the process's input to SIGTERM: servers should end on their own in this time. */
const INPUT_ENDED_MS = 500;
/** Milliseconds from SIGTERM to SIGKILL. */
const TERM_MS = 2000;
/** Milliseconds after a process's end in which remaining output may arrive: a leftover child process may hold the streams open. */
const LAST_WORDS_MS = 250;

/** `source` identifies the source of the standard output. */
export function startChild(program: Program, handlers: ChildHandlers, source: PacedSource): Child {
  const { config, environment, inheritedFiles } = program;
  let failure: Promise<unknown>;
  try {
    const { command, args } = toCommand(config);
    const child = startWithout(inheritedFiles, (stdio) =>
      // A separate process group, so that signals also reach its child processes.
      spawn(command, args, { cwd: config.cwd, env: { ...environment }, detached: true, stdio }),
    );
    const { pid } = child;
    if (pid !== undefined) return watchChild(program, { child, pid }, handlers, source);
    failure = new Promise((resolve) => child.once('error', resolve));
  } catch (error) {
    failure = Promise.resolve(error);
  }
  const reported = failure.then((error) => handlers.onEnd(explainStart(config, error)));
  return { isStarted: false, write: () => true, kill: () => {}, end: () => reported };
}

function watchChild(
  { config, clock, maxBytes, share }: Program,
  { child, pid }: { readonly child: ChildProcessWithoutNullStreams; readonly pid: number },
  handlers: ChildHandlers,
  source: PacedSource,
): Child {
  let killedFor: EndReason | undefined;
  let hasExited = false;

  /** Once the process has ended, its ID may belong to another process. */
  function signal(name: NodeJS.Signals) {
    if (!hasExited) signalGroup(pid, name);
  }

  function kill(reason: EndReason) {
    killedFor ??= reason;
    signal('SIGKILL');
  }

  async function waitForEnd() {
    const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
    const exit = await new Promise<ChildExit>((resolve) => {
      child.once('exit', (code, signalled) => resolve({ code, signal: signalled }));
    });
    hasExited = true;
    const groupEnded = endGroup(pid, clock);
    await Promise.race([closed, pause(clock, LAST_WORDS_MS)]);
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
    messages.flush();
    messages.stopMessages();
    counted?.end();
    handlers.onEnd(killedFor ?? explainExit(config, exit));
    await groupEnded;
  }

  // From now on, the group ends no later than this process, unless this process ends by SIGKILL.
  if (groups.size === 0) nodeProcess.on('exit', killAll);
  groups.add(pid);
  const ended = waitForEnd();
  const counted = handlers.countAnswer(({ message: what, failure }) => kill({ what, failure }));
  const messages = new PacedLines(share.messagePace, source, child.stdout, {
    onLine: (line) => (killedFor === undefined ? handlers.onLine(line) : 0),
    onTooFast: () =>
      kill({
        what: 'it wrote more messages than the gateway takes, for a minute',
        failure: 'overloaded',
      }),
  });
  const output = createLineSplitter(maxBytes, {
    onLine: (line, length) => messages.push(line, length),
    onTooLong: () =>
      kill({
        what: `it wrote a message of more than ${maxBytes} bytes`,
        failure: 'invalid',
        advice: 'Raise MAX_UPSTREAM_BYTES if its answers are meant to be so large.',
      }),
  });
  child.stdout.on('data', (piece: Buffer) => {
    output.add(piece);
    messages.checkPace(piece.length);
    counted?.note(piece.length, output.heldBytes + messages.waitingBytes);
  });
  readErrorOutput(child.stderr, clock, handlers.onErrorLine);
  // A stream's error becomes apparent when the child ends.
  for (const stream of [child, child.stdin, child.stdout, child.stderr]) {
    stream.on('error', () => {});
  }

  return {
    isStarted: true,
    write(line) {
      const { stdin } = child;
      // Counts only what the program has not read yet, so corked lines are written first.
      if (stdin.writableLength > maxBytes) stdin.uncork();
      if (stdin.writableLength > maxBytes) return false;
      if (!stdin.writable) return true;
      // All lines of one turn of the event loop are written together.
      if (stdin.writableCorked === 0) {
        stdin.cork();
        setImmediate(() => stdin.uncork());
      }
      stdin.write(line);
      return true;
    },
    kill,
    async end() {
      child.stdin.end();
      const cancelTerm = clock.after(INPUT_ENDED_MS, () => signal('SIGTERM'));
      const cancelKill = clock.after(INPUT_ENDED_MS + TERM_MS, () =>
        kill({ what: 'it was ended' }),
      );
      await ended;
      cancelTerm();
      cancelKill();
    },
  };
}

/** The lines of standard output. */
class PacedLines extends PacedStream<readonly Buffer[]> {
  private readonly source: PacedSource;
  private readonly output: Readable;
  private readonly handlers: {
    /** Returns the number of messages that the line counts as. */
    onLine(line: readonly Buffer[]): number;
    onTooFast(): void;
  };

  constructor(
    pace: MessagePace,
    source: PacedSource,
    output: Readable,
    handlers: PacedLines['handlers'],
  ) {
    super(pace);
    this.source = source;
    this.output = output;
    this.handlers = handlers;
  }

  protected findSource(): PacedSource {
    return this.source;
  }

  protected take(line: readonly Buffer[]): number {
    return this.handlers.onLine(line);
  }

  protected override copy(line: readonly Buffer[]): readonly Buffer[] {
    return releaseChunks(line);
  }

  protected pauseSource(): void {
    this.output.pause();
  }

  protected resumeSource(): void {
    this.output.resume();
  }

  protected giveUp(): void {
    this.handlers.onTooFast();
  }

  protected finish(): void {}
}

// §18.3: a server may start child processes, which must end with it.

/** The leaders of process groups that may still contain a process. */
const groups = new Set<number>();

/** Interval between checks for remaining processes of a group. */
const POLL_MS = 50;

/** Sends the signal to all processes of the group; 0 only tests for them. Returns false if no process is left. */
function signalGroup(leader: number, signal: NodeJS.Signals | 0) {
  try {
    return nodeProcess.kill(-leader, signal);
  } catch {
    return false;
  }
}

/** Ends the processes that a leader left behind: with SIGTERM, and then with SIGKILL. */
async function endGroup(leader: number, clock: Clock) {
  const killAt = clock.monotonic() + TERM_MS;
  let isAlive = signalGroup(leader, 'SIGTERM');
  while (isAlive && clock.monotonic() < killAt) {
    await pause(clock, POLL_MS);
    isAlive = signalGroup(leader, 0);
  }
  if (isAlive) signalGroup(leader, 'SIGKILL');
  if (groups.delete(leader) && groups.size === 0) nodeProcess.off('exit', killAll);
}

function killAll() {
  for (const leader of groups) signalGroup(leader, 'SIGKILL');
}

// §18.4: the reason why a server's process is not available, for callers and for the operator.

export interface EndReason {
  /** Continues a sentence about the server: `its process ended with exit code 1`. Clients may see it. */
  readonly what: string;
  /** The failure of in-flight requests; `unavailable` by default. */
  readonly failure?: UpstreamFailure;
  /** Advice for the operator, as a sentence that may contain paths. */
  readonly advice?: string;
  /** The last lines of its stderr, only for the operator. */
  readonly lastWords?: readonly string[];
}

interface ChildExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const explainExit = (
  { command, runAs }: StdioUpstreamConfig,
  { code, signal }: ChildExit,
): EndReason => ({
  what:
    signal === null
      ? `its process ended with exit code ${code}`
      : `its process was ended by ${signal}`,
  ...(runAs !== undefined &&
    (code === NOT_EXECUTABLE || code === NOT_STARTED) && {
      advice: `If a line of errorOutput begins with setpriv, it says why ${hideSecretArguments(command)} could not be started as the user ${runAs.name ?? runAs.uid}.`,
    }),
});

/** Exit codes of setpriv if it cannot execute a command, or cannot find it or change the user. */
const [NOT_EXECUTABLE, NOT_STARTED] = [126, 127];

function explainStart(config: StdioUpstreamConfig, error: unknown): EndReason {
  const { cwd } = config;
  const command = hideSecretArguments(toCommand(config).command);
  const what = 'its command could not be started';
  const code = getErrorCode(error);
  if (cwd !== undefined && !existsSync(cwd))
    return { what, advice: `The folder of "cwd", ${cwd}, does not exist.` };
  const explain = ADVICE[code ?? ''];
  return { what, advice: explain?.(command) ?? `${command}: ${code ?? String(error)}` };
}

const ADVICE: Readonly<Record<string, (command: string) => string>> = {
  ENOENT: (command) => `The command ${command} was not found. ${adviseOnMissing(command)}`,
  EACCES: (command) =>
    `The command ${command} may not be executed. Make the file executable for the user of the gateway.`,
  EAGAIN: () =>
    'There are too many processes. Raise the limit of processes, or lower maxProcesses.',
  EMFILE: () => 'Too many files are open. Raise the limit of open files (ulimit -n).',
};

/** The command is not run through a shell. */
function adviseOnMissing(command: string): string {
  if (/^~/.test(command)) return `Write \${HOME} instead of ~: no shell expands it.`;
  if (/\s/.test(command))
    return '"command" is the program alone, and no shell reads it: its arguments belong in "args", a folder in "cwd".';
  if (command.includes('/'))
    return 'Write its full path: a relative one begins at "cwd", or in the folder where the gateway was started.';
  return 'Install it, add its folder to the PATH of the gateway, or write its whole path in "command".';
}

// §18.3: runs a program as another user, with setpriv of util-linux. The uid and gid options of Node's spawn are not sufficient:
// the ambient capabilities of a non-root gateway would be inherited by the program, which could then become any user.
// https://man7.org/linux/man-pages/man1/setpriv.1.html

/**
 * The paths of setpriv on various systems. PATH is not used to find it: the program's PATH may contain a folder that the program
 * can write to, and until setpriv has changed the user, it has the gateway's rights.
 */
const SETPRIV_PATHS = [
  '/usr/bin/setpriv',
  '/bin/setpriv',
  '/usr/sbin/setpriv',
  '/sbin/setpriv',
  '/run/current-system/sw/bin/setpriv',
] as const;

interface Command {
  readonly command: string;
  readonly args: readonly string[];
}

/** The command that is started in place of the server's. */
const toCommand = (config: StdioUpstreamConfig) =>
  config.runAs === undefined ? config : runCommandAs(config.runAs, config);

export const runCommandAs = ({ uid, gid }: ProgramUser, { command, args }: Command): Command => ({
  command: SETPRIV_PATHS.find((path) => existsSync(path)) ?? SETPRIV_PATHS[0],
  args: [
    // `+1000` is always a number. Without the sign, setpriv would first look up a user named `1000`.
    `--reuid=+${uid}`,
    `--regid=+${gid}`,
    '--clear-groups',
    '--inh-caps=-all',
    '--ambient-caps=-all',
    // Prevents sudo, or a file with capabilities, from granting rights, whatever is in the bounding set. Clearing that set
    // requires a capability that the gateway does not need otherwise.
    '--no-new-privs',
    '--',
    command,
    ...args,
  ],
});
