// The main process: the metrics of all workers as one text.
import type { WorkerMessage, WorkerProcess } from './worker-process.ts';

/** Milliseconds that a scrape waits for a worker that is too busy to answer. */
const ANSWER_LIMIT_MS = 1000;

/** Answers those workers that are asked for the metrics; call the result with each that starts. */
export function createMetricsMerger(
  running: ReadonlySet<WorkerProcess>,
): (worker: WorkerProcess) => void {
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
    else addSamples(known, family.samples);
  }
  return renderFamilies([...merged.values()]);
}

/** Keeps what must never fall: of a process that has ended, this is still added to the sum. */
export const keepCounters = (text: string): string =>
  renderFamilies(
    parseFamilies(text).filter(({ type }) => type === 'counter' || type === 'histogram'),
  );

/** A sum of these says nothing: of delays the worst counts, of start times the last. */
const hasNoSum = (name: string): boolean =>
  name.startsWith('nodejs_eventloop_lag_') ||
  [
    'process_start_time_seconds',
    'nodejs_version_info',
    'mcp_sessions_active',
    'upstream_connections',
  ].includes(name);

function addSamples({ name, samples }: Family, added: ReadonlyMap<string, number>): void {
  for (const [series, value] of added) {
    const known = samples.get(series);
    if (known === undefined) samples.set(series, value);
    else samples.set(series, hasNoSum(name) ? Math.max(known, value) : known + value);
  }
}

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

function renderFamilies(families: readonly Family[]): string {
  const lines = families.flatMap(({ name, help, type, samples }) => [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} ${type}`,
    ...Array.from(samples, ([series, value]) => `${series} ${value}`),
  ]);
  return [...lines, '# EOF', ''].join('\n');
}
