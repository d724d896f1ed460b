import { existsSync } from 'node:fs';

// The same folder from src/cli/ and from dist/cli/.
const ROOT = new URL('../../', import.meta.url);
const sourceFolder = new URL('src/', ROOT);

/** The sources, where this is a checkout: an installed package has none. */
export const SOURCE_FOLDER: URL | undefined = existsSync(sourceFolder) ? sourceFolder : undefined;

/** Builds a checkout. */
export const BUILD_SCRIPT = new URL('scripts/build.mjs', ROOT);
