// package.json and the lock file as users of the package need them: without what only development
// needs. npm would install that, too, and npm ci would miss what the lock file lacks.
import { readFileSync } from 'node:fs';

const root = new URL('../', import.meta.url);
const read = (name) => JSON.parse(readFileSync(new URL(name, root), 'utf8'));

export function shippedManifest() {
  return withoutDevelopment(read('package.json'));
}

export function shippedLock() {
  const { packages, ...lock } = read('package-lock.json');
  const { '': self, ...others } = packages;
  const shipped = Object.entries(others).filter(([, { dev }]) => dev !== true);
  return {
    ...lock,
    packages: {
      '': withoutDevelopment(self),
      ...Object.fromEntries(shipped.map(([path, entry]) => [path, withoutPlace(entry)])),
    },
  };
}

function withoutDevelopment({ devDependencies: _, ...rest }) {
  return rest;
}

/** Any registry will do: `integrity` says which bytes are meant. */
function withoutPlace({ resolved: _, ...rest }) {
  return rest;
}
