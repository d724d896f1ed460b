import { styleText } from 'node:util';
import { escapeInvisible } from '../../platform/visible-json.ts';
import type { DescribedFile, DescribedSetting } from './describe-config.ts';

export interface ConfigReport {
  readonly settings: readonly DescribedSetting[];
  /** The path of `.env`, where there is one. */
  readonly envFile: string | undefined;
  readonly file: DescribedFile | undefined;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

/** For a terminal. */
export function renderReport(given: ConfigReport, { all }: { readonly all: boolean }): string {
  const report = makeVisible(given);
  const { settings, file, problems, warnings } = report;
  const groups = [...new Set(settings.map(({ group }) => group))];
  const widths = [
    Math.max(0, ...settings.map(({ variable }) => variable.length)),
    Math.min(MAX_VALUE_WIDTH, Math.max(0, ...settings.map((row) => describeValue(row).length))),
  ] as const;
  const sections = groups.map((group) => [
    styleText('bold', group),
    ...settings.filter((row) => row.group === group).map((row) => renderRow(row, widths)),
  ]);
  return [
    ...sections,
    ...(settings.length === 0 ? [['No setting is set: all have their defaults.']] : []),
    ...(all ? [] : [['All other settings have their defaults: postern config --all']]),
    renderFile(report),
    renderProblems(
      [...problems, ...(file?.problems ?? [])],
      [...warnings, ...(file?.warnings ?? [])],
    ),
  ]
    .map((lines) => lines.join('\n'))
    .join('\n\n');
}

/** The folder may be another's: nothing that its files say moves the cursor of a terminal, and hides a setting. */
const makeVisible = (report: ConfigReport): ConfigReport =>
  JSON.parse(JSON.stringify(report), (_name, value: unknown) =>
    typeof value === 'string' ? escapeInvisible(value) : value,
  );

/** What is longer pushes its own source to the right, and no other. */
const MAX_VALUE_WIDTH = 50;

function renderRow(
  row: DescribedSetting,
  [nameWidth, valueWidth]: readonly [number, number],
): string {
  const { variable, source, hasProblem } = row;
  const mark = hasProblem ? styleText('red', '✗') : ' ';
  const origin = styleText('dim', source);
  return `${mark} ${variable.padEnd(nameWidth)}  ${describeValue(row).padEnd(valueWidth)}  ${origin}`;
}

function describeValue({ value, fingerprint }: DescribedSetting): string {
  if (fingerprint !== undefined)
    return `${value === null ? '' : `${value} `}(secret, ${fingerprint})`;
  return (value ?? '(not set)') || '(none)';
}

function renderFile({ file, settings }: ConfigReport): readonly string[] {
  if (file === undefined) {
    const named = settings.find(({ variable }) => variable === 'POSTERN_CONFIG')?.value;
    return named
      ? [`${named} was not read: the settings have problems.`]
      : ['No configuration file (--config FILE, or POSTERN_CONFIG).'];
  }
  const { path, builtIn, catalog, servers, rules, isLocked, problems } = file;
  const head = styleText('bold', path);
  if (problems.length > 0) return [head, `${styleText('red', '✗')} has problems`];
  return [
    head,
    ...servers.map(
      ({ name, kind, target, runAs, auth = 'none' }) =>
        `  ${name}: ${kind === 'stdio' ? 'runs' : 'at'} ${target}${runAs === undefined ? '' : `, user ${runAs}`}${auth === 'none' ? '' : `, ${auth}`}`,
    ),
    ...(catalog === undefined ? [] : [`  your own tools: ${catalog}`]),
    `  built-in tools: ${builtIn ? 'yes' : 'no'}, rules: ${rules}, postern.lock: ${isLocked ? 'yes' : 'no'}`,
  ];
}

function renderProblems(
  problems: readonly string[],
  warnings: readonly string[],
): readonly string[] {
  const lines = [
    ...problems.map((problem) => `${styleText('red', '✗')} ${problem}`),
    ...warnings.map((warning) => `${styleText('yellow', '!')} ${warning}`),
  ];
  return lines.length > 0
    ? lines
    : [`${styleText('green', '✓')} No problems: postern start would start.`];
}
