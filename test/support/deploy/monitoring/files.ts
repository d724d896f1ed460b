// The alert rules and the dashboard of deploy/, as far as the tests look into them.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

export interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface Target {
  readonly expr: string;
  readonly legendFormat: string;
}

export const PROMETHEUS = fileURLToPath(new URL('../../../../deploy/prometheus/', import.meta.url));
const DASHBOARD = new URL('../../../../deploy/grafana/postern.json', import.meta.url);
const OPERATIONS = new URL('../../../../docs/operations/metrics.md', import.meta.url);

export async function readAlerts(): Promise<readonly Alert[]> {
  const { groups } = parse(await readFile(`${PROMETHEUS}alerts.yaml`, 'utf8'));
  return groups.flatMap(({ rules }: { rules: readonly Alert[] }) => rules);
}

/** With plain values for the variables of Grafana. */
export async function readTargets(): Promise<readonly Target[]> {
  const { panels }: { panels: readonly { targets?: readonly Target[] }[] } = JSON.parse(
    await readFile(DASHBOARD, 'utf8'),
  );
  return panels
    .flatMap(({ targets = [] }) => targets)
    .map(({ expr, legendFormat }) => ({
      legendFormat,
      expr: expr.replaceAll('$__rate_interval', '5m').replaceAll('$job', 'postern'),
    }));
}

/** The table of docs/operations/metrics.md: metrics, and their labels. */
export async function readDocumentedMetrics(): Promise<ReadonlyMap<string, readonly string[]>> {
  const [, chapter = ''] = (await readFile(OPERATIONS, 'utf8')).split('\n## Metrics\n');
  const rows = chapter.matchAll(/^\| (`[a-z_]+`(?:, `[a-z_]+`)*) +\|(.*)\|$/gm);
  return new Map(
    [...rows].flatMap(([, names = '', labels = '']) =>
      namesIn(names).map((name): [string, readonly string[]] => [name, namesIn(labels)]),
    ),
  );
}

const namesIn = (text: string): readonly string[] =>
  [...text.matchAll(/`([a-z_]+)`/g)].map(([, name = '']) => name);
