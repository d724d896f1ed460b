// A process of its own, started by one that is to end (end-watch.ts): kills that one when it takes longer than it may.
import { isObject } from '../../platform/json.ts';
import { standardOutput } from '../../platform/line-output.ts';
import { createLog } from '../../platform/log.ts';

/** Milliseconds beyond what a step is given: so long a busy machine may take for it. */
const MARGIN_MS = 2000;

const [, , watched = '', format] = process.argv;
const pid = Number(watched);
const log = createLog('error', { format: format === 'text' ? 'text' : 'json' });
let limit: NodeJS.Timeout | undefined;

process.on('message', (message) => {
  if (!isObject(message)) return;
  const { step, limitMs } = message;
  clearTimeout(limit);
  limit = setTimeout(() => kill(String(step)), Number(limitMs) + MARGIN_MS);
});
process.on('disconnect', () => process.exit());
// Whoever stops a service may send each of its processes a signal.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => {});

function kill(step: string): void {
  // The kernel spares the first process of a container whatever comes from inside.
  const how = pid === 1 ? 'has to be killed from outside its container' : 'is killed';
  log.error(`This process does not end and ${how}. It is held up by ${step}.`, { pid });
  standardOutput.flush();
  process.kill(pid, 'SIGKILL');
}
