// npm run bench -- compare --against <folder>: this checkout and another one, built, in alternating rounds. The median
// ratio of their CPU per request, and within what it lies.
import { resolve } from 'node:path';
import type { Work } from './calls.ts';
import { checkAnswers } from './check-answers.ts';
import { type Command, type Era, runPostern } from './contestants.ts';
import type { Options } from './options.ts';
import { nameInFile, startUpstream } from './relay/upstreams.ts';
import { RELAY_SIZES, TOOLS } from './relay/ways.ts';
import { computeMedian, computeMedianInterval } from './results.ts';
import { type Round, type Runner, runRounds } from './rounds.ts';
import type { ServerProcess } from './server-process.ts';
import { openTestbed, type Testbed } from './testbed.ts';
import { runWrk } from './wrk.ts';

const CONNECTIONS = 32;
/** Pairs of processes that share the rounds: one process of a build may be faster than the next one, all its life. */
const STARTS = 5;
/** Until V8 has compiled what a call runs: for half of it a call takes two to three times what it takes afterwards. */
const WARM_UP_SECONDS = 6;
const STORES = ['embedded', 'redis'] as const;
const ERAS = ['session', 'stateless'] as const;

interface Row {
  /** As `--only` takes it, or its beginning. */
  readonly name: string;
  readonly store: (typeof STORES)[number];
  readonly era: Era;
  /** The built-in tool unless given. */
  readonly work?: Work;
}

const ROWS: readonly Row[] = STORES.flatMap((store) =>
  ERAS.flatMap((era) => [
    { name: `${store} ${era} built-in`, store, era },
    ...RELAY_SIZES.map(({ name, work }) => ({
      name: `${store} ${era} ${name}`,
      store,
      era,
      work,
    })),
  ]),
);

export async function measureCompare({ plan, only, against }: Options): Promise<void> {
  if (against === undefined) {
    throw new Error('compare needs --against <folder>: another checkout of Postern, built.');
  }
  const rows = ROWS.filter(
    ({ name }) => only.length === 0 || only.some((part) => name.includes(part)),
  );
  const testbed = await openTestbed();
  const upstreams: ServerProcess[] = [];
  try {
    const files = new Map<Era, readonly string[]>();
    for (const era of ERAS) {
      const upstream = await startUpstream(era, TOOLS);
      upstreams.push(upstream);
      const mcpServers = { bare: { url: upstream.url, prefix: '' } };
      files.set(era, await nameInFile(testbed.folder, era, mcpServers));
    }
    for (const row of rows) {
      const args = row.work === undefined ? [] : (files.get(row.era) ?? []);
      const command = runPostern(row.store, {}, args);
      const pairs: (readonly [own: Round, other: Round])[] = [];
      let flaw: string | undefined;
      for (let start = 0; start < STARTS && flaw === undefined; start++) {
        const runners = [
          await startRunner(testbed, 'this', row, command),
          await startRunner(testbed, 'other', row, startFrom(against, command)),
        ];
        for (const { call, expected } of runners) {
          const load = { call, expected, connections: CONNECTIONS, seconds: WARM_UP_SECONDS };
          await runWrk(testbed.folder, load);
        }
        const rounds = Math.ceil(plan.rounds / STARTS);
        const series = await runRounds(testbed, runners, {
          ...plan,
          rounds,
          connections: [CONNECTIONS],
        });
        await Promise.all(runners.map(({ server }) => server.stop()));
        flaw = series.find((one) => one.flaw !== undefined)?.flaw;
        for (let n = 0; n < rounds; n++) {
          const [own, other] = series.map((one) => one.rounds[n]);
          if (own !== undefined && other !== undefined) pairs.push([own, other]);
        }
      }
      if (flaw !== undefined) {
        console.log(`${row.name}: void: ${flaw.slice(0, 300)}`);
        continue;
      }
      const ratios = pairs.map(([own, other]) => own.cpuMicroseconds / other.cpuMicroseconds);
      const [low, high] = computeMedianInterval(ratios);
      const median = computeMedian(pairs.map(([own]) => own.cpuMicroseconds));
      console.log(
        `${row.name}: ${computeMedian(ratios).toFixed(3)} (95 %: ${low.toFixed(3)} to ${high.toFixed(3)}), ${Math.round(median)} µs`,
      );
    }
  } finally {
    await Promise.all(upstreams.map((upstream) => upstream.stop()));
    await testbed.close();
  }
}

async function startRunner(
  testbed: Testbed,
  name: string,
  { era, work }: Row,
  command: Command,
): Promise<Runner> {
  const server = await testbed.start(command);
  const call = await testbed.createCall(server, era, work);
  const expected = await checkAnswers(call);
  const contestant = { name, label: name, era, command, isQuick: true };
  return { contestant, server, call, expected };
}

/** The same command with the program of another checkout. */
const startFrom =
  (folder: string, command: Command): Command =>
  (surroundings) => {
    const { args, ...rest } = command(surroundings);
    const [program = '', ...others] = args;
    return { ...rest, args: [resolve(folder, program), ...others] };
  };
