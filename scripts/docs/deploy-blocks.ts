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

/** Any of them, between its marks. */
const BLOCK = new RegExp(
  `(<!-- (${Object.keys(BLOCKS).join('|')}) -->\\n)[\\s\\S]*?(<!-- end of \\2 -->)`,
  'g',
);

/**
 * A page with the configuration of HAProxy that compose.yaml uses and the tests start, or with what to do for each
 * alert.
 *
 * @throws Error when it has no place for either.
 */
export function renderDeployBlocks(present: string): string {
  const page = present.replace(
    BLOCK,
    (_, start: string, name: string, end: string) => `${start}\n${BLOCKS[name]?.()}\n${end}`,
  );
  if (present.match(BLOCK) === null) throw new Error('The page has no place for what deploy/ has.');
  return page;
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
