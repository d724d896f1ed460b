// WORKERS: the main process, which serves nothing itself.
import { setTimeout as pause } from 'node:timers/promises';
import type { Config } from '../../../config/config.ts';
import { logListening, logStartWarnings } from '../../../config/start-log.ts';
import { computePauseMs } from '../../../platform/clock.ts';
import type { Log } from '../../../platform/log.ts';
import { StartError } from '../../command-line/errors.ts';
import { handleProcessEnd } from '../../command-line/process-end.ts';
import type { EnvFile } from '../../command-line/read-input.ts';
import {
  type ConfigFile,
  describeProtection,
  onHangUp,
  openServiceLog,
  type Protection,
} from '../../setup/config-file.ts';
import { createMetricsMerger } from './merge-metrics.ts';
import { startWorker, type WorkerEnd, type WorkerProcess } from './worker-process.ts';

/**
 * Serves with several processes, which end with this one. Each of them reads and follows the configuration file itself.
 *
 * @throws StartError when a worker was killed before it served.
 */
export async function superviseWorkers(
  config: Config,
  workers: number,
  envFile: EnvFile | undefined,
  configFile: ConfigFile | undefined,
): Promise<void> {
  const log = openServiceLog(config, envFile, configFile);
  logStartWarnings(config, log);
  const { shutdownDelayMs } = config.server;
  const atStart = configFile && describeProtection(configFile.setup);
  const pool = createWorkerPool(log, atStart, 2 * shutdownDelayMs + END_MS);
  handleProcessEnd(log, pool.close);
  if (configFile !== undefined) onHangUp(pool.hangUp, pool.close);
  await pool.start(workers);
  logListening(config, config.server.port, log, { workers });
}

/** A worker that has served for less time when it dies, the second time in a row, is replaced after a pause. */
const STEADY_MS = 10_000;
const BACK_OFF = { firstMs: 1000, longestMs: 30_000 };

/** Milliseconds that a worker has to end beside its delay. It ends itself before, unless its own thread is blocked. */
const END_MS = 16_000;

/** `atStart`: what the configuration file was then. `endMs`: milliseconds that a worker has to shut down. */
function createWorkerPool(log: Log, atStart: Protection | undefined, endMs: number) {
  const running = new Set<WorkerProcess>();
  const shareMetrics = createMetricsMerger(running);
  let isEnding = false;
  let served = atStart;

  function add(): WorkerProcess {
    const worker = startWorker(served);
    running.add(worker);
    shareMetrics(worker);
    worker.onLoad((loaded) => {
      served = loaded;
    });
    void worker.ended.then(() => running.delete(worker));
    return worker;
  }

  /**
   * Resolves when all serve. The first starts alone: what keeps it from starting would keep all, and is printed once. Then
   * this process ends as well.
   *
   * @throws StartError when one was killed before it served.
   */
  async function start(count: number): Promise<void> {
    await addFirst();
    await Promise.all(Array.from({ length: count - 1 }, addFirst));
  }

  async function addFirst(): Promise<void> {
    const worker = add();
    const end = await Promise.race([worker.serving, worker.ended]);
    // Asked to end meanwhile: `close` waits for it, and the process ends.
    if (isEnding) return new Promise(() => {});
    if (end !== undefined) failStart(end);
    void replaceWhenEnded(worker);
  }

  async function replaceWhenEnded(first: WorkerProcess): Promise<void> {
    let quickDeaths = 0;
    for (let worker = first; ; worker = addReplacement()) {
      const end = await worker.ended;
      if (isEnding) return;
      const isQuick = worker.getServedMs() < STEADY_MS;
      quickDeaths = isQuick ? quickDeaths + 1 : 0;
      const delayMs = choosePause(quickDeaths);
      logEnd(log, worker, end, delayMs);
      await pause(delayMs);
      if (isEnding) return;
    }
  }

  function addReplacement(): WorkerProcess {
    const worker = add();
    const { id, pid, serving } = worker;
    void serving.then(() => log.info('A new worker serves.', { worker: id, pid }));
    return worker;
  }

  /** Shuts all down and waits for them. @throws Error when one did not end cleanly. */
  async function close(): Promise<void> {
    isEnding = true;
    const limit = setTimeout(killHanging, endMs);
    const ends = await Promise.all(Array.from(running, (worker) => worker.shutDown()));
    clearTimeout(limit);
    if (ends.includes('failed')) throw new Error('a worker did not end cleanly');
  }

  function killHanging(): void {
    for (const worker of running) {
      log.error('A worker does not end, and is killed: something blocks it, such as its disk.', {
        worker: worker.id,
        pid: worker.pid,
      });
      worker.kill();
    }
  }

  // At a second signal, or after an error here. A worker that hangs would not notice it.
  process.on('exit', () => {
    for (const worker of running) worker.kill();
  });

  /** SIGHUP for those that serve: they load their configuration file anew. */
  function hangUp(): void {
    for (const worker of running) worker.hangUp();
  }

  return { start, close, hangUp };
}

/** Milliseconds; the first death may have been bad luck. */
const choosePause = (quickDeaths: number): number =>
  quickDeaths < 2 ? 0 : computePauseMs(BACK_OFF, quickDeaths - 1);

function failStart({ signal }: WorkerEnd): never {
  if (signal === null) process.exit(1);
  throw new StartError([`A worker was killed by ${signal} while it started. ${LOOK_FOR_KILLERS}`]);
}

function logEnd(log: Log, { id, pid }: WorkerProcess, end: WorkerEnd, delayMs: number): void {
  const facts = { worker: id, pid, ...end, replacedInMs: delayMs };
  // Somebody sent it SIGTERM, and it has finished what it had.
  if (end.code === 0)
    log.info('A worker shut down, as it was asked to. A new one replaces it.', facts);
  else {
    const [how, where] =
      end.signal === null
        ? ['died', 'Its last lines in the log say why.']
        : ['was killed', LOOK_FOR_KILLERS];
    const message = `A worker ${how}, and its open requests were lost. A new one replaces it. ${where}`;
    log.error(message, facts);
  }
}

const LOOK_FOR_KILLERS = 'Look for what kills processes on this machine, such as a memory limit.';
