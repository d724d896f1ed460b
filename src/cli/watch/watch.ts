// postern dev in a process of its own, and a new one after each change of what it is made of, once that has loaded.
import { resolve } from 'node:path';
import { endWithError } from '../command/errors.ts';
import { endWithNpx } from '../command/process-end.ts';
import { findSetting } from '../command/read-env-file.ts';
import { showSpinner } from '../command/spinner.ts';
import { type StampedFile, takeStamp, watchFile } from '../setup/config-file/watch-file.ts';
import { type Announcement, createAnnouncer } from './announcement.ts';
import { buildCheckout, type DevProcess, startDevProcess } from './dev-process.ts';
import { hasKeyboard, listenToKeys } from './keys.ts';
import {
  describePath,
  describeWatchedFiles,
  findWatchedFiles,
  type WatchedFiles,
  type WatchOptions,
  watchFolder,
} from './watched-files.ts';

/** Milliseconds after a change in which further ones belong to it: editors and git write several. */
const DEBOUNCE_MS = 100;
const LONG_MS = 2 ** 30;

/** What this process does about changes. */
type Watching =
  /** Waits for one. */
  | { readonly state: 'waiting' }
  /** Makes ready what is served next; `loading` is its process until it has loaded. */
  | { readonly state: 'replacing'; readonly loading: DevProcess | undefined }
  /** As `replacing`, and there was another change since: it begins once more. */
  | { readonly state: 'outdated' }
  | { readonly state: 'ending' };

/** What is served. */
type Served =
  /** Nothing yet: what fails now ends this process as well. `process` may listen already. */
  | { readonly state: 'starting'; readonly process: DevProcess | undefined }
  | { readonly state: 'serving'; readonly process: DevProcess }
  /** Nothing until the next change. */
  | { readonly state: 'ended'; readonly process: undefined };

/**
 * Where the first start fails, this process ends as well. Later, the process that serves goes on, and the next change
 * is waited for.
 *
 * @throws UsageError when `--watch` has nothing to watch.
 */
export async function watch(args: readonly string[], options: WatchOptions): Promise<void> {
  endWithNpx();
  const devArgs = [...args.filter((arg) => arg !== '--watch'), '--no-watch'];
  const hasKeys = hasKeyboard();
  const announcer = createAnnouncer(console.log, hasKeys);
  const changedFiles = new Set<string>();
  /** All that have not ended. */
  const processes = new Set<DevProcess>();
  let stops: (() => void)[] = [];
  let watching: Watching = { state: 'waiting' };
  let served: Served = { state: 'starting', process: undefined };
  let timer: NodeJS.Timeout | undefined;

  const isReplacing = () => watching.state === 'replacing';
  const isOutdated = () => watching.state === 'outdated';

  /** Loads a new process while the old one serves, which goes on where that fails. */
  async function replace(): Promise<void> {
    stopWatching();
    // Found anew: .env may name other files than before.
    const files = findWatchedFiles(options);
    stops = [
      ...(await watchCode(files, restartSoon)),
      ...watchAll([takeStamp(files.envFile)], restartSoon),
    ];
    const configFiles = files.configFiles.map(takeStamp);
    if (changedFiles.size > 0 && files.isCheckout && !(await buildCheckout())) return;
    if (!isReplacing()) return;
    const next = startProcess(files);
    watching = { state: 'replacing', loading: next };
    const isLoaded = await next.loaded;
    if (!isReplacing()) return;
    watching = { state: 'replacing', loading: undefined };
    if (!isLoaded) return explainFailure(await next.exitCode, configFiles);
    const previous = served.process;
    // From here on the old one ends because it is told to.
    served = { state: served.state === 'starting' ? 'starting' : 'serving', process: next };
    await previous?.stop();
    next.serve();
    next.exitCode.then((code) => {
      if (served.process !== next || watching.state === 'ending') return;
      if (served.state === 'serving') served = { state: 'ended', process: undefined };
      explainFailure(code, configFiles);
    });
  }

  function startProcess(files: WatchedFiles): DevProcess {
    const endSpinner = showSpinner(
      served.state === 'starting' ? 'Starting' : 'Restarting',
      process,
    );
    const started: DevProcess = startDevProcess(devArgs, (told) => {
      if (told.kind === 'note') return announcer.note(told);
      endSpinner();
      announcer.announce(addWatchedFiles(told, files), [...changedFiles]);
      if (told.loaded === undefined) changedFiles.clear();
      if (served.process === started) served = { state: 'serving', process: started };
    });
    processes.add(started);
    started.exitCode.then(() => {
      endSpinner();
      processes.delete(started);
    });
    return started;
  }

  /** What is wrong was said by the process that ended. */
  function explainFailure(code: number, configFiles: readonly StampedFile[]): void {
    if (served.state === 'starting') process.exit(code);
    console.error(
      served.state === 'ended'
        ? `Ended with exit code ${code}. Waiting for a change.`
        : `What was served before ${[...changedFiles].join(', ')} changed is still served. Correct the error, and the change is loaded by itself.`,
    );
    // The process that serves follows only the files that it has read itself.
    stops.push(...watchAll(configFiles, restartSoon));
  }

  function stopWatching(): void {
    for (const stop of stops.splice(0)) stop();
  }

  function restartSoon(file: string): void {
    changedFiles.add(describePath(file));
    clearTimeout(timer);
    timer = setTimeout(
      () => restart().catch((error: unknown) => endWithError(error, { process, console })),
      DEBOUNCE_MS,
    );
  }

  /** One after the other; of changes meanwhile the last one counts. */
  async function restart(): Promise<void> {
    if (watching.state === 'replacing') {
      // It may wait for ever, for what the change corrects.
      watching.loading?.kill('SIGTERM');
      watching = { state: 'outdated' };
    }
    if (watching.state !== 'waiting') return;
    do {
      watching = { state: 'replacing', loading: undefined };
      await replace();
    } while (isOutdated());
    if (isReplacing()) watching = { state: 'waiting' };
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    watching = { state: 'ending' };
    clearTimeout(timer);
    stopWatching();
    const running = [...processes];
    for (const one of running) one.kill(signal);
    process.exit(Math.max(0, ...(await Promise.all(running.map(({ exitCode }) => exitCode)))));
  }

  // Keeps this process alive: timers that look at files do not, and the process that served may have ended.
  setInterval(() => {}, LONG_MS);
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
  if (hasKeys)
    listenToKeys(
      (key) => key === 'c' && announcer.printHints(),
      () => void end('SIGINT'),
    );
  process.on('exit', () => {
    for (const one of processes) one.kill('SIGTERM');
  });
  await restart();
}

type OnChange = (file: string) => void;

const watchCode = async (
  { folder }: WatchedFiles,
  onChange: OnChange,
): Promise<readonly (() => void)[]> =>
  folder === undefined ? [] : [watchFolder(folder, await readDataDir(), onChange)];

const watchAll = (files: readonly StampedFile[], onChange: OnChange): readonly (() => void)[] =>
  files.map((file) => watchFile({ ...file, onChange: () => onChange(file.path) }).stop);

const addWatchedFiles = (announcement: Announcement, files: WatchedFiles): Announcement => ({
  ...announcement,
  facts: [...announcement.facts, { name: 'Watches', lines: [describeWatchedFiles(files)] }],
});

/** As the watched process will read it, even where other settings are wrong. */
async function readDataDir(): Promise<string> {
  // The process that serves need not wait until this one has loaded all settings.
  const { loadConfig } = await import('../../config/load.ts');
  const DATA_DIR = findSetting('DATA_DIR');
  return resolve(loadConfig({ AUTH_REQUIRED: 'false', DATA_DIR }).store.dataDir);
}
