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

const [SESSIONS, STATELESS] = SETS;

/** Lists may change here whenever a configuration does. A tool of the server says that it changed them, and does not. */
const UNCHANGED_LISTS = 'server-stateless';

const ROWS = [
  { ofClient: SESSIONS, server: 'both eras', absent: [], warned: [] },
  { ofClient: SESSIONS, server: 'sessions only', absent: [], warned: [] },
  {
    ofClient: STATELESS,
    server: 'both eras',
    absent: [],
    warned: [...STATELESS.warned, UNCHANGED_LISTS],
  },
  {
    ofClient: STATELESS,
    server: 'sessions only',
    // A server with sessions asks one thing after the other, names none of its questions, and does not say which
    // capability it misses.
    absent: [
      UNCHANGED_LISTS,
      'input-required-result-basic-elicitation',
      'input-required-result-multiple-input-requests',
    ],
    warned: STATELESS.warned,
  },
] as const;

test.for(ROWS)(
  '§18.3 conformance through the gateway: $ofClient.requirements, a server of $server',
  SLOW,
  async ({ ofClient, server, absent, warned }, { signal }) => {
    const behind = await start();
    const url =
      server === 'both eras'
        ? behind.mcpUrl
        : closeAfterTest(await hideStatelessEra(behind.mcpUrl)).url;
    const mcpServers = { behind: { url, prefix: '', roots: true } };
    const { mcpUrl } = await start({ file: await readFile({ builtIn: false, mcpServers }) });
    const verdict = await runSet(tool, ofClient, { url: mcpUrl, signal });
    const { required, complaints, output } = verdict;
    expect(Object.keys(complaints).toSorted(), output).toEqual([...absent, ...warned].toSorted());
    expect(required.failed.toSorted(), output).toEqual([...absent].toSorted());
    expect(required.passed, output).toHaveLength(ofClient.scenarios - absent.length);
  },
);
