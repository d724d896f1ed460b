// The official conformance tool's scenarios for servers, against a gateway that serves nothing of its own.
import { beforeAll, expect, test } from 'vitest';
import { freePort } from '../support/gateway/ports.ts';
import { closeAfterTest } from '../support/lifetimes.ts';
import {
  type ConformanceTool,
  INSTALLATION_MS,
  installConformance,
} from '../support/tools/conformance.ts';
import { PATHS, ROWS, startGatewayBefore } from '../support/tools/conformance-behind.ts';
import { startConformanceGateway } from '../support/tools/conformance-gateway.ts';
import { countScenarios, runSet } from '../support/tools/conformance-sets.ts';

const SLOW = { timeout: 180_000 } as const;

let tool: ConformanceTool;

beforeAll(async () => {
  tool = await installConformance();
}, INSTALLATION_MS);

const [WHOLE, OF_SERVER] = PATHS;
/** At the server's own path those of one era: how the eras are translated does not depend on the path. */
const CASES = [
  ...ROWS.map((row) => ({ ...row, path: WHOLE })),
  ...ROWS.filter(({ absent }) => absent.length === 0).map((row) => ({ ...row, path: OF_SERVER })),
];

test.for(CASES)(
  '§18.3 conformance through the gateway: $set.requirements at /mcp$path, a server of the $era era',
  SLOW,
  async ({ set, era, path, absent, warned }, { signal }) => {
    const port = String(await freePort());
    const behind = closeAfterTest(await startConformanceGateway({ PORT: port }));
    const { mcpUrl } = closeAfterTest(await startGatewayBefore(behind.mcpUrl, era));
    const verdict = await runSet(tool, set, { url: `${mcpUrl}${path}`, signal });
    const { passed, failed, complaints, output } = verdict;
    const unexpected = Object.keys(complaints).filter((scenario) => !absent.includes(scenario));
    expect(unexpected.toSorted(), output).toEqual([...warned].toSorted());
    expect(failed.toSorted(), output).toEqual([...absent].toSorted());
    expect(passed, output).toHaveLength(countScenarios(set) - absent.length);
  },
);
