// Where our own files lie: below src/ in tests, below dist/ once they are built. The build makes few files of
// many, so that a path relative to the file that asks would not hold: everybody asks here.
import { extname } from 'node:path';

/** With a slash at the end. The path is the same from src/platform/ and from dist/chunks/. */
export const PACKAGE_ROOT = new URL('../../', import.meta.url);

const ending = extname(import.meta.url);

/** src/ or dist/, with a slash at the end. */
export const CODE_FOLDER = new URL(ending === '.ts' ? 'src/' : 'dist/', PACKAGE_ROOT);

/** A module below it that is loaded by its address; scripts/build.mjs has to list it as an entry. */
export const getModuleUrl = (name: string): URL => new URL(`${name}${ending}`, CODE_FOLDER);
