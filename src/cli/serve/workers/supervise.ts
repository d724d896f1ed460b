// Main process for WORKERS: starts and replaces workers, and merges their metrics. It serves nothing itself.

import { setTimeout as pause } from 'node:timers/promises';
import type { Config } from '../../../config/config.ts';
import { logListening, logStartWarnings } from '../../../config/start-log.ts';
import { computePauseMs } from '../../../platform/clock.ts';
import type { Log } from '../../../platform/log.ts';
import { StartError } from '../../command-line/errors.ts';
import { handleProcessEnd } from '../../command-line/process-end.ts';
import type { EnvFile } from '../../command-line/read-input.ts';
import { type ConfigFile, onHangUp, openServiceLog } from '../../setup/config-file.ts';
import { describeProtection, type Protection } from '../../setup/protection.ts';
import { startWorker, type WorkerProcess } from './worker-process.ts';

/**
 * Serves with several processes, which end with this one. Each of them reads and follows the configuration file itself.
 *
 * @throws StartError if a worker was killed before it served.
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

/** A worker that dies within this time, for the second time in a row, is replaced after a pause. */
const STEADY_MS = 10_000;
const BACK_OFF = { firstMs: 1000, longestMs: 30_000 };

/** Milliseconds for a worker's shutdown besides its delay. A worker ends itself earlier, unless its main thread is blocked. */
const END_MS = 16_000;

/** `atStart`: the protection of the configuration file at startup. `endMs`: milliseconds for a worker's shutdown. */
function createWorkerPool(log: Log, atStart: Protection | undefined, endMs: number) {
  const running = new Set<WorkerProcess>();
  const shareMetrics = createMetricsMerger(running);
  let isEnding = false;
  let served = atStart;

  function add() {
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
   * Resolves when all workers serve. The first one starts alone: a problem that prevents its start would affect all of them, and
   * is printed once. Then this process ends as well.
   *
   * @throws StartError if a worker was killed before it served.
   */
  async function start(count: number) {
    await addFirst();
    await Promise.all(Array.from({ length: count - 1 }, addFirst));
  }

  async function addFirst(): Promise<void> {
    const worker = add();
    const end = await Promise.race([worker.serving, worker.ended]);
    // A shutdown has begun: `close` waits for the worker, and the process ends.
    if (isEnding) return new Promise(() => {});
    if (end?.signal === null) process.exit(1);
    if (end !== undefined)
      throw new StartError(
        `A worker was killed by ${end.signal} while it started. ${LOOK_FOR_KILLERS}`,
      );
    void replaceWhenEnded(worker);
  }

  async function replaceWhenEnded(first: WorkerProcess) {
    let quickDeaths = 0;
    for (let worker = first; ; ) {
      const end = await worker.ended;
      if (isEnding) return;
      const isQuick = worker.getServedMs() < STEADY_MS;
      quickDeaths = isQuick ? quickDeaths + 1 : 0;
      // A single death causes no delay.
      const delayMs = quickDeaths < 2 ? 0 : computePauseMs(BACK_OFF, quickDeaths - 1);
      const facts = { worker: worker.id, pid: worker.pid, ...end, replacedInMs: delayMs };
      // An operator sent SIGTERM to the worker, and it finished its work.
      if (end.code === 0)
        log.info('A worker shut down as requested. A new one replaces it.', facts);
      else {
        const [how, where] =
          end.signal === null
            ? ['died', 'Its last lines in the log give the reason.']
            : ['was killed', LOOK_FOR_KILLERS];
        const message = `A worker ${how}, and its open requests were lost. A new one replaces it. ${where}`;
        log.error(message, facts);
      }
      await pause(delayMs);
      if (isEnding) return;
      worker = add();
      const { id, pid, serving } = worker;
      void serving.then(() => log.info('A new worker is serving.', { worker: id, pid }));
    }
  }

  /** Shuts down all workers and waits for them. @throws Error if one did not end cleanly. */
  async function close() {
    isEnding = true;
    const limit = setTimeout(() => {
      for (const worker of running) {
        const { id, pid } = worker;
        log.error('A worker does not exit, and is killed: something blocks it, such as its disk.', {
          worker: id,
          pid,
        });
        worker.kill();
      }
    }, endMs);
    const ends = await Promise.all(Array.from(running, (worker) => worker.shutDown()));
    clearTimeout(limit);
    if (ends.includes('failed')) throw new Error('a worker did not end cleanly');
  }

  // After a second signal or an error in this process. A hanging worker would not notice the exit.
  process.on('exit', () => {
    for (const worker of running) worker.kill();
  });

  /** Sends SIGHUP to serving workers: they reload their configuration file. */
  function hangUp() {
    for (const worker of running) worker.hangUp();
  }

  return { start, close, hangUp };
}

const LOOK_FOR_KILLERS = 'Look for what kills processes on this machine, such as a memory limit.';

// Merges the metrics of all workers into one text.

/** Milliseconds that a scrape waits for a busy worker. */
const ANSWER_LIMIT_MS = 1000;

/** Answers workers that receive a scrape; call the returned function for each new worker. */
function createMetricsMerger(running: ReadonlySet<WorkerProcess>): (worker: WorkerProcess) => void {
  const lastTexts = new Map<WorkerProcess, string>();
  /** Counters of ended workers: a decreasing sum would look like a restart. */
  let endedCounters = '';
  const waiting = new Map<number, (text: string) => void>();
  let lastId = 0;

  async function mergeAll(asked: WorkerProcess, ownText: string) {
    lastTexts.set(asked, ownText);
    const others = [...running].filter((worker) => worker !== asked);
    const texts = await Promise.all(
      others.map(async (worker) => {
        const text = await askForText(worker);
        // The worker is too busy: its counters from the previous scrape count.
        if (text === undefined) return keepCounters(lastTexts.get(worker) ?? '');
        lastTexts.set(worker, text);
        return text;
      }),
    );
    return mergeOpenMetrics([ownText, ...texts, endedCounters]);
  }

  /** Undefined if the worker does not answer in time, or ends. */
  async function askForText(worker: WorkerProcess) {
    lastId += 1;
    const id = lastId;
    const answer = new Promise<string>((resolve) => void waiting.set(id, resolve));
    const timeLimit = pause(ANSWER_LIMIT_MS, undefined, { ref: false });
    worker.send({ kind: 'render', id, text: '' });
    const text = await Promise.race([answer, timeLimit, worker.ended.then(() => undefined)]);
    waiting.delete(id);
    return text;
  }

  return function shareMetrics(worker) {
    worker.onMessage(async ({ kind, id, text }) => {
      if (kind === 'rendered') waiting.get(id)?.(text);
      if (kind === 'merge') worker.send({ kind: 'merged', id, text: await mergeAll(worker, text) });
    });
    void worker.ended.then(() => {
      const counters = keepCounters(lastTexts.get(worker) ?? '');
      lastTexts.delete(worker);
      endedCounters = mergeOpenMetrics([endedCounters, counters]);
    });
  };
}

interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  /** Values by name and labels, in text order. */
  readonly samples: Map<string, number>;
}

/**
 * Merges OpenMetrics output: counters, histograms and quantities are summed. For the gauges below, the maximum counts.
 */
export function mergeOpenMetrics(texts: readonly string[]): string {
  const merged = new Map<string, Family>();
  for (const family of texts.flatMap(parseFamilies)) {
    const known = merged.get(family.name);
    if (known === undefined) merged.set(family.name, family);
    else
      for (const [series, value] of family.samples) {
        const former = known.samples.get(series);
        const sum = hasNoSum(family.name)
          ? Math.max(former ?? value, value)
          : (former ?? 0) + value;
        known.samples.set(series, sum);
      }
  }
  return renderFamilies([...merged.values()]);
}

/** Keeps only monotonic metrics, which still count towards the sum after their process has ended. */
export const keepCounters = (text: string): string =>
  renderFamilies(
    parseFamilies(text).filter(({ type }) => type === 'counter' || type === 'histogram'),
  );

/** A sum of these is meaningless: the largest delay counts, and the latest start time. */
const hasNoSum = (name: string) =>
  name.startsWith('nodejs_eventloop_lag_') ||
  [
    'process_start_time_seconds',
    'nodejs_version_info',
    'mcp_sessions_active',
    'mcp_approvals_waiting',
    'upstream_connections',
  ].includes(name);

const HEAD = /^# (HELP|TYPE) (\S+) ?(.*)$/;

/** Parses the format of prom-client: HELP, TYPE and samples of each family together, without timestamps. */
function parseFamilies(text: string) {
  const families: Family[] = [];
  let help = '';
  for (const line of text.split('\n')) {
    const [, keyword, name = '', rest = ''] = HEAD.exec(line) ?? [];
    if (keyword === 'HELP') help = rest;
    else if (keyword === 'TYPE') families.push({ name, help, type: rest, samples: new Map() });
    else if (line !== '' && !line.startsWith('#')) {
      const end = line.lastIndexOf(' ');
      families.at(-1)?.samples.set(line.slice(0, end), Number(line.slice(end + 1)));
    }
  }
  return families;
}

function renderFamilies(families: readonly Family[]) {
  const lines = families.flatMap(({ name, help, type, samples }) => [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} ${type}`,
    ...Array.from(samples, ([series, value]) => `${series} ${value}`),
  ]);
  return [...lines, '# EOF', ''].join('\n');
}
