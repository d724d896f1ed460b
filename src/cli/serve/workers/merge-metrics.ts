// The main process: the metrics of all workers as one text.
import { keepCounters, mergeOpenMetrics } from '../../../telemetry/metrics/merge-open-metrics.ts';
import type { WorkerMessage } from './messages.ts';
import type { WorkerProcess } from './worker-process.ts';

/** Milliseconds that a scrape waits for a worker that is too busy to answer. */
const ANSWER_LIMIT_MS = 1000;

/** Answers those workers that are asked for the metrics; call the result with each that starts. */
export function createMetricsMerger(
  running: ReadonlySet<WorkerProcess>,
): (worker: WorkerProcess) => void {
  /** What each said last. */
  const lastTexts = new Map<WorkerProcess, string>();
  /** The counters of those that have ended: a sum that falls would look like a restart. */
  let endedCounters = '';
  const waiting = new Map<number, (text: string) => void>();
  let lastId = 0;

  async function mergeAll(asked: WorkerProcess, ownText: string): Promise<string> {
    lastTexts.set(asked, ownText);
    const others = [...running].filter((worker) => worker !== asked);
    const texts = await Promise.all(others.map(collectText));
    return mergeOpenMetrics([ownText, ...texts, endedCounters]);
  }

  async function collectText(worker: WorkerProcess): Promise<string> {
    const text = await askForText(worker);
    // It is too busy: what it had counted when it was asked before.
    if (text === undefined) return keepCounters(lastTexts.get(worker) ?? '');
    lastTexts.set(worker, text);
    return text;
  }

  /** Undefined when it does not answer in time, or ends. */
  async function askForText(worker: WorkerProcess): Promise<string | undefined> {
    lastId += 1;
    const id = lastId;
    let timer: NodeJS.Timeout | undefined;
    const answer = new Promise<string>((resolve) => void waiting.set(id, resolve));
    const timeLimit = new Promise<undefined>((resolve) => {
      timer = setTimeout(resolve, ANSWER_LIMIT_MS, undefined);
    });
    worker.send({ kind: 'render', id, text: '' });
    const text = await Promise.race([answer, timeLimit, worker.ended.then(() => undefined)]);
    clearTimeout(timer);
    waiting.delete(id);
    return text;
  }

  async function onMessage(
    worker: WorkerProcess,
    { kind, id, text }: WorkerMessage,
  ): Promise<void> {
    if (kind === 'rendered') waiting.get(id)?.(text);
    if (kind === 'merge') worker.send({ kind: 'merged', id, text: await mergeAll(worker, text) });
  }

  return function shareMetrics(worker) {
    worker.onMessage((message) => void onMessage(worker, message));
    void worker.ended.then(() => {
      const counters = keepCounters(lastTexts.get(worker) ?? '');
      lastTexts.delete(worker);
      endedCounters = mergeOpenMetrics([endedCounters, counters]);
    });
  };
}
