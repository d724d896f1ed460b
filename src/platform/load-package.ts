// Packages that few starts need, and functions that cannot wait for them: loaded at the first call.
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** The first call loads a CommonJS package, which takes milliseconds; the next ones only return it. */
export function createLoader<Package>(name: string): () => Package {
  let loaded: Package | undefined;
  return () => {
    loaded ??= require(name) as Package;
    return loaded;
  };
}
