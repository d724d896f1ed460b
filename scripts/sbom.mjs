// npm run sbom: the parts of the package, in CycloneDX, as postern-<version>.cdx.json.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createShippedLock, createShippedManifest } from './shipped.mjs';

const manifest = createShippedManifest();
const { name, version } = manifest;
const { metadata, components, ...bom } = readBom();
const document = {
  ...bom,
  // npm calls it by the name of the folder.
  metadata: { ...metadata, component: { ...metadata.component, name } },
  components: components.map(removeDownloadUrl),
};
const file = fileURLToPath(new URL(`../${name}-${version}.cdx.json`, import.meta.url));
writeFileSync(file, `${JSON.stringify(document, null, 2)}\n`);
console.log(`${file}: ${components.length} components`);

/** In its own folder: --omit=dev also leaves out packages that both users and development need. */
function readBom() {
  const folder = mkdtempSync(join(tmpdir(), 'postern-sbom-'));
  try {
    writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
    writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(createShippedLock()));
    const options = ['--sbom-format=cyclonedx', '--sbom-type=application', '--package-lock-only'];
    const text = execFileSync('npm', ['sbom', ...options], {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    return JSON.parse(text);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The registry that this machine uses is not part of it. */
function removeDownloadUrl({ externalReferences = [], ...component }) {
  const others = externalReferences.filter(({ type }) => type !== 'distribution');
  return { ...component, externalReferences: others };
}
