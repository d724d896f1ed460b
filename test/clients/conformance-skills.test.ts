// The official conformance tool's scenarios for skills (SEP-2640): the gateway's own, and those of a server of either era behind it.
// Warnings count as failures.
import { beforeAll, expect, test } from 'vitest';
import { createLocalCatalog } from '../../src/index.ts';
import { freePort } from '../support/gateway/ports.ts';
import { closeAfterTest } from '../support/lifetimes.ts';
import {
  type ConformanceTool,
  INSTALLATION_MS,
  installConformance,
  runConformance,
} from '../support/tools/conformance.ts';
import { startConformanceGateway } from '../support/tools/conformance-gateway.ts';
import { readFile } from '../support/upstreams/gateway-file.ts';

const SLOW = { timeout: 120_000 } as const;

const SCENARIOS = ['enumeration', 'manifest', 'directory'] as const;

let tool: ConformanceTool;

beforeAll(async () => {
  tool = await installConformance();
}, INSTALLATION_MS);

const start = async (deps?: Parameters<typeof startConformanceGateway>[1]) =>
  closeAfterTest(await startConformanceGateway({ PORT: String(await freePort()) }, deps));

async function passAll(url: string, signal: AbortSignal): Promise<void> {
  for (const name of SCENARIOS) {
    const scenario = `sep-2640-skills-${name}`;
    const args = ['server', '--url', url, '--scenario', scenario];
    const { report, exitCode, output } = await runConformance(tool, { args, signal });
    const checks = report[scenario] ?? [];
    expect(checks.length, output).toBeGreaterThan(5);
    expect(checks.filter((check) => !check.includes(': SUCCESS'))).toEqual([]);
    expect(exitCode, output).toBe(0);
  }
}

test('§31.1 conformance: the scenarios of skills pass', SLOW, async ({ signal }) => {
  const { mcpUrl } = await start();
  await passAll(mcpUrl, signal);
});

test.for(['session', 'stateless'])(
  '§31.3 conformance: they pass through the gateway before a server of the %s era',
  SLOW,
  async (era, { signal }) => {
    const behind = await start();
    const file = await readFile({ mcpServers: { it: { url: behind.mcpUrl, era } } });
    const { mcpUrl } = await start({ file, catalog: createLocalCatalog({}) });
    await passAll(mcpUrl, signal);
    await passAll(`${mcpUrl}/it`, signal);
  },
);
