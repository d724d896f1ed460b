// A command of `postern` within the process of its test, for what is about the command. Where the process is the subject
// (how it starts and ends, pipes, signals, what Node.js reads at its start), `runPostern` of process.ts starts one.
import { Console } from 'node:console';
import { Readable, Writable } from 'node:stream';
import type { InvokedProcess } from '../../../src/cli/command-line/invocation.ts';
import { runPostern } from '../../../src/cli/run-postern.ts';
import { BARE, type Env, emptyFolder, type LaunchOptions, MAIN } from './process.ts';

export interface FinishedCommand {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export type RunInsideOptions = Pick<LaunchOptions, 'args' | 'cwd' | 'input'>;

/** One after the other: they share the current folder. */
let former: Promise<unknown> = Promise.resolve();

/** As `runPostern` of process.ts, which starts a process. */
export function runInside(env: Env, how: RunInsideOptions = {}): Promise<FinishedCommand> {
  const run = former.then(() => runNow(env, how));
  former = run.catch(() => {});
  return run;
}

async function runNow(
  env: Env,
  { args = ['start'], cwd = emptyFolder(), input = '' }: RunInsideOptions,
): Promise<FinishedCommand> {
  const [stdout, stderr] = [createCollector(), createCollector()];
  let code = 0;
  const invoked: InvokedProcess = {
    argv: [process.execPath, MAIN, ...args],
    env: { ...BARE, ...env },
    stdin: Readable.from([input]),
    stdout: stdout.stream,
    stderr: stderr.stream,
    set exitCode(said: number) {
      code = said;
    },
    exit(said = code) {
      code = said;
    },
  };
  const folder = process.cwd();
  process.chdir(cwd);
  try {
    await runPostern({
      process: invoked,
      console: new Console({ stdout: stdout.stream, stderr: stderr.stream }),
    });
  } finally {
    process.chdir(folder);
  }
  return { code, stdout: stdout.readText(), stderr: stderr.readText() };
}

function createCollector() {
  const pieces: Buffer[] = [];
  const stream = new Writable({
    write(piece, _encoding, done) {
      pieces.push(piece);
      done();
    },
  });
  return { stream, readText: () => Buffer.concat(pieces).toString() };
}
