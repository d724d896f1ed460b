// postern dev in a process of its own, and a new one after each change of what it is made of.
import { resolve } from 'node:path';
import { loadConfig } from '../../core/config/load.ts';
import { getErrorCode } from '../../core/errors/error-code.ts';
import { computeStamp, watchFile } from '../config-file/watch-file.ts';
import { endWithError } from '../end-with-error.ts';
import { findSetting } from '../env-file.ts';
import { showSpinner } from '../spinner.ts';
import { type Announcement, createAnnounce } from './announcement.ts';
import { buildCheckout, type DevProcess, startDevProcess } from './dev-process.ts';
import { watchFolder } from './watch-folder.ts';
import {
  describePath,
  describeWatchedFiles,
  findWatchedFiles,
  type WatchedFiles,
  type WatchOptions,
} from './watched-files.ts';

/** Milliseconds after a change in which further ones belong to it: editors and git write several. */
const DEBOUNCE_MS = 100;
const LONG_MS = 2 ** 30;

/**
 * Where the first start fails, this process ends as well; later, the next change is waited for.
 *
 * @throws UsageError when `--watch` has nothing to watch.
 */
export async function watch(args: readonly string[], options: WatchOptions): Promise<void> {
  const devArgs = [...args.filter((arg) => arg !== '--watch'), '--no-watch'];
  const announce = createAnnounce(console.log);
  const changedFiles = new Set<string>();
  let stops: (() => void)[] = [];
  let running: DevProcess | undefined;
  let timer: NodeJS.Timeout | undefined;
  let hasServed = false;
  let isRestarting = false;
  let isOutdated = false;
  let isEnding = false;

  function start(): void {
    stopWatching();
    // Found anew: .env may name other files than before.
    const files = findWatchedFiles(options);
    stops = [
      ...watchCode(files, restartSoon),
      ...watchAll([takeStamp(files.envFile)], restartSoon),
    ];
    const configFiles = files.configFiles.map(takeStamp);
    const endSpinner = showSpinner(hasServed ? 'Restarting' : 'Starting');
    const started = startDevProcess(devArgs, (announcement) => {
      endSpinner();
      announce(addWatchedFiles(announcement, files), [...changedFiles]);
      if (announcement.loaded === undefined) changedFiles.clear();
      hasServed = true;
    });
    running = started;
    started.exitCode.then((code) => {
      endSpinner();
      running = undefined;
      if (isRestarting || isEnding) return;
      if (!hasServed) process.exit(code);
      console.error(`Ended with exit code ${code}. Waiting for a change.`);
      // While it ran, it followed them itself.
      stops.push(...watchAll(configFiles, restartSoon));
    });
  }

  function stopWatching(): void {
    for (const stop of stops.splice(0)) stop();
  }

  function restartSoon(file: string): void {
    changedFiles.add(describePath(file));
    clearTimeout(timer);
    timer = setTimeout(() => restart().catch(endWithError), DEBOUNCE_MS);
  }

  async function restart(): Promise<void> {
    isOutdated = true;
    if (isRestarting) return;
    isRestarting = true;
    while (isOutdated && !isEnding) {
      isOutdated = false;
      if (findWatchedFiles(options).isCheckout && !(await buildCheckout())) continue;
      await running?.stop();
      if (!isEnding) start();
    }
    isRestarting = false;
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    isEnding = true;
    clearTimeout(timer);
    stopWatching();
    running?.kill(signal);
    process.exit((await running?.exitCode) ?? 0);
  }

  // Files are looked at by timers that keep no process alive, and what it ran may have ended.
  setInterval(() => {}, LONG_MS);
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
  process.on('exit', () => running?.kill('SIGTERM'));
  start();
}

type OnChange = (file: string) => void;

function watchCode({ folder }: WatchedFiles, onChange: OnChange): readonly (() => void)[] {
  if (folder === undefined) return [];
  const stop = watchFolder({
    folder,
    dataDir: readDataDir(),
    onChange,
    onFailure: (below, error) =>
      console.error(`${below} cannot be watched (${getErrorCode(error) ?? String(error)}).`),
  });
  return [stop];
}

const takeStamp = (path: string) => ({ path, stamp: computeStamp(path) });

const watchAll = (
  files: readonly ReturnType<typeof takeStamp>[],
  onChange: OnChange,
): readonly (() => void)[] =>
  files.map((file) => watchFile({ ...file, onChange: () => onChange(file.path) }));

const addWatchedFiles = (announcement: Announcement, files: WatchedFiles): Announcement => ({
  ...announcement,
  facts: [...announcement.facts, { name: 'Watches', lines: [describeWatchedFiles(files)] }],
});

/** As the watched process will read it, even where other settings are wrong. */
function readDataDir(): string {
  const DATA_DIR = findSetting('DATA_DIR');
  return resolve(loadConfig({ AUTH_REQUIRED: 'false', DATA_DIR }).store.dataDir);
}
