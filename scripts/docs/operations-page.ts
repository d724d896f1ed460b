import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { renderTable } from './table.ts';

const DEPLOY = new URL('../../deploy/', import.meta.url);

interface AlertRules {
  readonly groups: readonly { readonly rules: readonly AlertRule[] }[];
}

interface AlertRule {
  readonly alert: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly description: string };
}

const BLOCKS: Readonly<Record<string, () => string>> = {
  haproxy: () => `\`\`\`text\n${read('haproxy/haproxy.cfg')}\`\`\`\n`,
  alerts: renderAlerts,
};

/**
 * `docs/operations.md` with the configuration of HAProxy that compose.yaml uses and the tests start, and with what to do
 * for each alert.
 *
 * @throws Error when it has no place for one of them.
 */
export function renderOperationsPage(present: string): string {
  return Object.entries(BLOCKS).reduce((page, [name, render]) => {
    const place = new RegExp(`(<!-- ${name} -->\\n)[\\s\\S]*?(<!-- end of ${name} -->)`);
    if (!place.test(page)) throw new Error(`docs/operations.md has no <!-- ${name} -->`);
    return page.replace(place, (_, start: string, end: string) => `${start}\n${render()}\n${end}`);
  }, present);
}

function renderAlerts(): string {
  const { groups }: AlertRules = parse(read('prometheus/alerts.yaml'));
  return renderTable(
    ['Alert', 'Severity', 'What happened, and what to do'],
    groups.flatMap(({ rules }) =>
      rules.map(({ alert, labels, annotations }) => [
        `\`${alert}\``,
        labels.severity,
        annotations.description,
      ]),
    ),
  );
}

const read = (path: string): string => readFileSync(new URL(path, DEPLOY), 'utf8');
