// Ends a process: gracefully at the first signal, immediately at the second, and with exit code 1 after an error.
import { constants } from 'node:os';
import { getStackFacts } from '../../errors/gateway-error.ts';
import { pause, systemClock } from '../../platform/clock.ts';
import { type Log, standardOutput } from '../../platform/log.ts';
import { hasWritesUnderWay, holdWritesBack } from '../../store/embedded/writes-under-way.ts';
import { isRunByNpx } from './invocation.ts';

/**
 * Ctrl+C reaches both npm and the service, and npm forwards its own: a second interrupt within this time (in milliseconds)
 * counts as the same one.
 */
const REPEATED_INTERRUPT_MS = 200;

/** SIGTERM and SIGINT shut down and exit 0, a second signal exits immediately, and an uncaught error exits 1. */
export function handleProcessEnd(log: Log, close: () => Promise<void>): void {
  let first: { readonly signal: string; readonly at: number } | undefined;

  async function onSignal(signal: 'SIGTERM' | 'SIGINT') {
    const at = systemClock.monotonic();
    if (first === undefined) {
      first = { signal, at };
      log.info('Shutting down; a second signal stops the process at once.', { signal });
      const code = await closeAll(log, close);
      if (code === 0) log.info('Stopped.');
      return endProcess(code, log.error);
    }
    const isRepeated =
      signal === 'SIGINT' && first.signal === signal && at - first.at <= REPEATED_INTERRUPT_MS;
    if (!isRepeated) await endProcess(128 + constants.signals[signal], log.error);
  }

  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  handleOutputAndErrors(log);
}

/** Keeps the process alive during the work: the gateway's timers are unreferenced, and nothing else may be pending. */
export function stayAlive<Result>(work: Promise<Result>): Promise<Result> {
  const staying = setInterval(() => {}, 1000);
  return work.finally(() => clearInterval(staying));
}

const LOOK_FOR_NPX_MS = 1000;

/** npx does not forward signals: once npx has exited, its child has to end, or it would hold the port unnoticed. */
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
 * Shuts down a worker of `WORKERS` at SIGTERM from the main process. The worker ignores further signals: the main process decides
 * whether a second one kills it.
 */
export function handleWorkerEnd(log: Log, close: () => Promise<void>): void {
  let isEnding = false;
  process.on('SIGTERM', async () => {
    if (isEnding) return;
    isEnding = true;
    await endProcess(await closeAll(log, close), log.error);
  });
  // Ctrl+C reaches every process of a terminal.
  process.on('SIGINT', () => {});
  handleOutputAndErrors(log);
}

/** Resolves to the exit code. */
async function closeAll(log: Log, close: () => Promise<void>) {
  try {
    await stayAlive(close());
    return 0;
  } catch (cause) {
    log.error('The shutdown failed.', { cause });
    return 1;
  }
}

/** A blocked log reader must not stop the gateway; lines still buffered at the end are flushed. */
function handleOutputAndErrors(log: Log) {
  // Node.js makes a pipe or socket non-blocking when its stream is first accessed.
  void process.stdout;
  process.on('exit', (code) => {
    standardOutput.flush();
    if (isKilled || !hasWritesUnderWay()) return;
    log.error(
      'The process exits during a write to store.mdb in DATA_DIR, which could never end, so it is killed. Perhaps a tool calls process.exit: let it throw instead.',
    );
    killProcess(code);
  });
  process.on('uncaughtException', (cause: unknown) => {
    log.error(
      'An error was not caught, so the process ends. The stack shows where it was thrown, perhaps in a tool.',
      { cause, ...getStackFacts(cause) },
    );
    void endProcess(1, log.error);
  });

  // A missing await in one tool must not end the service for all users.
  process.on('unhandledRejection', (cause: unknown) => {
    log.error(
      'A promise was rejected and nothing handled it. The stack shows where: perhaps a tool lacks an await.',
      { cause, ...getStackFacts(cause) },
    );
  });
}

// On exit, Node.js waits for its thread pool, however long a disk, a lock or a name server blocks them, and can do nothing in
// the meantime. So the process waits for the threads before it exits, with a limit.

/** Maximum milliseconds to wait for threads. */
const THREADS_MS = 1000;
const LOOK_MS = 10;

/**
 * Exits immediately unless a thread is at work; without `code`, with `process.exitCode`. `tell` gets a line about a thread that
 * does not end.
 */
export async function endProcess(
  code: number | undefined,
  tell: (line: string) => void,
): Promise<void> {
  holdWritesBack();
  const latest = systemClock.monotonic() + THREADS_MS;
  let work = findThreadWork();
  while (work !== undefined && systemClock.monotonic() < latest) {
    await stayAlive(pause(systemClock, LOOK_MS));
    work = findThreadWork();
  }
  if (work === undefined) return process.exit(code);
  tell(
    `This process is killed, as ${work} did not end within ${THREADS_MS / 1000} s. Look for the cause.`,
  );
  killProcess(code ?? 0);
}

let isKilled = false;

/** Ends the process without waiting for its threads. */
function killProcess(code: number) {
  isKilled = true;
  process.emit('exit', code);
  process.kill(process.pid, 'SIGKILL');
  // The first process of a container cannot kill itself with a signal.
  process.abort();
}

function findThreadWork() {
  if (hasWritesUnderWay()) return 'a write to store.mdb in DATA_DIR';
  const kinds = process.getActiveResourcesInfo();
  if (kinds.some((kind) => kind.startsWith('FSReq'))) return 'work on a file or folder';
  if (kinds.includes('GetAddrInfoReqWrap')) return 'a DNS query';
  return undefined;
}
