// How much of what a request allocates outlives two collections of the young generation ("promoted") and
// so has to be collected at a much higher price. V8 prints it; that costs time, so it is measured in a
// process and a round of its own.
import { checkAnswers } from './check-answers.ts';
import type { Contestant } from './contestants.ts';
import type { Testbed } from './testbed.ts';
import { runWrk } from './wrk.ts';

const CONNECTIONS = 32;
const WARM_UP_SECONDS = 2;
const SECONDS = 3;

/** KB per request. */
export async function measurePromotion(testbed: Testbed, contestant: Contestant): Promise<number> {
  const server = await testbed.start(contestant.command, { nodeOptions: ['--trace-gc-nvp'] });
  const call = await testbed.createCall(server, contestant.era);
  const expected = await checkAnswers(call);
  const load = { call, expected, connections: CONNECTIONS };
  await runWrk(testbed.folder, { ...load, seconds: WARM_UP_SECONDS });
  const before = sumPromoted(server.readOutput());
  const { requests } = await runWrk(testbed.folder, { ...load, seconds: SECONDS });
  const promoted = sumPromoted(server.readOutput()) - before;
  await server.stop();
  return promoted / requests / 1024;
}

/** Of the main thread, which is the one that prints the most lines. */
function sumPromoted(output: string): number {
  const byThread = new Map<string, { lines: number; bytes: number }>();
  for (const [, thread = '', bytes] of output.matchAll(
    /^\[\d+:(\w+)[^\]]*\].* gc=s .* promoted=(\d+)/gm,
  )) {
    const { lines, bytes: sum } = byThread.get(thread) ?? { lines: 0, bytes: 0 };
    byThread.set(thread, { lines: lines + 1, bytes: sum + Number(bytes) });
  }
  const [main] = [...byThread.values()].sort((a, b) => b.lines - a.lines);
  return main?.bytes ?? 0;
}
