// Code is told by the ending of its name: a tool may write other files into its own folder.
import { type Dirent, existsSync, type FSWatcher, readdirSync, watch } from 'node:fs';
import { basename, join } from 'node:path';

const CODE = /\.([cm]?[jt]sx?|json)$/;

/** Packages, hidden folders and the store are not watched. */
const isIgnored = (folder: string, dataDir: string): boolean =>
  folder === dataDir || /^(node_modules|\..+)$/.test(basename(folder));

export interface WatchFolderOptions {
  readonly folder: string;
  /** The store's own folder, which changes all the time. */
  readonly dataDir: string;
  /** Called for each change of a file with code. */
  readonly onChange: (file: string) => void;
  /** Called for a folder that the system does not watch: there are too many. */
  readonly onFailure: (folder: string, error: unknown) => void;
}

/**
 * Watches a folder and those below it; the returned function ends it. Each folder has a watcher
 * of its own: Node's recursive ones follow node_modules, too, and on Linux cost one per file.
 */
export function watchFolder({
  folder: root,
  dataDir,
  onChange,
  onFailure,
}: WatchFolderOptions): () => void {
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

  /** Undefined where that fails: what is below would fail, too. */
  function tryToWatch(
    folder: string,
    onEvent: (name: string | null) => void,
  ): FSWatcher | undefined {
    try {
      return watch(folder, (_event, name) => onEvent(name));
    } catch (error) {
      onFailure(folder, error);
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
