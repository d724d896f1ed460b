// Defines findings of `postern doctor` and their checks, and prints them.

import { systemClock } from '../../platform/clock.ts';
import { escapeInvisible } from '../../platform/invisible.ts';
import { describeCause } from '../../platform/log.ts';
import { countNoun, shorten } from '../../platform/text.ts';
import type { Invocation } from '../command-line/invocation.ts';

/** `unknown`: could not be determined. It is printed, but does not count as a failure. */
type Status = 'ok' | 'warning' | 'failure' | 'unknown';

export interface Finding {
  /** A stable name for programs and docs/doctor.md. */
  readonly check: string;
  readonly status: Status;
  /** The observation, as a sentence without secrets. */
  readonly what: string;
  /** The meaning, if `what` does not state it. */
  readonly why?: string | undefined;
  /** The setting to change, or several separated by commas. */
  readonly setting?: string | undefined;
  readonly remedy?: string | undefined;
}

export type Advice = Pick<Finding, 'why' | 'setting' | 'remedy'>;

/** One row of the table of checks. An error thrown by it becomes a finding. */
export interface Check<Subject> {
  readonly section: string;
  /** For a check that requires the store: the unknown result if the store does not respond. Follows "Not known:". */
  readonly needsStore?: string;
  readonly run: (subject: Subject) => Promise<Found>;
}

/** Infers the type of `run`. */
export const defineCheck = <Subject>(check: Check<Subject>): Check<Subject> => check;

/** The same words for all checks that begin a login. */
export const LOGIN_NEEDS_STORE = 'whether users can log in';

/** One result of a check; a condition may precede it (`isOld && warning(…)`). */
export type Row = Finding | false | undefined;

/** One result, several or none. */
export type Found = Row | readonly Row[];

/** Creates findings with one status: the observation, optionally with advice. */
const createFindingOf =
  (status: Status) =>
  (check: string, what: string, advice?: Advice): Finding => ({ check, status, what, ...advice });

export const ok = createFindingOf('ok');
export const warning = createFindingOf('warning');
export const failure = createFindingOf('failure');
export const unknown = createFindingOf('unknown');

export const hasFailure = (findings: readonly Finding[]): boolean =>
  findings.some(({ status }) => status === 'failure');

/** The check that finds misspelled settings. */
export const MISSPELLED = 'settings.misspelled';

export type Report = (section: string, finding: Finding) => void;

/** Runs checks one after the other, so that users can follow, and no server is flooded. */
export async function runChecks<Subject>(
  checks: readonly Check<Subject>[],
  subject: Subject,
  report: Report,
): Promise<readonly Finding[]> {
  const all: Finding[] = [];
  for (const { section, run } of checks) {
    const found = await run(subject).catch((error: unknown) =>
      // A failed check says nothing about its subject.
      unknown('check-failed', `the next checks: they could not be run (${describeCause(error)}).`),
    );
    for (const finding of [found].flat()) {
      if (!finding) continue;
      report(section, finding);
      all.push(finding);
    }
  }
  return all;
}

// Prints findings as they arrive, or all at once as JSON.

export type Printer = ReturnType<typeof createPrinter>;

/** `subject` names what is checked. */
export function createPrinter(subject: string, isJson: boolean, { process, console }: Invocation) {
  const findings: Finding[] = [];
  const { env, stdout } = process;
  const isTerminal = stdout.isTTY === true;
  // https://no-color.org, https://force-color.org
  const hasColours = !env.NO_COLOR && (Boolean(env.FORCE_COLOR) || isTerminal);
  const progress = isTerminal && !isJson ? showProgress(stdout) : undefined;
  let current: string | undefined;
  if (!isJson) console.log(`Checking ${subject}`);
  return {
    /** All findings reported so far. */
    findings,
    report(section: string, finding: Finding): void {
      findings.push(finding);
      if (isJson) return;
      progress?.clear();
      if (section !== current) console.log(`\n${section}`);
      current = section;
      console.log(renderFinding(finding, hasColours));
    },
    finish(): void {
      if (isJson) {
        const all = { subject, isHealthy: !hasFailure(findings), findings };
        console.log(escapeInvisible(JSON.stringify(all, undefined, 2)));
        return;
      }
      progress?.end();
      console.log(`\n${renderSummary(findings)}`);
      const start = renderStart(findings);
      if (start !== undefined) console.log(start);
    },
  };
}

const SECOND_MS = 1000;
const ERASE_LINE = '\r\u001b[2K';

/** On a terminal: shows a last line that counts the seconds of a wait. */
function showProgress(terminal: NodeJS.WritableStream) {
  let since = systemClock.monotonic();
  const timer = setInterval(() => {
    const seconds = Math.round((systemClock.monotonic() - since) / SECOND_MS);
    terminal.write(`${ERASE_LINE}  … waiting for an answer, ${seconds} s`);
  }, SECOND_MS).unref();
  function clear() {
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

/** With the SGR parameter for the colour. */
const MARKS: Readonly<Record<Status, readonly [mark: string, colour: number]>> = {
  ok: ['✓', 32],
  warning: ['!', 33],
  failure: ['✗', 31],
  unknown: ['!', 36],
};

const WIDTH = 96;

function renderFinding(finding: Finding, hasColours: boolean) {
  const { status, what, why, remedy } = finding;
  const [sign, colour] = MARKS[status];
  const mark = hasColours ? `\u001b[${colour}m${sign}\u001b[0m` : sign;
  const said = status === 'unknown' ? `Not known: ${what}` : what;
  const setting = findUnnamedSetting(finding);
  const fix = [setting && `${setting}:`, remedy].filter(Boolean).join(' ');
  return [
    `  ${mark} ${wrap(said, 4)}`,
    why && `      ${wrap(why, 6)}`,
    remedy && `      → ${wrap(fix, 8)}`,
  ]
    .filter(Boolean)
    .join('\n');
}

/** Undefined if the advice or the line before it already names the setting. */
const findUnnamedSetting = ({ setting, what, remedy }: Finding) =>
  setting === undefined || what.startsWith(setting) || remedy?.includes(setting)
    ? undefined
    : setting;

function renderSummary(findings: readonly Finding[]) {
  const count = (status: Status) => findings.filter((one) => one.status === status).length;
  const others = [
    countNoun(count('warning'), 'warning'),
    `${count('unknown')} not known`,
    `${count('ok')} fine`,
  ].filter((part) => !part.startsWith('0 '));
  const failures = count('failure') === 0 ? 'No failures' : countNoun(count('failure'), 'failure');
  return `${[failures, ...others].join(', ')}.`;
}

/** Failures that block everything else come first; others follow in the order they were found. */
const ROOTS = [/^settings(\.|$)/, /^store(\.|$)/, /^gateway\.(reachable|certificate)$/, /^/];

/** One sentence: what to fix first, and how. Undefined if nothing failed. */
function renderStart(findings: readonly Finding[]) {
  const failures = findings.filter(({ status }) => status === 'failure');
  const first = ROOTS.map((name) => failures.find(({ check }) => name.test(check))).find(Boolean);
  // The correct value of an invalid setting may be under a misspelled name.
  const misspelled = findings.find(
    ({ check, setting }) =>
      check === MISSPELLED &&
      setting !== undefined &&
      first?.setting?.split(', ').includes(setting),
  );
  const finding = misspelled ?? first;
  if (finding === undefined) return undefined;
  const { what, remedy } = finding;
  const unnamed = findUnnamedSetting(finding);
  const named = unnamed === undefined ? '' : ` (${unnamed})`;
  // A finding about a setting already says what to write.
  const said =
    remedy === undefined || finding.check === 'settings'
      ? `${endSentence(what)}${named}`
      : `${endSentence(takeFirstSentence(what))}${named}: ${endSentence(takeFirstSentence(remedy))}`;
  return wrap(`Start here: ${said}.`, 0);
}

const endSentence = (text: string) => text.replace(/\.$/, '');

const takeFirstSentence = (text: string) => /^.*?[.?](?=\s+\p{Lu}|$)/su.exec(text)?.[0] ?? text;

/** In characters; doctor's own messages are far shorter. */
const MAX_TEXT = 2000;

/** Wraps at spaces; a long URL stays whole, so that it can be copied. */
function wrap(text: string, indent: number) {
  // Text from servers and tokens is escaped and shortened, so that it cannot take over the terminal.
  const visible = shorten(text, MAX_TEXT).replace(/[\p{Cc}\p{Cf}]+/gu, ' ');
  const lines = new RegExp(`(.{1,${WIDTH - indent}}|[^ ]+)(?: |$)`, 'gs');
  return visible.replace(lines, `$1\n${' '.repeat(indent)}`).trimEnd();
}
