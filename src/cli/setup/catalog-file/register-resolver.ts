import * as loader from 'node:module';
import { getModuleUrl } from '../../../platform/own-files.ts';
import * as hooks from './resolve-postern.ts';

/** From now on whoever imports `postern` or `postern/define` gets the package that is running. */
export function registerPosternResolver(): void {
  const entries = {
    postern: getModuleUrl('index').href,
    'postern/define': getModuleUrl('define').href,
  };
  if (hasRegisterHooks(loader)) {
    hooks.initialize(entries);
    loader.registerHooks({ resolve: hooks.resolve });
  } else {
    // Node 20: hooks run in a thread of their own.
    loader.register(getModuleUrl('cli/setup/catalog-file/resolve-postern'), { data: entries });
  }
}

interface ModuleWithHooks {
  registerHooks(syncHooks: Pick<typeof hooks, 'resolve'>): void;
}

/** Node 22.15 and newer. */
const hasRegisterHooks = (module: object): module is ModuleWithHooks => 'registerHooks' in module;
