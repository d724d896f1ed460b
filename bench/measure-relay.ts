// npm run bench -- relay: what it costs to pass a call on to a server behind the gateway, compared with the
// same call to a tool of the gateway's own. The server's own CPU is not counted: it runs beside the load.
import { type Contestant, type Era, runPostern } from './contestants.ts';
import type { Options } from './options.ts';
import { measureConnections } from './relay/measure-connections.ts';
import { measureLists } from './relay/measure-lists.ts';
import { measureLong } from './relay/measure-long.ts';
import { measureRelayProfile } from './relay/measure-profile.ts';
import { measureSessions } from './relay/measure-sessions.ts';
import { measureTable } from './relay/measure-table.ts';
import { nameInFile, startUpstream } from './relay/upstreams.ts';
import { computeFigures } from './results.ts';
import { prepareRunner, type Runner, runRounds } from './rounds.ts';
import type { ServerProcess } from './server-process.ts';
import { openTestbed, type Testbed } from './testbed.ts';

const ERAS = ['session', 'stateless'] as const;
const STORES = ['redis', 'embedded'] as const;

const PARTS: Readonly<Record<string, (options: Options) => Promise<void>>> = {
  table: measureTable,
  calls: measureCalls,
  lists: measureLists,
  long: measureLong,
  sessions: measureSessions,
  connections: measureConnections,
  profile: measureRelayProfile,
};

/** `--only` names some of the parts. */
export async function measureRelay(options: Options): Promise<void> {
  const { only } = options;
  const unknown = only.filter((name) => PARTS[name] === undefined);
  if (unknown.length > 0) {
    throw new Error(
      `relay has the parts ${Object.keys(PARTS).join(', ')}, not ${unknown.join(', ')}.`,
    );
  }
  for (const [name, measure] of Object.entries(PARTS)) {
    if (only.length === 0 || only.includes(name)) await measure(options);
  }
}

async function measureCalls({ plan }: Options): Promise<void> {
  const testbed = await openTestbed();
  const upstreams: ServerProcess[] = [];
  try {
    const runners: Runner[] = [];
    for (const contestant of await listContestants(testbed, upstreams)) {
      runners.push(await prepareRunner(testbed, contestant, plan));
    }
    const figures = (await runRounds(testbed, runners, plan)).map(computeFigures);
    for (const connections of plan.connections) {
      const rows = figures.filter((row) => row.connections === connections);
      console.log(`\n${connections} ${connections === 1 ? 'connection' : 'connections'}`);
      console.table(Object.fromEntries(rows.map((row) => [row.contestant, toRow(row, rows)])));
    }
  } finally {
    await Promise.all(upstreams.map((upstream) => upstream.stop()));
    await testbed.close();
  }
}

type Figures = ReturnType<typeof computeFigures>;

function toRow(row: Figures, rows: readonly Figures[]) {
  if (row.flaw !== undefined) return { 'CPU µs': 'void', why: row.flaw };
  const builtIn = rows.find(
    ({ contestant }) => contestant === `${row.contestant.split(':')[0]}: built-in`,
  );
  return {
    'CPU µs': round(row.cpuMicroseconds),
    '+ µs': round(row.cpuMicroseconds - (builtIn?.cpuMicroseconds ?? Number.NaN)),
    'p50 ms': round(row.p50Ms),
    '+ ms': round(row.p50Ms - (builtIn?.p50Ms ?? Number.NaN)),
    'p99 ms': round(row.p99Ms),
    'requests/s': Math.round(row.requestsPerSecond),
    MB: Math.round(row.residentMb),
  };
}

const round = (value: number): number => Number(value.toFixed(2));

/**
 * For each store and era of the client: the built-in tool, a tool that asks the server itself by undici alone, and the
 * tool of a server of either era.
 */
async function listContestants(
  { folder }: Testbed,
  upstreams: ServerProcess[],
): Promise<readonly Contestant[]> {
  const files = new Map<Era, readonly string[]>();
  let statelessUrl = '';
  for (const era of ERAS) {
    const upstream = await startUpstream(era);
    upstreams.push(upstream);
    if (era === 'stateless') statelessUrl = upstream.url;
    const mcpServers = { bare: { url: upstream.url, prefix: '' } };
    files.set(era, await nameInFile(folder, era, mcpServers));
  }
  const asking = { UPSTREAM_URL: statelessUrl };
  return STORES.flatMap((store) =>
    ERAS.flatMap((era) => [
      createContestant(`${store}, ${era}: built-in`, era, runPostern(store)),
      createContestant(
        `${store}, ${era}: tool with undici`,
        era,
        runPostern(store, asking, ['--catalog', 'bench/relay/asking-catalog.mjs']),
      ),
      ...[...files].map(([upstreamEra, args]) =>
        createContestant(
          `${store}, ${era}: server of the ${upstreamEra} era`,
          era,
          runPostern(store, {}, args),
        ),
      ),
    ]),
  );
}

const createContestant = (name: string, era: Era, command: Contestant['command']): Contestant => ({
  name,
  label: name,
  era,
  command,
  isQuick: true,
});
