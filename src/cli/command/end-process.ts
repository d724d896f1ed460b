// How a process exits once there is nothing left to do in it. Node.js then waits for the threads that work for it, however
// long a disk, a lock or a name server holds them up, and can do nothing meanwhile: so that is waited for before, and not for ever.
import { pause, systemClock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import { hasWritesUnderWay, holdWritesBack } from '../../store/embedded/writes-under-way.ts';

/** Milliseconds for what threads are at. */
const THREADS_MS = 1000;
const LOOK_MS = 10;

interface End {
  readonly log: Pick<Log, 'error'>;
  exit(code: number): void;
}

/** At once, unless a thread is at work. */
export async function endProcess(code: number, { log, exit }: End): Promise<void> {
  holdWritesBack();
  const latest = systemClock.monotonic() + THREADS_MS;
  let work = findThreadWork();
  while (work !== undefined && systemClock.monotonic() < latest) {
    await pause(systemClock, LOOK_MS);
    work = findThreadWork();
  }
  if (work === undefined) return exit(code);
  log.error(
    `This process is killed, as ${work} did not end within ${THREADS_MS / 1000} s. Look for what holds it up.`,
  );
  process.emit('exit', code);
  process.kill(process.pid, 'SIGKILL');
  // The first process of a container cannot kill itself by a signal.
  process.abort();
}

function findThreadWork(): string | undefined {
  if (hasWritesUnderWay()) return 'a write to store.mdb in DATA_DIR';
  const kinds = process.getActiveResourcesInfo();
  if (kinds.some((kind) => kind.startsWith('FSReq'))) return 'work on a file or folder';
  if (kinds.includes('GetAddrInfoReqWrap')) return 'a question to the name server';
  return undefined;
}
