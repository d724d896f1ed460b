// Rounds of load: in each round every contestant runs once, in an order that rotates, so that a slow
// minute of the machine affects all of them alike.
import type { Call } from './calls.ts';
import { checkAnswers } from './check-answers.ts';
import type { Contestant } from './contestants.ts';
import type { ServerProcess } from './server-process.ts';
import type { Testbed } from './testbed.ts';
import { type ExpectedAnswer, type LoadResult, runWrk } from './wrk.ts';

export interface Plan {
  readonly connections: readonly number[];
  readonly rounds: number;
  readonly seconds: number;
  readonly warmUpSeconds: number;
  /**
   * Of the same load before each round, which does not count: while the others have their turn, caches forget a server, and what
   * its timers and V8 would have done meanwhile is done now. The beginning of each round would be its 99th percentile.
   */
  readonly leadInSeconds: number;
}

export interface Round extends LoadResult {
  /** Of the serving process, per request. */
  readonly cpuMicroseconds: number;
  readonly residentMb: number;
}

/** The rounds of one contestant with so many connections. */
export interface Series {
  readonly contestant: string;
  readonly connections: number;
  readonly rounds: readonly Round[];
  /** Why the row does not count: an answer was wrong. */
  readonly flaw?: string;
}

export interface Runner {
  readonly contestant: Contestant;
  readonly server: ServerProcess;
  readonly call: Call;
  readonly expected: ExpectedAnswer;
}

export interface Preparation {
  readonly warmUpSeconds: number;
  /** Called before the server starts, with its environment. */
  prepare?(env: Readonly<Record<string, string>>): Promise<void>;
  readonly variedHeader?: NonNullable<Call['variedHeader']>;
}

/** A contestant that runs, answers rightly and is warm. */
export async function prepareRunner(
  testbed: Testbed,
  contestant: Contestant,
  { warmUpSeconds, prepare, variedHeader }: Preparation,
): Promise<Runner> {
  const server = await testbed.start(contestant.command, prepare && { prepare });
  const created = await testbed.createCall(server, contestant.era);
  const call = variedHeader === undefined ? created : { ...created, variedHeader };
  const expected = await checkAnswers(call);
  const load = { call, expected, connections: 32, seconds: warmUpSeconds };
  if (warmUpSeconds > 0) await runWrk(testbed.folder, load);
  return { contestant, server, call, expected };
}

export async function runRounds(
  testbed: Testbed,
  runners: readonly Runner[],
  { connections: counts, rounds, seconds, leadInSeconds }: Plan,
): Promise<readonly Series[]> {
  const series: Series[] = [];
  for (const connections of counts) {
    for (const { server } of runners) server.suspend();
    const byRunner = runners.map((runner) => ({ runner, rounds: [] as Round[] }));
    for (let n = 0; n < rounds; n++) {
      for (let place = 0; place < byRunner.length; place++) {
        const entry = byRunner[(place + n) % byRunner.length];
        if (entry === undefined) continue;
        const { call, expected, server } = entry.runner;
        server.resume();
        if (leadInSeconds > 0) {
          await runWrk(testbed.folder, { call, expected, connections, seconds: leadInSeconds });
        }
        entry.rounds.push(await runRound(testbed, entry.runner, connections, seconds));
        server.suspend();
      }
    }
    for (const { server } of runners) server.resume();
    for (const { runner, rounds: done } of byRunner) {
      const flaw = await findFlaw(runner, done);
      const { name } = runner.contestant;
      series.push({ contestant: name, connections, rounds: done, ...(flaw && { flaw }) });
    }
  }
  return series;
}

export async function runRound(
  testbed: Testbed,
  { server, call, expected }: Omit<Runner, 'contestant'>,
  connections: number,
  seconds: number,
): Promise<Round> {
  const before = server.readCpuSeconds();
  const result = await runWrk(testbed.folder, { call, expected, connections, seconds });
  const cpuSeconds = server.readCpuSeconds() - before;
  return {
    ...result,
    cpuMicroseconds: (cpuSeconds / result.requests) * 1e6,
    residentMb: server.readResidentMb(),
  };
}

async function findFlaw({ call }: Runner, rounds: readonly Round[]): Promise<string | undefined> {
  const failures = rounds.reduce((sum, round) => sum + round.failures, 0);
  if (failures > 0) {
    const examples = rounds.flatMap(({ wrongAnswer, socketErrors }) =>
      [wrongAnswer, socketErrors].filter((text) => text),
    );
    return `${failures} failures under load: ${examples.join('; ')}`;
  }
  try {
    await checkAnswers(call);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
