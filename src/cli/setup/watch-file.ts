// Detects changes to a file by polling once a second: system watchers miss files that are replaced by a rename, reached through
// symbolic links (ConfigMaps), or on a network drive.

import { statSync } from 'node:fs';
import { type Clock, pause, systemClock } from '../../platform/clock.ts';

const INTERVAL_MS = 1000;

/** Computes a stamp that differs after any change; for a link, that of its target. */
export function computeStamp(path: string): string {
  try {
    const { dev, ino, size, mtimeMs, ctimeMs } = statSync(path);
    return [dev, ino, size, mtimeMs, ctimeMs].join(' ');
  } catch {
    return 'none';
  }
}

/** A file before it is read: a later stamp that differs means unread content. */
export interface StampedFile {
  readonly path: string;
  readonly stamp: string;
}

export const takeStamp = (path: string): StampedFile => ({ path, stamp: computeStamp(path) });

/** Resolves once the file is stable: immediately if it did not change in the last second. */
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

/** Calls `onChange` once a change has settled: two polls in a row saw the same stamp. */
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
    /** True while the file is unchanged since two equal polls, so that no program is writing it. */
    isSettled: () => isSettled && computeStamp(path) === last,
    /** Marks the content with this stamp as read, so that it causes no `onChange`. */
    skip(stamp: string) {
      told = stamp;
    },
    stop: () => cancel(),
  };
}
