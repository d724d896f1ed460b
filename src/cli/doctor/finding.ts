// What `postern doctor` finds, and how it looks for it.
import { describeCause } from '../../platform/log.ts';

/** `unknown`: it could not be found out. This is printed, and does not count as a failure. */
export type Status = 'ok' | 'warning' | 'failure' | 'unknown';

export interface Finding {
  /** Stable: programs, and docs/doctor.md, know it by this name. */
  readonly check: string;
  readonly status: Status;
  /** A sentence: what was seen. No secret is in it. */
  readonly what: string;
  /** What it means, where `what` does not say it. */
  readonly why?: string;
  /** The setting to change; several are separated by commas. */
  readonly setting?: string;
  readonly remedy?: string;
}

export type Advice = Pick<Finding, 'why' | 'setting' | 'remedy'>;

/** One row of the table of checks. What it throws is a finding of its own. */
export interface Check<Subject> {
  readonly section: string;
  /** Where it can only run while the store answers: what is unknown otherwise, to follow "Not known:". */
  readonly needsStore?: string;
  readonly run: (subject: Subject) => Promise<Found>;
}

/** One thing, several or nothing. */
export type Found = Finding | undefined | readonly (Finding | undefined)[];

/** What was seen, alone or with what to do about it. */
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
