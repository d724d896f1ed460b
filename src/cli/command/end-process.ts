// How a process exits once there is nothing left to do in it, whatever its store does.
import { pause, systemClock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import { hasPendingWrites, settleWrites } from '../../store/embedded/pending-writes.ts';
import type { NoteStep } from './end-watch.ts';

/** Milliseconds for writes under way to end. */
const WRITES_MS = 1000;

interface End {
  readonly log: Pick<Log, 'error'>;
  readonly noteStep?: NoteStep;
  exit(code: number): void;
}

/** At once, unless the embedded store is writing. */
export function endProcess(code: number, end: End): void {
  end.noteStep?.('a thread of Node.js that waits for a disk or a name server', WRITES_MS);
  if (hasPendingWrites()) void endAfterWrites(code, end);
  else end.exit(code);
}

async function endAfterWrites(code: number, { log, exit }: End): Promise<void> {
  const isSettled = await Promise.race([
    settleWrites().then(() => true),
    pause(systemClock, WRITES_MS).then(() => false),
  ]);
  if (isSettled) return exit(code);
  log.error(
    'A write to DATA_DIR does not end, so this process is killed. Look for what holds its disk, or store.mdb, up.',
  );
  process.emit('exit', code);
  process.kill(process.pid, 'SIGKILL');
  // The first process of a container cannot kill itself by a signal.
  process.abort();
}
