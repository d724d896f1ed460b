// npm run bench -- calls --node 24,26: what a call and a start cost on other versions of Node.js, beside the one that runs.
import { type Contestant, selectContestants } from './contestants.ts';
import { describeMachine } from './machine.ts';
import { findNodes, type NodeVersion } from './node-versions.ts';
import type { Options } from './options.ts';
import { type NodeResult, publish } from './published.ts';
import { computeFigures, computeMedian, computeRatio } from './results.ts';
import { prepareRunner, type Runner, runRounds } from './rounds.ts';
import { openTestbed, type Testbed } from './testbed.ts';

/** Unless `--only` names others: Postern as it runs by default, and the floor, which is Node.js for the most part. */
const CONTESTANTS = [
  'floor-remembering',
  'redis-session-remembered',
  'redis-stateless-remembered',
  'embedded-session-remembered',
];
const CONNECTIONS = 32;
const STARTS = 10;

interface OnNode {
  readonly node: NodeVersion;
  readonly contestant: Contestant;
}

export async function measureNodes(options: Options): Promise<void> {
  const { only, plan: asked, isPublished, nodes: majors } = options;
  const plan = { ...asked, connections: [CONNECTIONS] };
  const nodes = findNodes(majors);
  const contestants = selectContestants(only.length > 0 ? only : CONTESTANTS);
  const machine = describeMachine();
  const testbed = await openTestbed(contestants);
  try {
    const runners: Runner[] = [];
    const places: OnNode[] = contestants.flatMap((contestant) =>
      nodes.map((node) => ({ node, contestant })),
    );
    for (const { node, contestant } of places) {
      const named = { ...contestant, name: nameOf(contestant.name, node) };
      runners.push(await prepareRunner(testbed, runOn(named, node), plan));
    }
    const series = await runRounds(testbed, runners, plan);
    const results: NodeResult[] = [];
    for (const { node, contestant } of places) {
      const name = nameOf(contestant.name, node);
      const found = series.find((one) => one.contestant === name);
      const [own] = nodes;
      if (found === undefined || own === undefined) continue;
      const cpuRatio = computeRatio(series, {
        of: name,
        by: nameOf(contestant.name, own),
        connections: CONNECTIONS,
        measure: 'cpuMicroseconds',
      });
      const { version } = node;
      results.push({
        ...computeFigures(found),
        contestant: contestant.name,
        version,
        ...(cpuRatio !== undefined && { cpuRatio }),
      });
    }
    for (const { server } of runners) await server.stop();
    const starts = await measureStarts(testbed, nodes);
    console.table(results);
    console.table(starts);
    if (isPublished) publish({ nodes: { machine, plan, results, starts } });
  } finally {
    await testbed.close();
  }
}

const nameOf = (contestant: string, { major }: NodeVersion) => `${contestant}, Node.js ${major}`;

const runOn = (contestant: Contestant, { program }: NodeVersion): Contestant => ({
  ...contestant,
  command: (surroundings) => ({ program, ...contestant.command(surroundings) }),
});

/** Milliseconds to the first answer by version, in turn. */
async function measureStarts(
  testbed: Testbed,
  nodes: readonly NodeVersion[],
): Promise<Readonly<Record<string, number>>> {
  const times = new Map(nodes.map(({ version }) => [version, [] as number[]]));
  const [postern] = selectContestants(['redis-session-remembered']);
  if (postern === undefined) throw new Error('There is no Postern');
  for (let n = 0; n < STARTS; n++) {
    for (const node of nodes) {
      const server = await testbed.start(runOn(postern, node).command);
      times.get(node.version)?.push(server.startMs);
      await server.stop();
    }
  }
  return Object.fromEntries([...times].map(([version, all]) => [version, computeMedian(all)]));
}
