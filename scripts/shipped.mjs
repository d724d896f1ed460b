// package.json and the lock file as users of the package need them: without the parts that only development
// needs. npm would install these, too, and npm ci would miss parts that the lock file lacks.
import { readFileSync } from 'node:fs';

const root = new URL('../', import.meta.url);
const readJson = (name) => JSON.parse(readFileSync(new URL(name, root), 'utf8'));

export function createShippedManifest() {
  const { scripts, ...rest } = removeDevDependencies(readJson('package.json'));
  // It comes built.
  const { prepare: _, ...shipped } = scripts;
  return { ...rest, scripts: shipped };
}

export function createShippedLock() {
  const { packages, ...lock } = readJson('package-lock.json');
  const { '': self, ...others } = packages;
  const shipped = Object.entries(others).filter(([, { dev }]) => dev !== true);
  return {
    ...lock,
    packages: {
      '': removeDevDependencies(self),
      ...Object.fromEntries(shipped.map(([path, entry]) => [path, removeRegistry(entry)])),
    },
  };
}

function removeDevDependencies({ devDependencies: _, ...rest }) {
  return rest;
}

/** Any registry will do: `integrity` says which bytes are meant. */
function removeRegistry({ resolved: _, ...rest }) {
  return rest;
}
