// Which files are code is said by their endings: a tool may write others into its own folder.
import { type Dirent, existsSync, type FSWatcher, readdirSync, watch } from 'node:fs';
import { basename, join } from 'node:path';

const CODE = /(^\.env|\.([cm]?[jt]sx?|json))$/;

/** Not followed: packages, what tools keep for themselves, and the store. */
const isForeign = (folder: string, dataDir: string): boolean =>
  folder === dataDir || /^(node_modules|\..+)$/.test(basename(folder));

export interface WatchOptions {
  readonly folder: string;
  /** The store's own folder, which changes all the time. */
  readonly dataDir: string;
  /** Called for each change of a file with code. */
  readonly onChange: (file: string) => void;
}

/**
 * Watches a folder and those below it; the returned function ends it. Each folder has a watcher
 * of its own: Node's recursive ones follow node_modules, too, and on Linux cost one per file.
 */
export function watchFolder({ folder: root, dataDir, onChange }: WatchOptions): () => void {
  const watchers = new Map<string, FSWatcher>();
  let isStarted = false;

  function add(folder: string): void {
    if (watchers.has(folder) || !existsSync(folder)) return;
    const watcher = watch(folder, (_event, name) => {
      // Of a folder that was removed, its own name is said. One of the same name may be there already.
      if (name === basename(folder)) forget(folder);
      add(folder);
      addBelow(folder);
      if (name !== null) look(folder, name);
    });
    watcher.on('error', () => forget(folder));
    watchers.set(folder, watcher);
    // Files may have been put into a new folder before it was watched.
    if (isStarted) for (const { name } of entriesIn(folder)) look(folder, name);
    addBelow(folder);
  }

  function look(folder: string, name: string): void {
    if (CODE.test(name)) onChange(join(folder, name));
  }

  function addBelow(folder: string): void {
    for (const entry of entriesIn(folder)) {
      const below = join(folder, entry.name);
      if (entry.isDirectory() && !isForeign(below, dataDir)) add(below);
    }
  }

  function forget(folder: string): void {
    watchers.get(folder)?.close();
    watchers.delete(folder);
  }

  add(root);
  isStarted = true;
  return () => {
    for (const folder of [...watchers.keys()]) forget(folder);
  };
}

/** None, where the folder is gone again. */
function entriesIn(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}
