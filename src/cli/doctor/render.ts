// What `postern doctor` prints: a line for each finding, and a summary.
import { shorten } from '../../platform/text.ts';
import { escapeInvisible } from '../../platform/visible-json.ts';
import type { Finding, Status } from './finding.ts';

const MARKS: Readonly<Record<Status, string>> = {
  ok: '✓',
  warning: '!',
  failure: '✗',
  unknown: '!',
};

/** SGR parameters. */
const COLOURS: Readonly<Record<Status, string>> = {
  ok: '32',
  warning: '33',
  failure: '31',
  unknown: '36',
};

const WIDTH = 96;

export function renderFinding(finding: Finding, hasColours: boolean): string {
  const { status, what, why, remedy } = finding;
  const mark = hasColours ? `\u001b[${COLOURS[status]}m${MARKS[status]}\u001b[0m` : MARKS[status];
  const said = status === 'unknown' ? `Not known: ${what}` : what;
  const fix = [nameSetting(finding), remedy].filter(Boolean).join(' ');
  return [
    `  ${mark} ${wrap(said, 4)}`,
    ...(why === undefined ? [] : [`      ${wrap(why, 6)}`]),
    ...(remedy === undefined ? [] : [`      → ${wrap(fix, 8)}`]),
  ].join('\n');
}

/** Before what to do, unless that or the line before it names the setting anyway. */
const nameSetting = (finding: Finding): string =>
  finding.setting === undefined || isSettingNamed(finding) ? '' : `${finding.setting}:`;

const isSettingNamed = ({ setting = '', what, remedy }: Finding): boolean =>
  what.startsWith(setting) || remedy?.includes(setting) === true;

export function renderSummary(findings: readonly Finding[]): string {
  const count = (status: Status) => findings.filter((one) => one.status === status).length;
  const parts = [
    plural(count('warning'), 'warning'),
    `${count('unknown')} not known`,
    `${count('ok')} fine`,
  ].filter((part) => !part.startsWith('0 '));
  const failures = count('failure') === 0 ? 'No failures' : plural(count('failure'), 'failure');
  return `${[failures, ...parts].join(', ')}.`;
}

/** One sentence: what to mend first, and how. */
export function renderStart(finding: Finding): string {
  const { check, what, setting, remedy } = finding;
  const named = setting === undefined || isSettingNamed(finding) ? '' : ` (${setting})`;
  // What is wrong with a setting says what to write.
  const said =
    remedy === undefined || check === 'settings'
      ? `${endSentence(what)}${named}`
      : `${endSentence(takeFirstSentence(what))}${named}: ${endSentence(takeFirstSentence(remedy))}`;
  return wrap(`Start here: ${said}.`, 0);
}

const endSentence = (text: string): string => text.replace(/\.$/, '');

const takeFirstSentence = (text: string): string =>
  /^.*?[.?](?=\s+\p{Lu}|$)/su.exec(text)?.[0] ?? text;

export const toJson = (subject: string, findings: readonly Finding[]): string =>
  escapeInvisible(
    JSON.stringify({ subject, isHealthy: !hasFailure(findings), findings }, undefined, 2),
  );

export const hasFailure = (findings: readonly Finding[]): boolean =>
  findings.some(({ status }) => status === 'failure');

const plural = (number: number, what: string): string =>
  `${number} ${what}${number === 1 ? '' : 's'}`;

/** Characters: far more than any finding has of its own. */
const MAX_TEXT = 2000;

/** Servers and tokens choose texts: nothing of them moves the cursor of a terminal, or all else off the screen. */
const toVisible = (text: string): string =>
  shorten(text, MAX_TEXT).replace(/[\p{Cc}\p{Cf}]+/gu, ' ');

/** At spaces; a long URL stays whole, so that it can be copied. */
function wrap(text: string, indent: number): string {
  const lines: string[] = [];
  let line = '';
  for (const word of toVisible(text).split(' ')) {
    if (line !== '' && line.length + word.length + 1 > WIDTH - indent) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].join(`\n${' '.repeat(indent)}`);
}
