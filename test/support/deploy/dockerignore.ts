import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import dockerignore from '@balena/dockerignore';

/** What .dockerignore keeps out of a build, by its path in the folder. */
export async function readIgnored(folder: string): Promise<(path: string) => boolean> {
  const rules = dockerignore.default().add(await readFile(join(folder, '.dockerignore'), 'utf8'));
  return (path) => path !== '' && rules.ignores(path);
}
