// What this gateway has to pass of the official conformance tool: no list of expected failures.
import {
  type ConformanceTool,
  type Report,
  runServerConformance,
  type ServerErrand,
  type ServerVerdict,
} from './conformance.ts';

export interface RequirementSet {
  readonly requirements: ServerErrand['requirements'];
  /** How many scenarios the revision requires. */
  readonly scenarios: number;
  /** Scenarios that pass with a warning, by a decision of ours. */
  readonly warned: readonly string[];
}

export interface SetVerdict extends ServerVerdict {
  readonly set: RequirementSet;
  /** By required scenario, what was a failure or a warning, and why; empty when all went well. */
  readonly complaints: Report;
}

export const SETS = [
  { requirements: '2025-11-25', scenarios: 30, warned: [] },
  {
    requirements: '2026-07-28',
    scenarios: 37,
    // It sends answers, known and unknown ones, to a tool that has not asked yet; here those count only
    // with the requestState that asked (§15). That unknown ones are ignored is tested besides.
    warned: ['input-required-result-ignore-extra-params'],
  },
] as const satisfies readonly RequirementSet[];

/** All scenarios of one set, against the gateway at `url`. */
export async function runSet(
  tool: ConformanceTool,
  set: RequirementSet,
  errand: Omit<ServerErrand, 'requirements'>,
): Promise<SetVerdict> {
  const verdict = await runServerConformance(tool, {
    ...errand,
    requirements: set.requirements,
  });
  return { ...verdict, set, complaints: complaintsIn(verdict) };
}

function complaintsIn({ required: { passed, failed }, report }: ServerVerdict): Report {
  const complaints = [...passed, ...failed].map((scenario): [string, readonly string[]] => {
    const checks = report[scenario] ?? [`${scenario}: FAILURE, it left no result`];
    return [scenario, checks.filter((check) => COMPLAINT.test(check))];
  });
  return Object.fromEntries(complaints.filter(([, checks]) => checks.length > 0));
}

/** Of a check, as reports write it. */
const COMPLAINT = /^\S+: (FAILURE|WARNING)\b/;
