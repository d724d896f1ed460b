// What Kubernetes says of manifests: its own schemas, and no member that it does not know (it would ignore a misspelt one).
import { execFile } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Manifest } from './render-chart.ts';

const PACKAGES = fileURLToPath(new URL('../../../../node_modules', import.meta.url));
const OPTIONS = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--types', ''];

/** By the group of the API, where it is none of Kubernetes' own. */
const MODELS: Readonly<Record<string, string>> = {
  'monitoring.coreos.com': '@kubernetes-models/prometheus-operator',
  'gateway.networking.k8s.io': '@kubernetes-models/gateway-api',
};

/** The module of a kind, by the names of its models. */
function getModule({ apiVersion, kind }: Manifest): string {
  const [group = ''] = apiVersion.split('/');
  return `${MODELS[group] ?? 'kubernetes-models'}/${apiVersion}/${kind}`;
}

/** @throws Error with the member that is wrong. */
export async function validateManifest(manifest: Manifest): Promise<void> {
  const { [manifest.kind]: Model } = await import(getModule(manifest));
  new Model(manifest).validate();
}

/** What the compiler says of members that the types do not have; empty when all is well. */
export async function findUnknownMembers(
  manifests: readonly Manifest[],
  folder: string,
): Promise<string> {
  await mkdir(folder);
  await symlink(PACKAGES, join(folder, 'node_modules'));
  const lines = manifests.map((manifest, at) => {
    const type = `import('${getModule(manifest)}').I${manifest.kind}`;
    return `export const manifest${at}: ${type} = ${JSON.stringify(manifest)};`;
  });
  await writeFile(join(folder, 'manifests.mts'), lines.join('\n'));
  const tsc = join(PACKAGES, 'typescript', 'bin', 'tsc');
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [tsc, ...OPTIONS, 'manifests.mts'],
    { cwd: folder },
  ).catch((error: { readonly stdout: string }) => error);
  return stdout;
}
