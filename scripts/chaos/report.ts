// The figures as a table, a row as soon as its fault has ended.
import type { Check, Outcome } from './fault.ts';

interface Column {
  readonly title: string;
  readonly width: number;
  write(result: Result): string;
}

export interface Result {
  /** Names of the fault and the way of counting. */
  readonly name: string;
  readonly outcome: Outcome;
  /** Checks of times are printed and not judged. */
  readonly judgesTimes: boolean;
}

const COLUMNS: readonly Column[] = [
  { title: 'fault', width: -30, write: ({ name }) => name },
  { title: 'calls', width: 8, write: ({ outcome }) => String(outcome.tally.calls) },
  { title: 'good', width: 8, write: ({ outcome }) => String(outcome.tally.count('good')) },
  { title: 'refused', width: 8, write: ({ outcome }) => String(outcome.tally.count('refused')) },
  { title: 'wrong', width: 6, write: ({ outcome }) => String(outcome.tally.count('wrong')) },
  { title: 'p99 ms', width: 7, write: ({ outcome }) => writeMs(outcome.tally.percentile(0.99)) },
  { title: 'slowest ms', width: 10, write: ({ outcome }) => writeMs(outcome.tally.slowestMs) },
  { title: 'recovery ms', width: 11, write: ({ outcome }) => writeMs(outcome.recoveryMs) },
  { title: 'verdict', width: -8, write: (result) => (isReached(result) ? 'reached' : 'missed') },
];

export const isReached = (result: Result): boolean => findMissed(result).length === 0;

export function printHead(): void {
  console.log(COLUMNS.map(({ title, width }) => pad(title, width)).join('  '));
}

export function printResult(result: Result): void {
  console.log(COLUMNS.map((column) => pad(column.write(result), column.width)).join('  '));
  const missed = new Set(findMissed(result));
  for (const check of listChecks(result)) {
    const mark = missed.has(check) ? '✗' : check.isReached ? '·' : '!';
    console.log(`    ${mark} ${check.what}; it was ${check.found}`);
  }
  for (const story of result.outcome.tally.wrongStories) console.log(`    ✗ ${story}`);
}

/** Every fault has this one, whatever else it checks. */
function listChecks({ outcome }: Result): readonly Check[] {
  const wrong = outcome.tally.count('wrong');
  return [
    { what: 'wrong answers: 0', found: String(wrong), isReached: wrong === 0, isTime: false },
    ...outcome.checks,
  ];
}

const findMissed = (result: Result): readonly Check[] =>
  listChecks(result).filter((check) => !check.isReached && (result.judgesTimes || !check.isTime));

const writeMs = (ms = Number.NaN) => (Number.isNaN(ms) ? '–' : String(Math.round(ms)));

/** A negative width is of a column that begins on the left. */
const pad = (text: string, width: number) =>
  width < 0 ? text.padEnd(-width) : text.padStart(width);
