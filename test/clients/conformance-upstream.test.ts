// The official conformance tool's scenarios for servers, against a gateway that serves nothing of its own: all stands on
// a server behind it, of the client's era and of the other.
import { beforeAll, expect, test } from 'vitest';
import { freePort } from '../support/gateway/ports.ts';
import { closeAfterTest } from '../support/lifetimes.ts';
import {
  type ConformanceTool,
  INSTALLATION_MS,
  installConformance,
} from '../support/tools/conformance.ts';
import { startConformanceGateway } from '../support/tools/conformance-gateway.ts';
import { runSet, SETS } from '../support/tools/conformance-sets.ts';
import { readFile } from '../support/upstreams/gateway-file.ts';
import { hideStatelessEra } from '../support/upstreams/one-era.ts';

const SLOW = { timeout: 180_000 } as const;

let tool: ConformanceTool;

beforeAll(async () => {
  tool = await installConformance();
}, INSTALLATION_MS);

const start = async (deps?: Parameters<typeof startConformanceGateway>[1]) =>
  closeAfterTest(await startConformanceGateway({ PORT: String(await freePort()) }, deps));

const rows = SETS.flatMap((set) =>
  (['both eras', 'sessions only'] as const).map((kind) => ({ set, kind })),
);

test.for(rows)(
  '§18.3 conformance through the gateway: $set.requirements, a server of $kind',
  SLOW,
  async ({ set, kind }, { signal }) => {
    const behind = await start();
    const url =
      kind === 'both eras'
        ? behind.mcpUrl
        : closeAfterTest(await hideStatelessEra(behind.mcpUrl)).url;
    const mcpServers = { behind: { url, prefix: '' } };
    const { mcpUrl } = await start({ file: readFile({ builtIn: false, mcpServers }) });
    const verdict = await runSet(tool, set, { url: mcpUrl, signal });
    const { required, complaints, exitCode, output } = verdict;
    expect(Object.keys(complaints), output).toEqual(set.warned);
    expect(Object.values(complaints).flat().join(), output).not.toContain('FAILURE');
    expect(required.failed, output).toEqual([]);
    expect(required.passed, output).toHaveLength(set.scenarios);
    expect(exitCode, output).toBe(0);
  },
);
