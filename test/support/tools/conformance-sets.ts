// What this gateway has to pass of the official conformance tool: no list of expected failures.
import {
  type ConformanceTool,
  type Report,
  runServerConformance,
  runServerScenario,
  type Score,
  type ServerErrand,
} from './conformance.ts';

export interface ScenarioSet {
  readonly requirements: ServerErrand['requirements'];
  /** How many scenarios the revision requires. */
  readonly required: number;
  /** What the tool tests at this revision besides, and never scores. */
  readonly besides: readonly string[];
  /** Scenarios that pass with a warning, by a decision of ours. */
  readonly warned: readonly string[];
}

/** Nothing has passed by which nothing was found right, as where a feature is not there. */
export interface SetVerdict extends Score {
  readonly set: ScenarioSet;
  /** By scenario, what was a failure or a warning, and why; empty when all went well. */
  readonly complaints: Report;
  readonly exitCode: number | null;
  /** All that the tool printed. */
  readonly output: string;
}

export const TASK_SCENARIOS = [
  'tasks-lifecycle',
  'tasks-capability-negotiation',
  'tasks-wire-fields',
  'tasks-request-state-removal',
  'tasks-mrtr-input',
  'tasks-request-headers',
  'tasks-dispatch-and-envelope',
  'tasks-required-task-error',
  'tasks-mrtr-composition',
] as const;

/** A place that the tool keeps for what it will test: it looks at nothing yet. */
export const UNWRITTEN_SCENARIO = 'tasks-status-notifications';

/** No revision names these, so each runs alone, at both. */
export const UNNAMED_SCENARIOS = [
  'sep-2640-skills-directory',
  'sep-2640-skills-enumeration',
  'sep-2640-skills-manifest',
] as const;

export const SETS = [
  {
    requirements: '2025-11-25',
    required: 30,
    besides: ['server-session-lifecycle', 'json-schema-2020-12', 'server-sse-polling'],
    warned: [],
  },
  {
    requirements: '2026-07-28',
    required: 37,
    besides: [
      ...TASK_SCENARIOS,
      'json-schema-2020-12',
      'http-header-validation',
      'http-custom-header-server-validation',
    ],
    // It sends answers, known and unknown ones, to a tool that has not asked yet; here those count only
    // with the requestState that asked (§15). That unknown ones are ignored is tested besides.
    warned: ['input-required-result-ignore-extra-params'],
  },
] as const satisfies readonly ScenarioSet[];

export const countScenarios = ({ required, besides }: ScenarioSet): number =>
  required + besides.length + UNNAMED_SCENARIOS.length;

/** All scenarios of one set, against the gateway at `url`. */
export async function runSet(
  tool: ConformanceTool,
  set: ScenarioSet,
  errand: Omit<ServerErrand, 'requirements'>,
): Promise<SetVerdict> {
  const { requirements } = set;
  const named = await runServerConformance(tool, { ...errand, requirements });
  let { report, output } = named;
  const unbroken = [...named.required.passed, ...named.notScored.passed];
  const failed = [...named.required.failed, ...named.notScored.failed];
  for (const scenario of UNNAMED_SCENARIOS) {
    const alone = await runServerScenario(tool, { ...errand, requirements, scenario });
    report = { ...report, ...alone.report };
    output += alone.output;
    (alone.exitCode === 0 ? unbroken : failed).push(scenario);
  }
  const complaints = complaintsIn([...unbroken, ...failed], report);
  const passed = unbroken.filter((scenario) => report[scenario]?.some((it) => SUCCESS.test(it)));
  const unproven = unbroken.filter((scenario) => !passed.includes(scenario));
  failed.push(...unproven.filter((scenario) => scenario !== UNWRITTEN_SCENARIO));
  return { set, passed, failed, complaints, exitCode: named.exitCode, output };
}

function complaintsIn(scenarios: readonly string[], report: Report): Report {
  const complaints = scenarios.map((scenario): [string, readonly string[]] => {
    const checks = report[scenario] ?? [`${scenario}: FAILURE, it left no result`];
    return [scenario, checks.filter((check) => COMPLAINT.test(check))];
  });
  return Object.fromEntries(complaints.filter(([, checks]) => checks.length > 0));
}

/** Of a check, as reports write it. */
const COMPLAINT = /^\S+: (FAILURE|WARNING)\b/;
const SUCCESS = /^\S+: SUCCESS\b/;
