// §4.11: one text for several processes that serve as one.

interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  /** By name and labels, in the order of the text. */
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

/** What must never fall: of a process that has ended, this is still added to the sum. */
export const keepCounters = (text: string): string =>
  renderFamilies(
    parseFamilies(text).filter(({ type }) => type === 'counter' || type === 'histogram'),
  );

/** A sum of these says nothing: of delays the worst counts, of start times the last. */
const hasNoSum = (name: string): boolean =>
  name.startsWith('nodejs_eventloop_lag_') ||
  ['process_start_time_seconds', 'nodejs_version_info', 'mcp_sessions_active'].includes(name);

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
