// npm run chaos: breaks what the gateway depends on, while a client that knows the right answer to every call goes on calling,
// and compares the results with the figures that have to be reached.
import { setMaxListeners } from 'node:events';
import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { endPosterns } from '../test/support/gateway/process.ts';
import { COUNTINGS } from './chaos/counting.ts';
import { FAULTS } from './chaos/faults/index.ts';
import { runFaults } from './chaos/run-faults.ts';

const USAGE = `Usage: npm run chaos -- [options]

  --short          less than two minutes: a little of everything, and times are not judged
  --scale N        how much of the whole form: --scale 0.1 makes ten minutes one (default 1)
  --only NAME      only this fault; may be repeated
  --counting WAY   log, or leased (with tracked reads); both unless it is given
  --list           the faults and their figures
  --help           this text

The exit code is 1 when a figure was missed.`;

const { values } = parseArgs({
  options: {
    short: { type: 'boolean', default: false },
    scale: { type: 'string', default: '1' },
    only: { type: 'string', multiple: true, default: [] },
    counting: { type: 'string' },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
const { short: isShort, only } = values;
const scale = Number(values.scale);
const chosen = only.length === 0 ? FAULTS : FAULTS.filter(({ name }) => only.includes(name));
const countings = COUNTINGS.filter(
  (counting) => values.counting === undefined || values.counting === counting,
);
const unknown = only.filter((name) => FAULTS.every((fault) => fault.name !== name));

if (values.help) console.log(USAGE);
else if (values.list) {
  for (const { name, title, figure } of FAULTS) console.log(`${name}\n    ${title}\n    ${figure}`);
} else if (unknown.length > 0) {
  fail(`No such fault: ${unknown.join(', ')}. --list names them.`);
} else if (countings.length === 0) {
  fail(`--counting takes ${COUNTINGS.join(' or ')}, not ${values.counting}.`);
} else if (!(scale > 0)) {
  fail(`--scale takes a number above 0, not ${values.scale}.`);
} else if (!existsSync('dist/cli/main.js')) {
  fail('Nothing to break yet: run npm run build first.');
} else {
  await run();
}

async function run(): Promise<void> {
  const interruption = new AbortController();
  const { signal } = interruption;
  // Every running fault listens, and so does everything that it waits for.
  setMaxListeners(0, signal);
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => interruption.abort());
  try {
    // Faults without times can run in parallel.
    const jobs = isShort ? 2 : 1;
    const isPassed = await runFaults(chosen, { isShort, scale, signal, countings, jobs });
    if (!isPassed) process.exitCode = 1;
  } finally {
    await endPosterns();
  }
}

function fail(message: string): void {
  console.error(message);
  process.exitCode = 2;
}
