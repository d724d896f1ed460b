// WORKERS: the main process, which serves nothing itself.

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
  async function start(count: number) {
    await addFirst();
    await Promise.all(Array.from({ length: count - 1 }, addFirst));
  }

  async function addFirst(): Promise<void> {
    const worker = add();
    const end = await Promise.race([worker.serving, worker.ended]);
    // Asked to end meanwhile: `close` waits for it, and the process ends.
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
      // The first death may have been bad luck.
      const delayMs = quickDeaths < 2 ? 0 : computePauseMs(BACK_OFF, quickDeaths - 1);
      const facts = { worker: worker.id, pid: worker.pid, ...end, replacedInMs: delayMs };
      // Somebody sent it SIGTERM, and it has finished what it had.
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

  /** Shuts all down and waits for them. @throws Error when one did not end cleanly. */
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

  // At a second signal, or after an error here. A worker that hangs would not notice it.
  process.on('exit', () => {
    for (const worker of running) worker.kill();
  });

  /** SIGHUP for those that serve: they load their configuration file anew. */
  function hangUp() {
    for (const worker of running) worker.hangUp();
  }

  return { start, close, hangUp };
}

const LOOK_FOR_KILLERS = 'Look for what kills processes on this machine, such as a memory limit.';

// The main process: the metrics of all workers as one text.

/** Milliseconds that a scrape waits for a worker that is too busy to answer. */
const ANSWER_LIMIT_MS = 1000;

/** Answers those workers that are asked for the metrics; call the result with each that starts. */
function createMetricsMerger(running: ReadonlySet<WorkerProcess>): (worker: WorkerProcess) => void {
  const lastTexts = new Map<WorkerProcess, string>();
  /** The counters of those that have ended: a sum that falls would look like a restart. */
  let endedCounters = '';
  const waiting = new Map<number, (text: string) => void>();
  let lastId = 0;

  async function mergeAll(asked: WorkerProcess, ownText: string) {
    lastTexts.set(asked, ownText);
    const others = [...running].filter((worker) => worker !== asked);
    const texts = await Promise.all(
      others.map(async (worker) => {
        const text = await askForText(worker);
        // It is too busy: what it had counted when it was asked before.
        if (text === undefined) return keepCounters(lastTexts.get(worker) ?? '');
        lastTexts.set(worker, text);
        return text;
      }),
    );
    return mergeOpenMetrics([ownText, ...texts, endedCounters]);
  }

  /** Undefined when it does not answer in time, or ends. */
  async function askForText(worker: WorkerProcess): Promise<string | undefined> {
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
  /** Values by name and labels, in the order of the text. */
  readonly samples: Map<string, number>;
}

/**
 * Merges OpenMetrics texts: counters, histograms and quantities are summed. The gauges below have no
 * sum; of them the largest counts.
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

/** Keeps what must never fall: of a process that has ended, this is still added to the sum. */
export const keepCounters = (text: string): string =>
  renderFamilies(
    parseFamilies(text).filter(({ type }) => type === 'counter' || type === 'histogram'),
  );

/** A sum of these says nothing: of delays the worst counts, of start times the last. */
const hasNoSum = (name: string) =>
  name.startsWith('nodejs_eventloop_lag_') ||
  [
    'process_start_time_seconds',
    'nodejs_version_info',
    'mcp_sessions_active',
    'upstream_connections',
  ].includes(name);

const HEAD = /^# (HELP|TYPE) (\S+) ?(.*)$/;

/** As prom-client writes it: HELP, TYPE and samples of each family together, and no timestamps. */
function parseFamilies(text: string): readonly Family[] {
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
