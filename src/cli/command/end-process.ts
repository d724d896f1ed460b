// Ends a process that has nothing left to do, even while its store is stuck.
import { pause, systemClock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import { hasPendingWrites, settleWrites } from '../../store/embedded/pending-writes.ts';

/** Milliseconds for writes under way to end. */
const WRITES_MS = 1000;

/** At once, unless the embedded store is writing. */
export function endProcess(log: Log, code: number): void {
  if (hasPendingWrites()) void endAfterWrites(log, code);
  else process.exit(code);
}

async function endAfterWrites(log: Log, code: number): Promise<void> {
  const isSettled = await Promise.race([
    settleWrites().then(() => true),
    pause(systemClock, WRITES_MS).then(() => false),
  ]);
  if (isSettled) process.exit(code);
  log.error(
    'A write to DATA_DIR does not end, so this process is killed. Check the disk of DATA_DIR, and which other process uses store.mdb.',
  );
  process.emit('exit', code);
  process.kill(process.pid, 'SIGKILL');
  // The first process of a container cannot kill itself by a signal.
  process.abort();
}
