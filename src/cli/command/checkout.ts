import { existsSync } from 'node:fs';
import { PACKAGE_ROOT } from '../../platform/own-files.ts';

const sourceFolder = new URL('src/', PACKAGE_ROOT);

/** The sources, where this is a checkout: an installed package has none. */
export const SOURCE_FOLDER: URL | undefined = existsSync(sourceFolder) ? sourceFolder : undefined;

/** Builds a checkout. */
export const BUILD_SCRIPT = new URL('scripts/build.mjs', PACKAGE_ROOT);
