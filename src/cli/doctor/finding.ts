// Findings of `postern doctor`, and the checks that make them.

import { systemClock } from '../../platform/clock.ts';
import { escapeInvisible } from '../../platform/invisible.ts';
import { describeCause } from '../../platform/log.ts';
import { countNoun, shorten } from '../../platform/text.ts';
import type { Invocation } from '../command-line/invocation.ts';

/** `unknown`: it could not be found out. This is printed, and does not count as a failure. */
export type Status = 'ok' | 'warning' | 'failure' | 'unknown';

export interface Finding {
  /** Stable: programs, and docs/doctor.md, know it by this name. */
  readonly check: string;
  readonly status: Status;
  /** A sentence: what was seen. No secret is in it. */
  readonly what: string;
  /** The meaning, where `what` does not say it. */
  readonly why?: string;
  /** The setting to change; several are separated by commas. */
  readonly setting?: string;
  readonly remedy?: string;
}

export type Advice = Pick<Finding, 'why' | 'setting' | 'remedy'>;

/** One row of the table of checks. What it throws is a finding of its own. */
export interface Check<Subject> {
  readonly section: string;
  /** For a check that can only run while the store answers: what is unknown otherwise, to follow "Not known:". */
  readonly needsStore?: string;
  readonly run: (subject: Subject) => Promise<Found>;
}

/** Gives `run` its type. */
export const defineCheck = <Subject>(check: Check<Subject>): Check<Subject> => check;

/** Said once for all checks that begin a login. */
export const LOGIN_NEEDS_STORE = 'whether users can log in';

/** One thing, several or nothing. */
export type Found = Finding | undefined | readonly (Finding | undefined)[];

/** Makes findings of one status: what was seen, alone or with what to do about it. */
const createFindingOf =
  (status: Status) =>
  (check: string, seen: string | (Pick<Finding, 'what'> & Advice)): Finding => ({
    check,
    status,
    ...(typeof seen === 'string' ? { what: seen } : seen),
  });

export const ok = createFindingOf('ok');
export const warning = createFindingOf('warning');
export const failure = createFindingOf('failure');
export const unknown = createFindingOf('unknown');

export const hasFailure = (findings: readonly Finding[]): boolean =>
  findings.some(({ status }) => status === 'failure');

/** The name of the check that finds settings under a name that Postern does not know. */
export const MISSPELLED = 'settings.misspelled';

export type Report = (section: string, finding: Finding) => void;

/** One after the other, so that a person can read along, and no server is flooded. */
export async function runChecks<Subject>(
  checks: readonly Check<Subject>[],
  subject: Subject,
  report: Report,
): Promise<readonly Finding[]> {
  const all: Finding[] = [];
  for (const { section, run } of checks) {
    for (const finding of await runOne(run, subject)) {
      report(section, finding);
      all.push(finding);
    }
  }
  return all;
}

/** A check that fails itself says nothing of what it was to check. */
async function runOne<Subject>(
  run: Check<Subject>['run'],
  subject: Subject,
): Promise<readonly Finding[]> {
  try {
    return [await run(subject)].flat().filter((finding) => finding !== undefined);
  } catch (error) {
    return [
      unknown(
        'check-failed',
        `what comes next: it could not be checked (${describeCause(error)}).`,
      ),
    ];
  }
}

// Prints findings as they come, or all at once as JSON.

/** `subject` is what is checked. */
export function createPrinter(
  subject: string,
  isJson: boolean,
  { process, console }: Invocation,
): { readonly report: Report; finish(findings: readonly Finding[]): void } {
  if (isJson)
    return {
      report() {},
      finish: (findings) => console.log(toJson(subject, findings)),
    };
  const hasColours = wantsColours(process.env, process.stdout.isTTY === true);
  const progress = process.stdout.isTTY === true ? showProgress(process.stdout) : undefined;
  let current: string | undefined;
  console.log(`Checking ${subject}`);
  return {
    report(section, finding) {
      progress?.clear();
      if (section !== current) console.log(`\n${section}`);
      current = section;
      console.log(renderFinding(finding, hasColours));
    },
    finish(findings) {
      progress?.end();
      console.log(`\n${renderSummary(findings)}`);
      const first = findFirstToMend(findings);
      if (first !== undefined) console.log(renderStart(first));
    },
  };
}

const SECOND_MS = 1000;
const ERASE_LINE = '\r\u001b[2K';

/** On a terminal: a last line that counts the seconds while an answer is awaited. */
function showProgress(terminal: NodeJS.WritableStream) {
  let since = systemClock.monotonic();
  const timer = setInterval(() => {
    const seconds = Math.round((systemClock.monotonic() - since) / SECOND_MS);
    terminal.write(`${ERASE_LINE}  … waiting for an answer, ${seconds} s`);
  }, SECOND_MS).unref();
  function clear(): void {
    terminal.write(ERASE_LINE);
    since = systemClock.monotonic();
  }
  return {
    clear,
    end() {
      clearInterval(timer);
      clear();
    },
  };
}

/** https://no-color.org, https://force-color.org */
const wantsColours = (env: NodeJS.ProcessEnv, isTerminal: boolean): boolean =>
  !env.NO_COLOR && (Boolean(env.FORCE_COLOR) || isTerminal);

/** With the SGR parameter of its colour. */
const MARKS: Readonly<Record<Status, readonly [mark: string, colour: number]>> = {
  ok: ['✓', 32],
  warning: ['!', 33],
  failure: ['✗', 31],
  unknown: ['!', 36],
};

const WIDTH = 96;

function renderFinding(finding: Finding, hasColours: boolean): string {
  const { status, what, why, remedy } = finding;
  const [sign, colour] = MARKS[status];
  const mark = hasColours ? `\u001b[${colour}m${sign}\u001b[0m` : sign;
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

function renderSummary(findings: readonly Finding[]): string {
  const count = (status: Status) => findings.filter((one) => one.status === status).length;
  const others = [
    countNoun(count('warning'), 'warning'),
    `${count('unknown')} not known`,
    `${count('ok')} fine`,
  ].filter((part) => !part.startsWith('0 '));
  const failures = count('failure') === 0 ? 'No failures' : countNoun(count('failure'), 'failure');
  return `${[failures, ...others].join(', ')}.`;
}

/** One sentence: what to mend first, and how. */
function renderStart(finding: Finding): string {
  const { check, what, setting, remedy } = finding;
  const named = setting === undefined || isSettingNamed(finding) ? '' : ` (${setting})`;
  // A finding about a setting says what to write.
  const said =
    remedy === undefined || check === 'settings'
      ? `${endSentence(what)}${named}`
      : `${endSentence(takeFirstSentence(what))}${named}: ${endSentence(takeFirstSentence(remedy))}`;
  return wrap(`Start here: ${said}.`, 0);
}

const endSentence = (text: string): string => text.replace(/\.$/, '');

const takeFirstSentence = (text: string): string =>
  /^.*?[.?](?=\s+\p{Lu}|$)/su.exec(text)?.[0] ?? text;

const toJson = (subject: string, findings: readonly Finding[]): string =>
  escapeInvisible(
    JSON.stringify({ subject, isHealthy: !hasFailure(findings), findings }, undefined, 2),
  );

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

/** First comes what nothing else works without; failures of other kinds follow in the order in which they were found. */
const ROOTS = [/^settings(\.|$)/, /^store(\.|$)/, /^gateway\.(reachable|certificate)$/];

/** Undefined where nothing failed. */
function findFirstToMend(findings: readonly Finding[]): Finding | undefined {
  const failures = findings.filter(({ status }) => status === 'failure');
  const root = ROOTS.map((name) => failures.find(({ check }) => name.test(check))).find(Boolean);
  const first = root ?? failures[0];
  return first && (findMisspelled(first, findings) ?? first);
}

/** A setting that is wrong may be one that is right under another name. */
const findMisspelled = ({ setting }: Finding, findings: readonly Finding[]): Finding | undefined =>
  findings.find(
    (one) =>
      one.check === MISSPELLED &&
      one.setting !== undefined &&
      setting?.split(', ').includes(one.setting),
  );
