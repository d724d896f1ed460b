// Watching postern dev: postern dev in a process of its own, and a new one after each change.
import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../../core/config/load.ts';
import { getErrorCode } from '../../core/errors/error-code.ts';
import { SOURCE_FOLDER } from '../checkout.ts';
import { UsageError } from '../command-line/usage-error.ts';
import { computeStamp, watchFile } from '../config-file/watch-file.ts';
import { findSetting } from '../env-file.ts';
import type { StartOptions } from '../start.ts';
import { buildCheckout, type DevProcess, startDevProcess } from './dev-process.ts';
import { watchFolder } from './watch-folder.ts';

/** Milliseconds after a change in which further ones belong to it: editors and git write several. */
const DEBOUNCE_MS = 100;

/** @throws UsageError when there is nothing to watch. */
export async function watch(
  args: readonly string[],
  { catalog }: Pick<StartOptions, 'catalog'>,
): Promise<void> {
  const devArgs = [...args.filter((arg) => arg !== '--watch'), '--no-watch'];
  const folder = findWatchedFolder(catalog);
  let running: DevProcess | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isRestarting = false;
  let isOutdated = false;
  let isEnding = false;

  function start(): void {
    running = startDevProcess(devArgs);
    running.exitCode.then((code) => {
      running = undefined;
      if (!isRestarting && !isEnding)
        printStatus(`Ended with exit code ${code}. Waiting for a change.`);
    });
  }

  function restartSoon(file: string): void {
    clearTimeout(timer);
    timer = setTimeout(() => {
      printStatus(`${relative(process.cwd(), file)} changed.`);
      void restart();
    }, DEBOUNCE_MS);
  }

  async function restart(): Promise<void> {
    isOutdated = true;
    if (isRestarting) return;
    isRestarting = true;
    while (isOutdated && !isEnding) {
      isOutdated = false;
      if (catalog === undefined && !(await buildCheckout())) continue;
      await running?.stop();
      if (!isEnding) start();
    }
    isRestarting = false;
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    isEnding = true;
    clearTimeout(timer);
    for (const stop of stops) stop();
    running?.kill(signal);
    process.exit((await running?.exitCode) ?? 0);
  }

  const stops = [
    watchFolder({
      folder,
      dataDir: readDataDir(),
      onChange: restartSoon,
      onFailure: (below, error) =>
        printStatus(`${below} cannot be watched (${getErrorCode(error) ?? String(error)}).`),
    }),
    ...watchEnvFile(folder, restartSoon),
  ];
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
  process.on('exit', () => running?.kill('SIGTERM'));
  printStatus(`Watching ${relative(process.cwd(), folder) || 'this folder'}.`);
  start();
}

/** The folder of the catalogue; in a checkout without one that of the sources. */
function findWatchedFolder(catalog: string | undefined): string {
  if (catalog !== undefined) return dirname(resolve(catalog));
  if (SOURCE_FOLDER !== undefined) return resolve(fileURLToPath(SOURCE_FOLDER));
  throw new UsageError('--watch needs --catalog FILE: it watches the folder of that file.');
}

/** Where the folder that is watched does not have it. */
function watchEnvFile(folder: string, onChange: (file: string) => void): readonly (() => void)[] {
  const path = resolve('.env');
  if (!relative(folder, path).startsWith('..')) return [];
  return [watchFile({ path, stamp: computeStamp(path), onChange: () => onChange(path) })];
}

/** As the watched process will read it, even where other settings are wrong. */
function readDataDir(): string {
  const DATA_DIR = findSetting('DATA_DIR');
  return resolve(loadConfig({ AUTH_REQUIRED: 'false', DATA_DIR }).store.dataDir);
}

const printStatus = (message: string): void => console.error(`[watch] ${message}`);
