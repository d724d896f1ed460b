import { openDataFolder } from '../../src/store/embedded/folder.ts';

/** All that a folder's databases hold, read to the last byte: name, key, value. */
export async function contentOf(dataDir: string): Promise<readonly string[]> {
  const folder = await openDataFolder(dataDir);
  try {
    return [...folder.root.getKeys()].flatMap((name) => {
      const database = folder.root.openDB<string>({ name: String(name), encoding: 'string' });
      return [...database.getRange()].map(
        ({ key, value }) => `${String(name)} ${String(key)} ${value}`,
      );
    });
  } finally {
    await folder.close();
  }
}
