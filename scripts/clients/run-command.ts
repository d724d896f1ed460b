import { type ChildProcess, spawn } from 'node:child_process';

export interface CommandOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly limitMs: number;
  readonly signal: AbortSignal;
  /** Called when the command prints READY; what it waits for then is a line. */
  readonly onReady?: () => Promise<void>;
}

export interface CommandEnd {
  readonly code: number | null;
  readonly output: string;
  readonly wasCutOff: boolean;
}

const MAX_OUTPUT = 100_000;

/** Runs a command in its own process group, and ends the group at the limit at the latest. */
export async function runCommand(
  [command = '', ...args]: readonly string[],
  { cwd, env, limitMs, signal, onReady }: CommandOptions,
): Promise<CommandEnd> {
  const child = spawn(command, args, { cwd, env, detached: true });
  let output = '';
  let wasReady = false;
  const take = (chunk: string) => {
    output = (output + chunk).slice(-MAX_OUTPUT);
    if (onReady === undefined || wasReady || !/^READY$/m.test(output)) return;
    wasReady = true;
    void onReady().then(() => child.stdin.write('go on\n'));
  };
  child.stdout.setEncoding('utf8').on('data', take);
  child.stderr.setEncoding('utf8').on('data', take);
  child.stdin.on('error', () => {});
  // A client that asks is not answered, and does not have to wait for the limit.
  if (onReady === undefined) child.stdin.end();
  let wasCutOff = false;
  const cutOff = () => {
    wasCutOff = true;
    killGroup(child);
  };
  const timer = setTimeout(cutOff, limitMs);
  signal.addEventListener('abort', cutOff);
  if (signal.aborted) cutOff();
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', resolve);
    });
    return { code, output, wasCutOff };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', cutOff);
    // Helpers that a client left behind.
    killGroup(child);
  }
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // Nobody is left.
  }
}
