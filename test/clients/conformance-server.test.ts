// The official conformance tool's scenarios for servers, all that it requires of both revisions.
// Its warnings count as failures here, too.
import { beforeAll, expect, test } from 'vitest';
import { freePort } from '../support/gateway/ports.ts';
import { closeAfterTest, useShared } from '../support/lifetimes.ts';
import { startRedis } from '../support/stores/redis.ts';
import {
  type ConformanceTool,
  INSTALLATION_MS,
  installConformance,
} from '../support/tools/conformance.ts';
import {
  type ConformanceGateway,
  startConformanceGateway,
} from '../support/tools/conformance-gateway.ts';
import { type RequirementSet, runSet, SETS } from '../support/tools/conformance-sets.ts';

const SLOW = { timeout: 120_000 } as const;

let tool: ConformanceTool;
const redis = useShared(startRedis);
let gateway: ConformanceGateway;

beforeAll(async () => {
  tool = await installConformance();
}, INSTALLATION_MS);

test.for(SETS)(
  '§4.4 conformance: $requirements, all $scenarios required scenarios pass',
  SLOW,
  async (set, { signal }) => {
    await passes(set, {}, signal);
  },
);

test('§4.4 conformance: the session era passes on Redis, too', SLOW, async ({ signal }) => {
  await passes(SETS[0], { REDIS_URL: redis.url }, signal);
});

async function passes(
  set: RequirementSet,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<void> {
  gateway = closeAfterTest(
    await startConformanceGateway({ PORT: String(await freePort()), ...env }),
  );
  const errand = { url: gateway.mcpUrl, signal };
  const { required, complaints, exitCode, output } = await runSet(tool, set, errand);
  expect(Object.keys(complaints), output).toEqual(set.warned);
  expect(Object.values(complaints).flat().join(), output).not.toContain('FAILURE');
  expect(required.failed, output).toEqual([]);
  expect(required.passed, output).toHaveLength(set.scenarios);
  expect(exitCode, output).toBe(0);
}
