// The checks of a running gateway, up to the first after which others would say nothing more.
import type { Check, Finding } from '../finding.ts';
import { hasFailure } from '../render.ts';
import { type Report, runChecks } from '../run-checks.ts';
import { BASE_URL_CHECK } from './check-challenge.ts';
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
  return isElsewhere ? entry : [...entry, ...(await runChecks(checks, walk, report))];
}
