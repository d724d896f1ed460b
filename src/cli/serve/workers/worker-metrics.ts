// Metrics of a worker: the worker that receives a scrape returns the metrics of all workers.
import { type Metrics, NO_COUNTS, type StoredCounts } from '../../../telemetry/metrics/metrics.ts';
import { createPrometheusMetrics } from '../../../telemetry/metrics/prometheus.ts';
import { isWorkerMessage, type WorkerMessage } from './worker-process.ts';

/** Metrics whose text covers all workers. */
export function createWorkerMetrics(): Metrics {
  const own = createPrometheusMetrics();
  const waiting = new Map<number, (text: string) => void>();
  let lastId = 0;
  let rendering: Promise<unknown> = Promise.resolve();

  /** Serialized: only the scraped worker's text contains the counts of the store. */
  function renderOwn(counts: StoredCounts) {
    const text = rendering.then(() => own.renderOpenMetrics(counts));
    rendering = text.catch(() => {});
    return text;
  }

  process.on('message', async (message: unknown) => {
    if (!isWorkerMessage(message)) return;
    const { kind, id, text } = message;
    if (kind === 'render') sendToMain({ kind: 'rendered', id, text: await renderOwn(NO_COUNTS) });
    if (kind === 'merged') {
      waiting.get(id)?.(text);
      waiting.delete(id);
    }
  });

  return {
    ...own,
    async renderOpenMetrics(counts) {
      const text = await renderOwn(counts);
      lastId += 1;
      const id = lastId;
      return new Promise((resolve) => {
        waiting.set(id, resolve);
        sendToMain({ kind: 'merge', id, text });
      });
    },
  };
}

/** Without the main process, no answer is expected, and this process is about to end. */
const sendToMain = (message: WorkerMessage) =>
  void process.send?.(message, undefined, undefined, () => {});
