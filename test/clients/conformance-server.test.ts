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
import {
  type ConformanceGateway,
  startConformanceGateway,
} from '../support/tools/conformance-gateway.ts';
import {
  countScenarios,
  runSet,
  type ScenarioSet,
  SETS,
  UNWRITTEN_SCENARIO,
} from '../support/tools/conformance-sets.ts';

const SLOW = { timeout: 120_000 } as const;

let tool: ConformanceTool;
const redis = useShared(startRedis);
let gateway: ConformanceGateway;

beforeAll(async () => {
  tool = await installConformance();
}, INSTALLATION_MS);

test.for(SETS)(
  '§4.4 conformance: $requirements, all $required required scenarios pass, and all others',
  SLOW,
  async (set, { signal }) => {
    await passes(set, {}, signal);
  },
);

test('§4.4 conformance: the session era passes on Redis, too', SLOW, async ({ signal }) => {
  await passes(SETS[0], { REDIS_URL: redis.url }, signal);
});

test('§4.4 conformance: no scenario of the tool is left out', SLOW, async ({ signal }) => {
  gateway = closeAfterTest(await startConformanceGateway({ PORT: String(await freePort()) }));
  const run = new Set<string>([UNWRITTEN_SCENARIO]);
  for (const set of SETS) {
    const { passed, failed } = await runSet(tool, set, { url: gateway.mcpUrl, signal });
    for (const scenario of [...passed, ...failed]) run.add(scenario);
  }
  expect((await listServerScenarios(tool, signal)).toSorted()).toEqual([...run].toSorted());
});

async function passes(
  set: ScenarioSet,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<void> {
  gateway = closeAfterTest(
    await startConformanceGateway({ PORT: String(await freePort()), ...env }),
  );
  const errand = { url: gateway.mcpUrl, signal };
  const { passed, failed, complaints, exitCode, output } = await runSet(tool, set, errand);
  expect(Object.keys(complaints), output).toEqual(set.warned);
  expect(Object.values(complaints).flat().join(), output).not.toContain('FAILURE');
  expect(failed, output).toEqual([]);
  expect(passed, output).toEqual(expect.arrayContaining([...set.besides]));
  expect(passed, output).toHaveLength(countScenarios(set));
  expect(exitCode, output).toBe(0);
}
