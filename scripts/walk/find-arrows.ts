// Which rooms import which, among the files that a call executes.
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

export interface Arrow {
  readonly from: string;
  readonly to: string;
}

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The folder of a file, both below src; a file that is in none is its own room. */
export function findRoom(file: string): string {
  const folder = posix.dirname(file);
  return folder === '.' ? file : folder;
}

/** Static imports of values; imports of types are gone once esbuild has read the files. */
export async function findArrows(files: readonly string[]): Promise<readonly Arrow[]> {
  const { metafile } = await build({
    entryPoints: files.map((file) => `src/${file}`),
    absWorkingDir: ROOT,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'es2023',
    metafile: true,
    write: false,
    outdir: 'dist',
    logLevel: 'error',
  });
  const found = new Map<string, Arrow>();
  for (const file of files) {
    for (const { path, kind } of metafile.inputs[`src/${file}`]?.imports ?? []) {
      const imported = path.replace(/^src\//, '');
      const arrow = { from: findRoom(file), to: findRoom(imported) };
      if (kind !== 'import-statement' || !files.includes(imported) || arrow.from === arrow.to) {
        continue;
      }
      found.set(renderArrow(arrow), arrow);
    }
  }
  return [...found.values()];
}

export const renderArrow = ({ from, to }: Arrow): string => `${from} → ${to}`;
