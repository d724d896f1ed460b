import * as loader from 'node:module';
import { extname } from 'node:path';
import * as hooks from './resolve-postern.ts';

/** From now on whoever imports `postern` or `postern/define` gets the package that is running. */
export function registerPosternResolver(): void {
  // The same files from src/ and from dist/, with the ending that they have there.
  const ending = extname(import.meta.url);
  const urlOfFile = (name: string) => new URL(`../../${name}${ending}`, import.meta.url).href;
  const entries = { postern: urlOfFile('index'), 'postern/define': urlOfFile('define') };
  if (hasRegisterHooks(loader)) {
    hooks.initialize(entries);
    loader.registerHooks({ resolve: hooks.resolve });
  } else {
    // Node 20: hooks run in a thread of their own.
    loader.register(`./resolve-postern${ending}`, import.meta.url, { data: entries });
  }
}

interface ModuleWithHooks {
  registerHooks(syncHooks: Pick<typeof hooks, 'resolve'>): void;
}

/** Node 22.15 and newer. */
const hasRegisterHooks = (module: object): module is ModuleWithHooks => 'registerHooks' in module;
