// What very long results cost, in time and memory, and answers with many events before them.
import { checkAnswers, sendCall } from '../check-answers.ts';
import type { Options } from '../options.ts';
import type { ServerProcess } from '../server-process.ts';
import { openTestbed, type Testbed } from '../testbed.ts';
import { runWrk } from '../wrk.ts';
import { FLOOR, listContestants, startContestant } from './contestants.ts';
import { startUpstream } from './upstreams.ts';
import { callTool, SMALL_CALL, TOOLS } from './ways.ts';

const MEASURED = [FLOOR, 'embedded', 'redis'];
/** Four answers of the maximum size are more than one user may have coming in at once. */
const CONNECTIONS = 3;
const WARM_UP_SECONDS = 4;
const BYTES_PER_MB = 1e6;

const RESULTS = [
  { name: '1 MB', tool: 'huge', bytes: 1_000_000 },
  { name: '1 MB SSE', tool: 'huge_stream', bytes: 1_000_000 },
  { name: '8 MB', tool: 'giant', bytes: 7_800_000 },
  { name: '8 MB SSE', tool: 'giant_stream', bytes: 7_800_000 },
];

/** Fewer a second than a user's streams may have, so that none waits. */
const CALLS_WITH_EVENTS = 2;
const EVENTS = 900;
/** With the rest of the event, about 200 bytes. */
const EVENT_TEXT = 'Reading one file after the other, as was asked for. '.repeat(2);

export async function measureLong({ plan }: Options): Promise<void> {
  const testbed = await openTestbed();
  const upstream = await startUpstream('session', TOOLS);
  try {
    for (const { name, tool, bytes } of RESULTS) {
      const rows = await measureEach(testbed, upstream, (server) =>
        measureResult(testbed, server, plan.rounds * plan.seconds, { tool, bytes }),
      );
      console.log(`\n${name}, session, ${CONNECTIONS} connections`);
      console.table(rows);
    }
    const rows = await measureEach(testbed, upstream, (server) =>
      measureEvents(testbed, server, plan.rounds * plan.seconds),
    );
    console.log(`\n${EVENTS} events of 200 bytes in one call, ${CALLS_WITH_EVENTS} calls at once`);
    console.table(rows);
  } finally {
    await upstream.stop();
    await testbed.close();
  }
}

/** Each in a process of its own, since memory is never given back completely. */
async function measureEach<Row>(
  testbed: Testbed,
  upstream: ServerProcess,
  measure: (server: ServerProcess) => Promise<Row>,
): Promise<Readonly<Record<string, Row>>> {
  const rows: Record<string, Row> = {};
  for (const contestant of listContestants('session')) {
    if (!MEASURED.includes(contestant.name)) continue;
    const server = await startContestant(testbed, contestant, upstream.url);
    try {
      rows[contestant.label] = await measure(server);
    } finally {
      await server.stop();
    }
  }
  return rows;
}

async function measureResult(
  testbed: Testbed,
  server: ServerProcess,
  seconds: number,
  { tool, bytes }: { readonly tool: string; readonly bytes: number },
) {
  // The code for short results runs before, so that only the memory of long ones is counted.
  const short = await testbed.createCall(server, 'session', SMALL_CALL);
  const usual = { call: short, expected: await checkAnswers(short), connections: CONNECTIONS };
  await runWrk(testbed.folder, { ...usual, seconds: WARM_UP_SECONDS });
  const residentBefore = server.readResidentMb();
  const call = await testbed.createCall(server, 'session', callTool(tool, bytes));
  const load = { call, expected: await checkAnswers(call), connections: CONNECTIONS };
  await runWrk(testbed.folder, { ...load, seconds: WARM_UP_SECONDS });
  const cpuBefore = server.readCpuSeconds();
  const { requests, failures, p50Ms } = await runWrk(testbed.folder, { ...load, seconds });
  const cpu = server.readCpuSeconds() - cpuBefore;
  const megabytes = (requests * bytes) / BYTES_PER_MB;
  const grown = server.readPeakMb() - residentBefore;
  return {
    'CPU µs a MB': Math.round((cpu / megabytes) * 1e6),
    'p50 ms': Number(p50Ms.toPrecision(3)),
    'peak MB beyond rest': Math.round(grown),
    '÷ bodies at once': Number(((grown * 1_048_576) / (bytes * CONNECTIONS)).toPrecision(3)),
    calls: requests,
    failures,
  };
}

async function measureEvents(testbed: Testbed, server: ServerProcess, seconds: number) {
  const call = await testbed.createCall(server, 'session', {
    ...callTool('small_stream', 1000),
    params: {
      name: 'small_stream',
      arguments: { events: EVENTS, text: EVENT_TEXT },
      _meta: { progressToken: 'progress' },
    },
  });
  let events = 0;
  let next = 0;
  async function callUntil(end: number): Promise<void> {
    while (performance.now() < end) {
      const { status, body } = await sendCall(call, ++next);
      const received = body.split('notifications/progress').length - 1;
      if (status !== 200 || received !== EVENTS)
        throw new Error(`${status} with ${received} events: ${body.slice(-300)}`);
      events += received;
    }
  }
  const run = (forMs: number) =>
    Promise.all(
      Array.from({ length: CALLS_WITH_EVENTS }, () => callUntil(performance.now() + forMs)),
    );
  await run(WARM_UP_SECONDS * 1000);
  events = 0;
  const cpuBefore = server.readCpuSeconds();
  await run(seconds * 1000);
  const cpu = server.readCpuSeconds() - cpuBefore;
  return { 'CPU µs an event': Number(((cpu / events) * 1e6).toPrecision(3)), events };
}
