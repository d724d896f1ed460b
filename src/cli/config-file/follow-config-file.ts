import type { Log } from '../../core/log.ts';
import { describeProtection, findLosses } from './find-losses.ts';
import { onHangUp } from './hang-up.ts';
import { type LoadSetup, summarizeSetup } from './load-setup.ts';
import type { ReadSetup, Setup } from './read-setup.ts';
import { watchFile } from './watch-file.ts';

/** What a process does with the file. */
export interface FollowActions {
  readonly load: LoadSetup;
  /** Before the process ends because its terminal was closed. */
  readonly close: () => Promise<void>;
  readonly log: Log;
}

export interface FollowOptions extends FollowActions {
  /** What is served. */
  readonly setup: Setup;
  /** The lock lies beside the file. */
  readonly watched: { readonly file: WatchedFile; readonly lock: WatchedFile };
  read(): Promise<ReadSetup>;
}

export interface WatchedFile {
  readonly path: string;
  /** `computeStamp` from before the file was first read. */
  readonly stamp: string;
}

/** Loads the file anew when it or its lock changes, and at SIGHUP, until the result is called. */
export function followConfigFile(options: FollowOptions): () => void {
  const { watched, read, load, close, log } = options;
  const { path } = watched.file;
  let served = describeProtection(options.setup);
  let isLoading = false;
  let isOutdated = false;
  let hasEnded = false;
  /** Since it was last loaded. */
  const changed = new Set<string>();

  /** One after the other; of changes meanwhile the last one counts. */
  async function reload(): Promise<void> {
    isOutdated = true;
    if (isLoading) return;
    isLoading = true;
    while (isOutdated && !hasEnded) {
      isOutdated = false;
      await loadOnce().catch((cause: unknown) => {
        log.error(
          'The configuration file could not be loaded. What was served before may be incomplete: restart the gateway.',
          { path, cause },
        );
      });
    }
    isLoading = false;
  }

  async function loadOnce(): Promise<void> {
    const parsed = await read();
    if (hasEnded) return;
    if (!parsed.isWhole && !fileWatch.isSettled()) {
      log.info(
        'The configuration file is being written. It is loaded once it has stayed the same for a second.',
        { path },
      );
      return;
    }
    if (parsed.kind === 'problems') {
      log.error(
        'The configuration file has problems, so the one that was loaded before is kept. Correct it, and it is loaded by itself.',
        { path, problems: parsed.problems },
      );
      return;
    }
    const losses = findLosses(served, parsed.setup);
    if (losses.length > 0) {
      log.error(
        'The configuration file was not loaded, because users could do more without what it has lost. The one that was loaded before is kept until the next start, which takes the file as it is.',
        { path, lost: losses },
      );
      return;
    }
    const files = [...changed];
    changed.clear();
    await load(parsed.setup, files);
    served = describeProtection(parsed.setup);
    for (const warning of parsed.warnings) log.warn(warning);
    log.info('Loaded the configuration file anew.', { path, ...summarizeSetup(parsed.setup) });
  }

  const watch = (file: WatchedFile) =>
    watchFile({
      ...file,
      onChange() {
        changed.add(file.path);
        void reload();
      },
    });
  const fileWatch = watch(watched.file);
  const lockWatch = watch(watched.lock);
  onHangUp({ reload: () => void reload(), close });
  return () => {
    hasEnded = true;
    fileWatch.stop();
    lockWatch.stop();
  };
}
