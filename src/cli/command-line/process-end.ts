// The end of a process: cleanly at the first signal, at once at the second, with exit code 1 after an error.
import { constants } from 'node:os';
import { getStackFacts } from '../../errors/gateway-error.ts';
import { pause, systemClock } from '../../platform/clock.ts';
import { type Log, standardOutput } from '../../platform/log.ts';
import { hasWritesUnderWay, holdWritesBack } from '../../store/embedded/writes-under-way.ts';
import { isRunByNpx } from './invocation.ts';

/**
 * Ctrl+C reaches npm and the service alike, and npm passes its own on: an interrupt that follows
 * another this soon (milliseconds) is the same one.
 */
const REPEATED_INTERRUPT_MS = 200;

/** SIGTERM and SIGINT close and exit 0, a second one exits at once; an error nobody caught exits 1. */
export function handleProcessEnd(log: Log, close: () => Promise<void>): void {
  let first: { readonly signal: string; readonly at: number } | undefined;

  async function onSignal(signal: 'SIGTERM' | 'SIGINT'): Promise<void> {
    const at = systemClock.monotonic();
    if (first === undefined) {
      first = { signal, at };
      log.info('Shutting down; a second signal stops the process at once.', { signal });
      const code = await closeAll(log, close);
      if (code === 0) log.info('Stopped.');
      return end(code, log);
    }
    const isRepeated =
      signal === 'SIGINT' && first.signal === signal && at - first.at <= REPEATED_INTERRUPT_MS;
    if (!isRepeated) await end(128 + constants.signals[signal], log);
  }

  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  handleOutputAndErrors(log);
}

/** Meanwhile this process goes on: the timers of the gateway's parts keep nothing alive, and there may be nothing else. */
export function stayAlive<Result>(work: Promise<Result>): Promise<Result> {
  const staying = setInterval(() => {}, 1000);
  return work.finally(() => clearInterval(staying));
}

const LOOK_FOR_NPX_MS = 1000;

/** npx hands no signal on: once it is gone, what it ran has to end, or it would keep the port unnoticed. */
export function endWithNpx(): void {
  if (!isRunByNpx(process.env)) return;
  const npx = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === npx) return;
    clearInterval(timer);
    process.kill(process.pid, 'SIGTERM');
  }, LOOK_FOR_NPX_MS).unref();
}

/**
 * A worker of `WORKERS` shuts down when the main process says so, by SIGTERM, and then ends itself.
 * Whether a second signal ends it at once is for the main process to say, which then ends the worker.
 */
export function handleWorkerEnd(log: Log, close: () => Promise<void>): void {
  let isEnding = false;
  process.on('SIGTERM', async () => {
    if (isEnding) return;
    isEnding = true;
    await end(await closeAll(log, close), log);
  });
  // Ctrl+C reaches all processes of a terminal.
  process.on('SIGINT', () => {});
  handleOutputAndErrors(log);
}

/** Resolves to the exit code. */
async function closeAll(log: Log, close: () => Promise<void>): Promise<number> {
  try {
    await stayAlive(close());
    return 0;
  } catch (cause) {
    log.error('The shutdown failed.', { cause });
    return 1;
  }
}

/** A log that nobody reads must not stop the gateway; what waits for its reader at the end is not lost. */
function handleOutputAndErrors(log: Log) {
  // Node.js makes a pipe or a socket one that does not block when its stream is first asked for.
  void process.stdout;
  process.on('exit', () => standardOutput.flush());
  process.on('uncaughtException', (cause: unknown) => {
    log.error(
      'An error was not caught, so the process ends. The stack shows where it was thrown, perhaps in a tool.',
      { cause, ...getStackFacts(cause) },
    );
    void end(1, log);
  });

  // A forgotten await in one tool must not end the service for everybody.
  process.on('unhandledRejection', (cause: unknown) => {
    log.error(
      'A promise was rejected and nothing handled it. The stack shows where: perhaps a tool lacks an await.',
      { cause, ...getStackFacts(cause) },
    );
  });
}

// The exit of a process once there is nothing left to do in it. Node.js then waits for the threads that work for it, however
// long a disk, a lock or a name server holds them up, and can do nothing meanwhile: so that is waited for before, and not for ever.

/** Milliseconds for what threads are at. */
const THREADS_MS = 1000;
const LOOK_MS = 10;

/** At once, unless a thread is at work. */
async function end(code: number, log: Log): Promise<void> {
  holdWritesBack();
  const latest = systemClock.monotonic() + THREADS_MS;
  let work = findThreadWork();
  while (work !== undefined && systemClock.monotonic() < latest) {
    await pause(systemClock, LOOK_MS);
    work = findThreadWork();
  }
  if (work === undefined) return process.exit(code);
  log.error(
    `This process is killed, as ${work} did not end within ${THREADS_MS / 1000} s. Look for the cause.`,
  );
  process.emit('exit', code);
  process.kill(process.pid, 'SIGKILL');
  // The first process of a container cannot kill itself by a signal.
  process.abort();
}

function findThreadWork(): string | undefined {
  if (hasWritesUnderWay()) return 'a write to store.mdb in DATA_DIR';
  const kinds = process.getActiveResourcesInfo();
  if (kinds.some((kind) => kind.startsWith('FSReq'))) return 'work on a file or folder';
  if (kinds.includes('GetAddrInfoReqWrap')) return 'a DNS query';
  return undefined;
}
