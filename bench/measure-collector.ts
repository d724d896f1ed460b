// npm run bench -- collector: how often and for how long the garbage collector pauses the service under load, with
// options of node beside one another.
import { freePort } from '../test/support/gateway/ports.ts';
import type { Call, Work } from './calls.ts';
import { checkAnswers } from './check-answers.ts';
import { type Command, runPostern } from './contestants.ts';
import type { Options } from './options.ts';
import { nameInFile, startUpstream } from './relay/upstreams.ts';
import { RELAY_SIZES, TOOLS } from './relay/ways.ts';
import { computeMedian } from './results.ts';
import { runRound } from './rounds.ts';
import type { ServerProcess } from './server-process.ts';
import { openTestbed, type Testbed } from './testbed.ts';
import type { ExpectedAnswer } from './wrk.ts';
import { runWrk } from './wrk.ts';

interface Case {
  readonly name: string;
  readonly store: 'redis' | 'embedded';
  /** Of a server behind the service; the built-in tool unless given. */
  readonly work?: Work;
}

const CASES: readonly Case[] = [
  { name: 'redis', store: 'redis' },
  { name: 'embedded', store: 'embedded' },
  ...RELAY_SIZES.map(({ name, work }): Case => ({ name, store: 'embedded', work })),
];

/** What is compared: options of node, separated by commas, `-` for none; `COLLECTOR_OPTIONS` has others, separated by spaces. */
const VARIANTS = (process.env.COLLECTOR_OPTIONS ?? '- --heap-growing-percent=300').split(' ');
/** Of node; another version's is measured by its path. */
const PROGRAM = process.env.COLLECTOR_NODE;
const CONNECTIONS = 32;

interface Contestant {
  readonly name: string;
  readonly server: ServerProcess;
  readonly call: Call;
  readonly expected: ExpectedAnswer;
  readonly counterPort: number;
}

interface Collections {
  readonly scavenges: number;
  readonly fullCollections: number;
  readonly pauseMs: number;
  readonly longestMs: number;
}

type Row = Collections & {
  readonly cpuMicroseconds: number;
  readonly p99Ms: number;
  readonly residentMb: number;
};

export async function measureCollector({ only, plan }: Options): Promise<void> {
  for (const one of CASES) {
    if (only.length > 0 && !only.some((name) => one.name.startsWith(name))) continue;
    const testbed = await openTestbed();
    const upstream = await startUpstream('session', TOOLS);
    try {
      const args = await nameInFile(testbed.folder, 'relay', {
        bare: { url: upstream.url, prefix: '' },
      });
      const command = runPostern(one.store, {}, one.work === undefined ? [] : args);
      const contestants: Contestant[] = [];
      for (const variant of VARIANTS) {
        contestants.push(await start(testbed, command, variant, one.work));
      }
      const rows = contestants.map((): Row[] => []);
      for (let round = 0; round < plan.rounds; round += 1) {
        for (let place = 0; place < contestants.length; place += 1) {
          const at = (place + round) % contestants.length;
          const contestant = contestants[at];
          if (contestant !== undefined)
            rows[at]?.push(await runOnce(testbed, contestant, plan.seconds));
        }
      }
      console.log(`\n${one.name}, ${CONNECTIONS} connections, per 1,000 calls`);
      console.table(
        Object.fromEntries(contestants.map(({ name }, at) => [name, summarize(rows[at] ?? [])])),
      );
    } finally {
      await upstream.stop();
      await testbed.close();
    }
  }
}

async function start(
  testbed: Testbed,
  command: Command,
  variant: string,
  work: Work | undefined,
): Promise<Contestant> {
  const counterPort = await freePort();
  const options = variant === '-' ? [] : variant.split(',');
  const complete: Command = (surroundings) => {
    const { env, ...rest } = command(surroundings);
    return {
      ...rest,
      ...(PROGRAM && { program: PROGRAM }),
      env: { ...env, COUNTER_PORT: String(counterPort) },
    };
  };
  const server = await testbed.start(complete, {
    nodeOptions: [...options, '--import', './bench/collections-counter.mjs'],
  });
  const call = await testbed.createCall(server, 'session', work);
  const expected = await checkAnswers(call);
  await runWrk(testbed.folder, { call, expected, connections: CONNECTIONS, seconds: 3 });
  return { name: variant, server, call, expected, counterPort };
}

async function runOnce(testbed: Testbed, contestant: Contestant, seconds: number): Promise<Row> {
  const read = async (): Promise<Collections> =>
    JSON.parse(await (await fetch(`http://127.0.0.1:${contestant.counterPort}`)).text());
  const before = await read();
  const round = await runRound(testbed, contestant, CONNECTIONS, seconds);
  const after = await read();
  if (round.failures > 0) throw new Error(`${round.failures} wrong answers`);
  const perThousand = (name: keyof Collections) =>
    ((after[name] - before[name]) / round.requests) * 1000;
  return {
    scavenges: perThousand('scavenges'),
    fullCollections: perThousand('fullCollections'),
    pauseMs: perThousand('pauseMs'),
    longestMs: after.longestMs,
    cpuMicroseconds: round.cpuMicroseconds,
    p99Ms: round.p99Ms,
    residentMb: round.residentMb,
  };
}

function summarize(rows: readonly Row[]): Readonly<Record<string, number>> {
  const of = (name: keyof Row) =>
    Number(computeMedian(rows.map((row) => row[name])).toPrecision(3));
  return {
    scavenges: of('scavenges'),
    'full collections': of('fullCollections'),
    'pauses ms': of('pauseMs'),
    'longest ms': of('longestMs'),
    'CPU µs': of('cpuMicroseconds'),
    'p99 ms': of('p99Ms'),
    MB: of('residentMb'),
  };
}
