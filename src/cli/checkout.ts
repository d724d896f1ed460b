import { existsSync } from 'node:fs';

// The same folder from src/cli/ and from dist/cli/.
const ROOT = new URL('../../', import.meta.url);

/** The sources, where this is a checkout: an installed package has none. */
export const SOURCES: URL | undefined = ((folder: URL) =>
  existsSync(folder) ? folder : undefined)(new URL('src/', ROOT));

/** What builds a checkout. */
export const BUILD_SCRIPT = new URL('scripts/build.mjs', ROOT);
