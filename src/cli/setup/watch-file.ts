// Tells that a file has changed. It looks once a second: watchers of the system miss files that are
// replaced by a rename, that are reached by symbolic links (ConfigMaps), or that lie on a network.

import { statSync } from 'node:fs';
import { type Clock, pause, systemClock } from '../../platform/clock.ts';

const INTERVAL_MS = 1000;

/** Computes what differs after any change; for a link that of the file it leads to. */
export function computeStamp(path: string): string {
  try {
    const { dev, ino, size, mtimeMs, ctimeMs } = statSync(path);
    return [dev, ino, size, mtimeMs, ctimeMs].join(' ');
  } catch {
    return 'none';
  }
}

/** A file that is about to be read: what differs from its stamp later has not been. */
export interface StampedFile {
  readonly path: string;
  readonly stamp: string;
}

export const takeStamp = (path: string): StampedFile => ({ path, stamp: computeStamp(path) });

/** Resolves once nobody writes the file: at once for one that has not changed in the last second. */
export async function waitUntilSettled(path: string): Promise<void> {
  let stamp = computeStamp(path);
  const changedAt = Number(stamp.split(' ').at(-1));
  let isSettled = !(changedAt > systemClock.now() - INTERVAL_MS);
  while (!isSettled) {
    const last = stamp;
    await pause(systemClock, INTERVAL_MS);
    stamp = computeStamp(path);
    isSettled = stamp === last;
  }
}

/** `onChange` is called once a change has settled: two looks in a row saw the same. */
export function watchFile(
  { path, stamp: read }: StampedFile,
  onChange: () => void,
  clock: Clock = systemClock,
) {
  let told = read;
  let last = told;
  let isSettled = true;
  let cancel = clock.after(INTERVAL_MS, look);

  function look() {
    const stamp = computeStamp(path);
    isSettled = stamp === last;
    last = stamp;
    if (isSettled && stamp !== told) {
      told = stamp;
      onChange();
    }
    cancel = clock.after(INTERVAL_MS, look);
  }

  return {
    /** True while the file is still what two looks in a row saw, so that nobody is writing it. */
    isSettled: () => isSettled && computeStamp(path) === last,
    /** Takes note of what was read with this `computeStamp`: it is no news. */
    skip(stamp: string) {
      told = stamp;
    },
    stop: () => cancel(),
  };
}
