// How long the list of 1,000 tools of 20 servers takes, from the gateway's memory.
import { type Era, runPostern } from '../contestants.ts';
import { openTestbed, type Testbed } from '../testbed.ts';
import { nameInFile, startUpstream } from './upstreams.ts';

const SERVERS = 20;
const TOOLS_EACH = 50;
const WARM_UPS = 20;
const LISTS = 51;
const GOAL_MS = 10;

export async function measureLists(): Promise<void> {
  const testbed = await openTestbed();
  const upstream = await startUpstream('stateless', TOOLS_EACH);
  try {
    const names = Array.from({ length: SERVERS }, (_, n) => [`server${n}`, { url: upstream.url }]);
    const args = await nameInFile(testbed.folder, 'lists', Object.fromEntries(names));
    for (const era of ['session', 'stateless'] as const) {
      const { times, cpuMs } = await timeLists(testbed, args, era);
      const median = times[(LISTS - 1) / 2] ?? Number.NaN;
      console.log(
        `${era}: ${SERVERS * TOOLS_EACH} tools of ${SERVERS} servers listed in ${median.toFixed(1)} ms (p50 of ${LISTS}, the least ${times[0]?.toFixed(1)}; goal: under ${GOAL_MS}), of which ${cpuMs.toFixed(1)} ms are CPU of the gateway`,
      );
    }
  } finally {
    await upstream.stop();
    await testbed.close();
  }
}

interface ListTimes {
  /** Milliseconds with the way to the gateway and back, in order. */
  readonly times: readonly number[];
  /** Of the gateway, for each list. */
  readonly cpuMs: number;
}

async function timeLists(testbed: Testbed, args: readonly string[], era: Era): Promise<ListTimes> {
  const server = await testbed.start(runPostern('embedded', {}, args));
  const { url, headers } = await testbed.createCall(server, era);
  const body = renderList(era);
  const listHeaders = era === 'session' ? headers : toListHeaders(headers);

  async function list(): Promise<number> {
    const startedAt = performance.now();
    const response = await fetch(url, { method: 'POST', headers: listHeaders, body });
    const text = await response.text();
    const elapsed = performance.now() - startedAt;
    const count = JSON.parse(text).result?.tools?.length;
    if (count !== SERVERS * TOOLS_EACH) throw new Error(`${count} tools: ${text.slice(0, 500)}`);
    return elapsed;
  }

  const times: number[] = [];
  for (let n = 0; n < WARM_UPS; n += 1) await list();
  const cpuBefore = server.readCpuSeconds();
  for (let n = 0; n < LISTS; n += 1) times.push(await list());
  const cpuMs = ((server.readCpuSeconds() - cpuBefore) * 1000) / LISTS;
  await server.stop();
  return { times: times.sort((one, other) => one - other), cpuMs };
}

function toListHeaders({
  'mcp-name': _,
  ...headers
}: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return { ...headers, 'mcp-method': 'tools/list' };
}

const renderList = (era: Era): string =>
  JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/list',
    params: era === 'session' ? {} : { _meta: STATELESS_META },
  });

const STATELESS_META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};
