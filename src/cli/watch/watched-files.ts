// Of which files postern dev is made, and which of them have changed.
import { type Dirent, existsSync, type FSWatcher, readdirSync, watch } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { getErrorCode } from '../../platform/error-code.ts';
import { UsageError } from '../command/errors.ts';
import { SOURCE_FOLDER, type Texts } from '../command/invocation.ts';
import { findSetting } from '../command/read-env-file.ts';
import { findLockPath } from '../setup/lock-file-on-disk.ts';

/** `watch`: also the sources, in a checkout that serves no catalogue of the user's. */
export type WatchOptions = Texts<'catalog' | 'config'> & { readonly watch: boolean | undefined };

export interface WatchedFiles {
  /** With code, and all below it; undefined where only what is built in is served. */
  readonly folder: string | undefined;
  /** Whether a change of code has to be built. */
  readonly isCheckout: boolean;
  readonly envFile: string;
  /** The configuration file and its lock, which postern dev follows itself while it runs. */
  readonly configFiles: readonly string[];
}

/**
 * As the command line, the environment and .env say at this moment.
 *
 * @throws UsageError when `--watch` has nothing to watch.
 */
export function findWatchedFiles(options: WatchOptions): WatchedFiles {
  const catalog = options.catalog ?? findSetting('POSTERN_CATALOG');
  const config = options.config ?? findSetting('POSTERN_CONFIG');
  const isCheckout = catalog === undefined && options.watch === true;
  return {
    folder: catalog === undefined ? findSources(isCheckout) : dirname(resolve(catalog)),
    isCheckout,
    envFile: resolve('.env'),
    configFiles: config === undefined ? [] : [resolve(config), findLockPath(resolve(config))],
  };
}

function findSources(isWanted: boolean): string | undefined {
  if (!isWanted) return undefined;
  if (SOURCE_FOLDER !== undefined) return resolve(fileURLToPath(SOURCE_FOLDER));
  throw new UsageError('--watch needs --catalog FILE: it watches the folder of that file.');
}

export function describeWatchedFiles({ folder, envFile, configFiles }: WatchedFiles): string {
  const [configFile] = configFiles;
  const code = folder === undefined ? [] : [`code in ${describePath(folder) || 'this folder'}`];
  const files = configFile === undefined ? [envFile] : [configFile, envFile];
  return joinWithAnd([...code, ...files.map(describePath)]);
}

/** As Intl.ListFormat, for which Node would load its data of languages before it prints the banner. */
const joinWithAnd = (texts: readonly string[]): string =>
  [texts.slice(0, -1).join(', '), ...texts.slice(-1)].filter((text) => text !== '').join(' and ');

export const describePath = (path: string): string => relative(process.cwd(), path);

/** Code, and skills, are told by the ending of their name: a tool may write other files into its own folder. */
const CODE = /\.([cm]?[jt]sx?|json)$|(^|[/\\])SKILL\.md$/;

/** Packages, hidden folders and the store are not watched. */
const isIgnored = (folder: string, dataDir: string): boolean =>
  folder === dataDir || /^(node_modules|\..+)$/.test(basename(folder));

/**
 * Calls `onChange` for each change of a file with code in a folder and those below it, but for the store's `dataDir`, which
 * changes all the time; the returned function ends it. Each folder has a watcher of its own: Node's recursive ones follow
 * node_modules, too, and on Linux cost one per file.
 */
export function watchFolder(
  root: string,
  dataDir: string,
  onChange: (file: string) => void,
): () => void {
  const watchers = new Map<string, FSWatcher>();
  let isStarted = false;

  function watchOne(folder: string): void {
    if (watchers.has(folder) || !existsSync(folder)) return;
    const watcher = tryToWatch(folder, (name) => {
      // A removed folder reports its own name. A new one of that name may be there already.
      if (name === basename(folder)) stopWatching(folder);
      watchOne(folder);
      watchBelow(folder);
      if (name !== null) reportCode(folder, name);
    });
    if (watcher === undefined) return;
    watcher.on('error', () => stopWatching(folder));
    watchers.set(folder, watcher);
    // Files may have been put into a new folder before it was watched.
    if (isStarted) for (const { name } of listEntries(folder)) reportCode(folder, name);
    watchBelow(folder);
  }

  /** Undefined where there are too many for the system: what is below would fail, too. */
  function tryToWatch(folder: string, onEvent: (name: string | null) => void) {
    try {
      return watch(folder, (_event, name) => onEvent(name));
    } catch (error) {
      console.error(`${folder} cannot be watched (${getErrorCode(error) ?? String(error)}).`);
      return undefined;
    }
  }

  function reportCode(folder: string, name: string): void {
    if (CODE.test(name)) onChange(join(folder, name));
  }

  function watchBelow(folder: string): void {
    for (const entry of listEntries(folder)) {
      const below = join(folder, entry.name);
      if (entry.isDirectory() && !isIgnored(below, dataDir)) watchOne(below);
    }
  }

  function stopWatching(folder: string): void {
    watchers.get(folder)?.close();
    watchers.delete(folder);
  }

  watchOne(root);
  isStarted = true;
  return () => {
    for (const folder of [...watchers.keys()]) stopWatching(folder);
  };
}

/** Empty where the folder is gone again. */
function listEntries(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}
