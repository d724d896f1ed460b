// postern dev --watch: postern dev in a process of its own, and a new one after each change.
import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../../core/config/load.ts';
import { SOURCES } from '../checkout.ts';
import type { Options } from '../command-line.ts';
import { UsageError } from '../command-line.ts';
import { readEnvFile } from '../env-file.ts';
import { watchFolder } from './folder.ts';
import { build, type Running, runDev } from './processes.ts';

/** Milliseconds after a change in which further ones belong to it: editors and git write several. */
const DEBOUNCE_MS = 100;

/** @throws UsageError when there is nothing to watch. */
export async function watch(args: readonly string[], { catalog }: Options): Promise<void> {
  const own = args.filter((arg) => arg !== '--watch');
  const folder = watchedFolder(catalog);
  let running: Running | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isRestarting = false;
  let isStale = false;
  let isEnding = false;

  function start(): void {
    running = runDev(own);
    running.ended.then((code) => {
      running = undefined;
      if (!isRestarting && !isEnding) say(`It ended with exit code ${code}; waiting for a change.`);
    });
  }

  function restartSoon(file: string): void {
    clearTimeout(timer);
    timer = setTimeout(() => {
      say(`${relative(process.cwd(), file)} changed.`);
      void restart();
    }, DEBOUNCE_MS);
  }

  async function restart(): Promise<void> {
    isStale = true;
    if (isRestarting) return;
    isRestarting = true;
    while (isStale && !isEnding) {
      isStale = false;
      if (catalog === undefined && !(await build())) continue;
      await running?.stop();
      if (!isEnding) start();
    }
    isRestarting = false;
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    isEnding = true;
    clearTimeout(timer);
    unwatch();
    running?.kill(signal);
    process.exit((await running?.ended) ?? 0);
  }

  const unwatch = watchFolder({ folder, dataDir: dataFolder(), onChange: restartSoon });
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
  process.on('exit', () => running?.kill('SIGTERM'));
  say(`Watching ${relative(process.cwd(), folder) || 'this folder'}.`);
  start();
}

/** The catalogue's; in a checkout without one the sources. */
function watchedFolder(catalog: string | undefined): string {
  if (catalog !== undefined) return dirname(resolve(catalog));
  if (SOURCES !== undefined) return resolve(fileURLToPath(SOURCES));
  throw new UsageError('--watch needs --catalog FILE, whose folder it watches.');
}

/** As the watched process will read it, whatever else may be wrong with its settings. */
function dataFolder(): string {
  const { DATA_DIR = readEnvFile()?.added.DATA_DIR } = process.env;
  return resolve(loadConfig({ AUTH_REQUIRED: 'false', DATA_DIR }).dataDir);
}

const say = (message: string): void => console.error(`[watch] ${message}`);
