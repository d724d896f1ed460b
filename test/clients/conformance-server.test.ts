// The official conformance tool's scenarios for servers, all that it has for both revisions.
// Its warnings count as failures here, too.
import { beforeAll, expect, test } from 'vitest';
import { freePort } from '../support/gateway/ports.ts';
import { closeAfterTest, useShared } from '../support/lifetimes.ts';
import { startRedis } from '../support/stores/redis.ts';
import {
  type ConformanceTool,
  INSTALLATION_MS,
  installConformance,
  listServerScenarios,
} from '../support/tools/conformance.ts';
import { startConformanceGateway } from '../support/tools/conformance-gateway.ts';
import {
  countScenarios,
  runSet,
  type ScenarioSet,
  SETS,
  type SetVerdict,
  UNWRITTEN_SCENARIO,
} from '../support/tools/conformance-sets.ts';

const SLOW = { timeout: 120_000 } as const;

let tool: ConformanceTool;
const redis = useShared(startRedis);

beforeAll(async () => {
  tool = await installConformance();
}, INSTALLATION_MS);

/** Of each set, as the first test that asks has the tool find it. */
const verdicts = new Map<ScenarioSet, Promise<SetVerdict>>();

function judge(set: ScenarioSet, signal: AbortSignal): Promise<SetVerdict> {
  const verdict = verdicts.get(set) ?? run(set, {}, signal);
  verdicts.set(set, verdict);
  return verdict;
}

test.for(SETS)(
  '§4.4 conformance: $requirements, all $required required scenarios pass, and all others',
  SLOW,
  async (set, { signal }) => {
    expectAllPassed(await judge(set, signal));
  },
);

test('§4.4 conformance: the session era passes on Redis, too', SLOW, async ({ signal }) => {
  expectAllPassed(await run(SETS[0], { REDIS_URL: redis.url }, signal));
});

test('§4.4 conformance: no scenario of the tool is left out', SLOW, async ({ signal }) => {
  const seen = new Set<string>([UNWRITTEN_SCENARIO]);
  for (const set of SETS) {
    const { passed, failed } = await judge(set, signal);
    for (const scenario of [...passed, ...failed]) seen.add(scenario);
  }
  expect((await listServerScenarios(tool, signal)).toSorted()).toEqual([...seen].toSorted());
});

async function run(
  set: ScenarioSet,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<SetVerdict> {
  const gateway = closeAfterTest(
    await startConformanceGateway({ PORT: String(await freePort()), ...env }),
  );
  return runSet(tool, set, { url: gateway.mcpUrl, signal });
}

function expectAllPassed(verdict: SetVerdict): void {
  const { set, passed, failed, complaints, exitCode, output } = verdict;
  expect(Object.keys(complaints), output).toEqual(set.warned);
  expect(Object.values(complaints).flat().join(), output).not.toContain('FAILURE');
  expect(failed, output).toEqual([]);
  expect(passed, output).toEqual(expect.arrayContaining([...set.besides]));
  expect(passed, output).toHaveLength(countScenarios(set));
  expect(exitCode, output).toBe(0);
}
