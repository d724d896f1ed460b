import { describeCause } from '../../platform/log.ts';
import { type Check, type Finding, unknown } from './finding.ts';

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
    return await run(subject);
  } catch (error) {
    return [
      unknown(
        'check-failed',
        `what comes next: it could not be checked (${describeCause(error)}).`,
      ),
    ];
  }
}
