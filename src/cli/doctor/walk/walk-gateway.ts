// The checks of a running gateway, up to the first after which others would say nothing more.
import { type Check, type Finding, unknown } from '../finding.ts';
import { hasFailure } from '../render.ts';
import { type Report, runChecks } from '../run-checks.ts';
import { BASE_URL_CHECK } from './check-challenge.ts';
import { STORE_CHECK } from './check-health.ts';
import type { Walk } from './walk.ts';
import { ENTRY_CHECKS } from './walk-checks.ts';

/** Of a gateway that was reached: all of `checks`, unless it sends clients to another address. */
export async function walkGateway(
  walk: Walk,
  checks: readonly Check<Walk>[],
  report: Report,
): Promise<readonly Finding[]> {
  const entry = await runChecks(ENTRY_CHECKS, walk, report);
  const isElsewhere = hasFailure(entry.filter(({ check }) => check === BASE_URL_CHECK));
  if (isElsewhere) return entry;
  const possible = lacksStore(entry) ? leaveOutWithoutStore(checks) : checks;
  return [...entry, ...(await runChecks(possible, walk, report))];
}

export const lacksStore = (findings: readonly Finding[]): boolean =>
  findings.some(({ check, status }) => check === STORE_CHECK && status === 'failure');

/** Once for each thing that stays unknown. */
function leaveOutWithoutStore(checks: readonly Check<Walk>[]): readonly Check<Walk>[] {
  const told = new Set<string>();
  return checks.flatMap((check) => {
    const { section, needsStore } = check;
    if (needsStore === undefined) return [check];
    if (told.has(needsStore)) return [];
    told.add(needsStore);
    const run = async () => [
      unknown('not-tried', `${needsStore}. Not tried: the store does not answer.`),
    ];
    return [{ section, run }];
  });
}
