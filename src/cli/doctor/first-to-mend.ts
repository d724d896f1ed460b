// Which of several findings is the one to begin with: others may go with it.
import type { Finding } from './finding.ts';

/** The name of the check that finds settings under a name that Postern does not know. */
export const MISSPELLED = 'settings.misspelled';

/** What nothing else works without comes first; failures of other kinds follow in the order in which they were found. */
const ROOTS = [/^settings(\.|$)/, /^store(\.|$)/, /^gateway\.(reachable|certificate)$/];

/** Undefined where nothing failed. */
export function findFirstToMend(findings: readonly Finding[]): Finding | undefined {
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
