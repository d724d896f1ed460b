// The alert rules and the dashboard of deploy/: they name what the gateway really measures, and all of it.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type Alert,
  PROMETHEUS,
  readAlerts,
  readDocumentedMetrics,
  readTargets,
  type Target,
} from '../support/deploy/monitoring/files.ts';
import { type Expression, parseExpression } from '../support/deploy/monitoring/promql.ts';
import { endPosterns, startPostern } from '../support/gateway/process.ts';
import { ensureCommand } from '../support/tools/debian.ts';

const INSTALLATION_MS = 300_000;
/** What Prometheus adds to each series, and what a histogram has. */
const ADDED = ['job', 'instance', 'le'];

let documented: ReadonlyMap<string, readonly string[]>;
/** Names of series, as queries use them, and of the metrics that they are of. */
let measured: ReadonlyMap<string, string>;
let alerts: readonly Alert[];
let targets: readonly Target[];
let expressions: readonly Expression[];

beforeAll(async () => {
  ensureCommand('promtool', 'prometheus');
  const { url } = await startPostern({ AUTH_REQUIRED: 'false', METRICS_ENABLED: 'true' });
  measured = readSeriesNames(await (await fetch(`${url}/metrics`)).text());
  documented = await readDocumentedMetrics();
  alerts = await readAlerts();
  targets = await readTargets();
  expressions = [...alerts, ...targets].map(({ expr }) => parseExpression(expr));
}, INSTALLATION_MS);
afterAll(endPosterns);

function readSeriesNames(text: string): ReadonlyMap<string, string> {
  const suffixes: Readonly<Record<string, readonly string[]>> = {
    counter: ['_total'],
    histogram: ['_bucket', '_sum', '_count'],
    gauge: [''],
  };
  return new Map(
    [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].flatMap(([, name = '', type = '']) =>
      (suffixes[type] ?? ['']).map((suffix): [string, string] => {
        return [`${name}${suffix}`, type === 'counter' ? `${name}_total` : name];
      }),
    ),
  );
}

const isOfProcess = (metric: string): boolean => /^(process|nodejs)_/.test(metric);

test('§4.11 monitoring: the documentation lists the metrics that the gateway has', () => {
  const own = new Set([...measured.values()].filter((metric) => !isOfProcess(metric)));
  expect([...documented.keys()].sort()).toEqual([...own].sort());
});

test('§4.11 monitoring: the dashboard shows every metric', () => {
  const used = new Set(
    targets.flatMap(({ expr }) =>
      parseExpression(expr).selectors.map(({ metric }) => measured.get(metric)),
    ),
  );
  expect([...documented.keys()].filter((metric) => !used.has(metric))).toEqual([]);
});

/** Metrics that tell nobody to do anything, and why. */
const WITHOUT_ALERT: Readonly<Record<string, string>> = {
  upstream_request_duration_seconds:
    'A slow server is told by its tools (PosternToolSlow), and one that takes too long by PosternUpstreamFails.',
  guard_duration_seconds:
    'A slow guard makes its calls slow, and one that takes too long fails: PosternGuardFails tells it.',
  mcp_approvals_total:
    'How often somebody is asked, and what they decide, is up to people; nothing is wrong with any of it.',
  oauth_grants_total:
    'People log in and out as they like. Where logins end that are still in use, PosternTokensRefused tells it.',
  oauth_logout_tokens_total:
    'Anybody can send one that is refused; the log has a warning that says what was wrong. PosternServerErrors tells of those that failed.',
  upstream_connections:
    'How many users connect is up to them; that connections are lost or cannot be renewed is told by PosternConnectionsLost and PosternConnectionsNotRenewed.',
  upstream_processes:
    'How many there are depends on the users; one that does not run is told by PosternUpstreamDown.',
};

test('§4.11 monitoring: every metric has an alert, or a reason why not', () => {
  const used = new Set(
    alerts.flatMap(({ expr }) =>
      parseExpression(expr).selectors.map(({ metric }) => measured.get(metric)),
    ),
  );
  const unused = [...documented.keys()].filter((metric) => !used.has(metric));
  expect(unused.sort()).toEqual(Object.keys(WITHOUT_ALERT).sort());
});

test('§4.11 monitoring: queries name series and labels that exist', () => {
  expect(expressions.length).toBeGreaterThan(40);
  for (const { text, selectors, grouping } of expressions) {
    const known = new Set(ADDED);
    for (const { metric, labels } of selectors) {
      if (metric === 'up') continue;
      const name = measured.get(metric);
      expect(name, `${metric} in ${text}`).toBeDefined();
      const own = [...ADDED, ...(documented.get(name ?? '') ?? [])];
      for (const label of own) known.add(label);
      for (const label of labels) expect(own, text).toContain(label);
    }
    for (const label of grouping) expect([...known], text).toContain(label);
  }
});

test('§4.11 monitoring: legends and texts name labels that the queries keep', () => {
  const texts = [
    ...targets.map(({ expr, legendFormat }) => ({ expr, text: legendFormat })),
    ...alerts.map(({ expr, annotations }) => ({ expr, text: Object.values(annotations).join() })),
  ];
  for (const { expr, text } of texts) {
    const { grouping, selectors } = parseExpression(expr);
    const kept = grouping.length > 0 ? grouping : selectors.length > 0 ? ADDED : [];
    for (const [, label] of text.matchAll(/\{\{ ?(?:\$labels\.)?([a-z_]+) ?\}\}/g)) {
      expect(kept, `${text} of ${expr}`).toContain(label);
    }
  }
});

test('§4.11 monitoring: an alert has a severity, says what happened, and what to do', () => {
  for (const { alert, labels, annotations } of alerts) {
    expect(labels.severity, alert).toMatch(/^(critical|warning)$/);
    expect(annotations.summary?.length, alert).toBeGreaterThan(20);
    expect(annotations.description?.split('. ').length, alert).toBeGreaterThan(1);
    // It is also in docs/operations/metrics.md, where there are no labels.
    expect(annotations.description, alert).not.toContain('{{');
  }
});

test('§4.11 monitoring: promtool takes the alerts, which fire when they should and not otherwise', async () => {
  const promtool = (...args: readonly string[]) =>
    promisify(execFile)('promtool', args, { cwd: PROMETHEUS });
  const { stdout } = await promtool('check', 'rules', 'alerts.yaml');
  expect(stdout).toContain(`SUCCESS: ${alerts.length} rules found`);
  await promtool('test', 'rules', 'alerts.test.yaml');
});
