// Loads packages on first use: those that few configurations need, and that synchronous code calls.
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** Loads a CommonJS package on the first call, which takes milliseconds; later calls return it. */
export function createLoader<Package>(name: string): () => Package {
  let loaded: Package | undefined;
  return () => {
    loaded ??= require(name) as Package;
    return loaded;
  };
}
