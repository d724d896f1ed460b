import * as loader from 'node:module';
import { extname } from 'node:path';
import * as hooks from './resolve-postern.ts';

/** From now on whoever imports `postern` gets the package that is running. */
export function shareOwnPackage(): void {
  // The same files from src/ and from dist/, with the ending that they have there.
  const ending = extname(import.meta.url);
  const entry = new URL(`../../index${ending}`, import.meta.url).href;
  if (hasSyncHooks(loader)) {
    hooks.initialize(entry);
    loader.registerHooks({ resolve: hooks.resolve });
  } else {
    // Node 20: hooks run in a thread of their own.
    loader.register(`./resolve-postern${ending}`, import.meta.url, { data: entry });
  }
}

interface SyncHooks {
  registerHooks(given: Pick<typeof hooks, 'resolve'>): void;
}

/** Node 22.15 and newer. */
const hasSyncHooks = (module: object): module is SyncHooks => 'registerHooks' in module;
