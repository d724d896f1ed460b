// Which of several failures is the one to begin with: others may go with it.
import type { Finding } from './finding.ts';

/** What nothing else works without comes first; failures of other kinds follow in the order in which they were found. */
const ROOTS = [/^settings$/, /^store(\.|$)/, /^gateway\.(reachable|certificate)$/];

/** Undefined where nothing failed. */
export function findFirstToMend(findings: readonly Finding[]): Finding | undefined {
  const failures = findings.filter(({ status }) => status === 'failure');
  const root = ROOTS.map((name) => failures.find(({ check }) => name.test(check))).find(Boolean);
  return root ?? failures[0];
}
