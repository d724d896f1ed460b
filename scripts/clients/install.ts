// npm packages and Python environments, each in its own folder.
import { access, mkdir, readFile, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { type CommandEnd, runCommand } from './run-command.ts';

export interface Package {
  readonly from: 'npm' | 'PyPI';
  /** As the installer takes it, with the version that was tested: `mcporter@0.12.3`. */
  readonly specs: readonly string[];
  /** npm: whether its install script is part of it (it links a binary that npm brought). */
  readonly scripts?: boolean;
}

export interface Installer {
  readonly signal: AbortSignal;
  readonly latest: boolean;
  /** A folder for PATH with a Node that all clients accept; undefined where ours is. */
  readonly node: string | undefined;
}

/** Says in one sentence why a package is not there. */
export class NotInstalled extends Error {}

const LIMIT_MS = 600_000;
const READY = '.installed';
const NEVER = new AbortController().signal;

/** The version of Node.js that the newest clients require. */
const NODE = 'node@24.21.0';
const NODE_MAJOR = 22;
const PYTHONS = ['python3.13', 'python3.12', 'python3.11', 'python3'];

/** Installs into `folder`, unless it lies there already. @throws NotInstalled */
export async function install(pkg: Package, folder: string, installer: Installer): Promise<void> {
  if (await pathExists(join(folder, READY))) return;
  await mkdir(folder, { recursive: true });
  const specs = installer.latest ? pkg.specs.map(stripVersion) : pkg.specs;
  if (pkg.from === 'npm') await installNpm(specs, folder, pkg.scripts === true, installer);
  else await installPython(specs, folder, installer.signal);
  await writeFile(join(folder, READY), specs.join('\n'));
}

/** See `Installer.node`. */
export async function installNode(
  folder: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (Number.parseInt(process.versions.node, 10) >= NODE_MAJOR) return undefined;
  await install({ from: 'npm', specs: [NODE], scripts: true }, folder, {
    signal,
    latest: false,
    node: undefined,
  });
  return join(folder, 'node_modules', '.bin');
}

/** The version of its first package, even if none was requested. */
export async function installedVersion({ from, specs }: Package, folder: string): Promise<string> {
  const name = stripVersion(specs[0] ?? '').replace(/\[.*$/, '');
  if (from === 'npm') {
    const file = join(folder, 'node_modules', name, 'package.json');
    return /"version": "([^"]+)"/.exec(await readFile(file, 'utf8'))?.[1] ?? '';
  }
  const program = 'import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))';
  const python = join(folder, 'venv', 'bin', 'python');
  const { output } = await execute([python, '-c', program, name], folder, NEVER);
  return output.trim();
}

async function installNpm(
  specs: readonly string[],
  folder: string,
  scripts: boolean,
  { signal, node }: Installer,
): Promise<void> {
  await writeFile(join(folder, 'package.json'), '{ "private": true, "type": "module" }');
  const flags = ['--no-audit', '--no-fund', '--loglevel=error'];
  if (!scripts) flags.push('--ignore-scripts');
  // npm leaves out versions that ask for a newer Node than the one that it runs on.
  const end = await execute(['npm', 'install', ...flags, ...specs], folder, signal, node);
  if (end.code === 0) return;
  throw new NotInstalled(explainFailure('npm', specs, end));
}

async function installPython(
  specs: readonly string[],
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  const venv = await createVenv(folder, signal);
  const pip = [join(venv, 'bin', 'pip'), 'install', '--quiet', '--disable-pip-version-check'];
  const end = await execute([...pip, ...specs], folder, signal);
  if (end.code === 0) return;
  throw new NotInstalled(explainFailure('PyPI', specs, end));
}

async function createVenv(folder: string, signal: AbortSignal): Promise<string> {
  const venv = join(folder, 'venv');
  for (const python of PYTHONS) {
    const check = ['-c', 'import sys; sys.exit(sys.version_info < (3, 11))'];
    const isThere = await execute([python, ...check], folder, signal).catch(() => undefined);
    if (isThere?.code !== 0) continue;
    const end = await execute([python, '-m', 'venv', venv], folder, signal);
    if (end.code === 0) return venv;
    throw new NotInstalled(describeFailure(`${python} -m venv`, end));
  }
  throw new NotInstalled('there is no Python 3.11 or newer');
}

function execute(command: readonly string[], cwd: string, signal: AbortSignal, node?: string) {
  const env = createEnvironment();
  const path = [node, env.PATH].filter(Boolean).join(delimiter);
  return runCommand(command, { cwd, env: { ...env, PATH: path }, limitMs: LIMIT_MS, signal });
}

/** Settings of the person who started this, such as registries and caches. */
const createEnvironment = (): Record<string, string> =>
  Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) =>
      value === undefined || /^npm_(lifecycle|package)_/.test(name) ? [] : [[name, value]],
    ),
  );

/** pip says "no matching distribution" of a registry that it cannot reach, too. */
function explainFailure(registry: string, specs: readonly string[], end: CommandEnd): string {
  if (/ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|NewConnectionError/.test(end.output)) {
    return `${registry} cannot be reached`;
  }
  if (/E404|ETARGET|No matching distribution/.test(end.output)) {
    return `${registry} has no ${specs.join(' ')}`;
  }
  return describeFailure('the installation', end);
}

const describeFailure = (what: string, { output, wasCutOff }: CommandEnd): string =>
  `${what} ${wasCutOff ? 'took too long' : 'failed'}: ${output.trim().split('\n').slice(-3).join(' ')}`;

/** `@scope/name@1.0` and `name[extra]==1.0` → without the version. */
const stripVersion = (spec: string): string => spec.replace(/(?!^)@[^@/]+$|==.+$/, '');

const pathExists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
