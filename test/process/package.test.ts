// The package that npm pack makes: installed in a folder of its own, it needs no checkout.
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { publint } from 'publint';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { callTool, catalogModule, writeFileIn } from '../support/catalogs/catalog-files.ts';
import { npm, PACKED, packCheckout, QUIETLY, ROOT } from '../support/deploy/pack.ts';
import { freePort } from '../support/gateway/ports.ts';
import { endPosterns, launch, runPostern, startPostern } from '../support/gateway/process.ts';
import { logIn } from '../support/gateway/process-login.ts';
import { INSTALLATION_MS } from '../support/tools/npx-tool.ts';

type Lock = Readonly<Record<string, { readonly version: string; readonly dev?: true }>>;

let place: string;
let tarball: string;
let installed: string;
let main: string;

beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), 'postern-package-'));
  tarball = await packCheckout(place);
  await run('tar', 'xzf', tarball);
  installed = join(place, 'installed');
  await mkdir(installed);
  await npm(installed, 'install', ...QUIETLY, tarball);
  main = join(installed, 'node_modules', '.bin', 'postern');
}, INSTALLATION_MS);

afterEach(endPosterns);
afterAll(() => rm(place, { recursive: true, force: true }));

/** A program in the folder of the package, by its name on the PATH or its file. */
const run = (command: string, ...args: readonly string[]) =>
  promisify(execFile)(command, args, { cwd: place });

const read = async (...path: readonly string[]) =>
  JSON.parse(await readFile(join(place, ...path), 'utf8'));

/** What the lock file of the checkout has for users, by place. */
async function lockedVersions(): Promise<Readonly<Record<string, string>>> {
  const { packages }: { packages: Lock } = await read('checkout', 'package-lock.json');
  return Object.fromEntries(
    Object.entries(packages)
      .filter(([path, { dev }]) => path !== '' && dev !== true)
      .map(([path, { version }]) => [path, version]),
  );
}

test('§9 package: names every version, and no place to get it from', async () => {
  const text = await readFile(join(place, 'package', 'npm-shrinkwrap.json'), 'utf8');
  const { packages }: { packages: Lock } = JSON.parse(text);
  const { '': self, ...others } = packages;
  const versions = Object.entries(others).map(([path, { version }]) => [path, version]);
  expect(Object.fromEntries(versions)).toEqual(await lockedVersions());
  expect(self).not.toHaveProperty('devDependencies');
  expect(text).not.toMatch(/"resolved"|https?:\/\/[^"]*\.tgz/);
});

test('§9 package: has what the README links to beside it', async () => {
  const names = await readdir(join(place, 'package'));
  expect(names).toEqual(
    expect.arrayContaining(['README.md', 'SECURITY.md', '.env.example', 'postern.schema.json']),
  );
});

test('§9 package: publint finds nothing to say about it', async () => {
  const { messages } = await publint({ pkgDir: join(place, 'package'), strict: true });
  expect(messages).toEqual([]);
});

// Postern is ECMAScript modules only, which every supported Node.js can also require().
test('§9 package: whoever imports it finds its types', async () => {
  const attw = join(ROOT, 'node_modules', '.bin', 'attw');
  // It ends with an error where something is wrong.
  const { stdout } = await run(attw, tarball, '--profile', 'esm-only', '--format', 'json');
  const { analysis } = JSON.parse(stdout);
  expect(Object.keys(analysis.entrypoints)).toEqual(['.', './define', './testing']);
});

test('§9 package: what makes it leaves the checkout as it was', async () => {
  const names = await readdir(join(place, 'checkout'));
  expect(names.sort()).toEqual([...PACKED].sort());
  const manifest = await readFile(join(place, 'checkout', 'package.json'), 'utf8');
  expect(manifest).toBe(await readFile(join(ROOT, 'package.json'), 'utf8'));
});

test(
  '§9 package: npm ci in it installs exactly these versions',
  async () => {
    await npm(join(place, 'package'), 'ci', '--ignore-scripts', ...QUIETLY);
    const { packages }: { packages: Lock } = await read(
      'package',
      'node_modules',
      '.package-lock.json',
    );
    const locked = await lockedVersions();
    expect(Object.keys(packages).length).toBeGreaterThan(20);
    for (const [path, { version }] of Object.entries(packages)) expect(version).toBe(locked[path]);
  },
  INSTALLATION_MS,
);

test('§9 package: npm run sbom names each part with its version, and no place', async () => {
  const checkout = join(place, 'checkout');
  const { version } = await read('checkout', 'package.json');
  await npm(checkout, 'run', 'sbom');
  const bom = await read('checkout', `postern-${version}.cdx.json`);
  expect(bom).toMatchObject({
    bomFormat: 'CycloneDX',
    metadata: { component: { name: 'postern', version, purl: `pkg:npm/postern@${version}` } },
  });
  const parts: readonly { name: string; version: string }[] = bom.components;
  const named = parts.map((part) => `${part.name}@${part.version}`);
  for (const [path, locked] of Object.entries(await lockedVersions())) {
    expect(named).toContain(`${path.replace(/^.*node_modules\//, '')}@${locked}`);
  }
  expect(JSON.stringify(bom)).not.toContain('.tgz');
});

test('§9 package: postern says its version', async () => {
  const { version } = await read('checkout', 'package.json');
  const { stdout } = await runPostern({}, { main, args: ['--version'], cwd: installed });
  expect(stdout).toBe(`${version}\n`);
});

test('§18.1 package: postern reads a configuration file in JSON and YAML', async () => {
  for (const name of ['mcp.json', 'mcp.yaml']) {
    await writeFileIn(installed, name, '{ "mcpServer": {} }');
    const args = ['start', '--config', name];
    const env = { AUTH_REQUIRED: 'false' };
    const { code, stderr } = await runPostern(env, { main, args, cwd: installed });
    expect(code).toBe(1);
    expect(stderr).toBe(
      `Postern cannot start:\n  - ${name}:1: "mcpServer" is not known. Did you mean mcpServers?\n`,
    );
  }
});

test('§5 package: postern dev serves a catalogue, and lets a user in', async () => {
  await writeFileIn(installed, 'catalog.mjs', catalogModule('mine'));
  const port = await freePort();
  const url = `http://localhost:${port}`;
  const args = ['dev', '--port', String(port), '--catalog', 'catalog.mjs'];
  const postern = launch({ DATA_DIR: join(place, 'data') }, { main, args, cwd: installed });
  await expect.poll(() => postern.stdout, { timeout: 30_000 }).toContain('Press Ctrl+C to stop.');
  expect(postern.stdout).toMatch(/npx @modelcontextprotocol\/inspector|curl http/);
  expect(postern.stdout).not.toContain('npm run');
  const { accessToken } = await logIn(url, 'ada');
  expect(await callTool(url, 'say', accessToken)).toBe('mine');
  expect(await callTool(url, 'me', accessToken)).toBe('ada');
  expect(await callTool(url, 'me')).toMatchObject({ code: -32001 });
  postern.kill('SIGTERM');
  expect(await postern.ended).toEqual({ code: 0, signal: null });
});

test.each([
  { from: 'a checkout', findMain: () => join(ROOT, 'dist', 'cli', 'main.js') },
  { from: 'node_modules', findMain: () => main },
])(
  '§20.6 package: a folder that init of $from wrote has npx run this package, wherever it is copied to',
  async ({ findMain }) => {
    const written = await mkdtemp(join(place, 'written-'));
    const args = ['init', '--yes'];
    const made = await runPostern({}, { main: findMain(), args, cwd: written });
    expect(made.code, made.stderr).toBe(0);
    const copy = await mkdtemp(join(place, 'copy-'));
    await cp(written, copy, { recursive: true });
    await rm(written, { recursive: true });
    await npm(copy, 'install', ...QUIETLY);
    const { version } = await read('checkout', 'package.json');
    // Offline, npx cannot run what a registry has.
    const { stdout } = await promisify(execFile)('npx', ['--offline', 'postern', 'version'], {
      cwd: copy,
    });
    expect(stdout).toBe(`${version}\n`);
    const schema = /\$schema=(\S+)/.exec(await readFile(join(copy, 'postern.yaml'), 'utf8'));
    expect(await readFile(join(copy, schema?.[1] ?? ''), 'utf8')).toContain('mcpServers');
    await promisify(execFile)(process.execPath, ['--test'], { cwd: copy });
  },
  INSTALLATION_MS,
);

test('§5 package: without the development provider dev says how to get it, start runs', async () => {
  const provider = join(installed, 'node_modules', 'oidc-provider');
  await rename(provider, `${provider}-hidden`);
  try {
    const port = String(await freePort());
    const dev = { main, args: ['dev', '--port', port], cwd: installed };
    const { code, stderr } = await runPostern({ DATA_DIR: join(place, 'data') }, dev);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /oidc-provider .*--include=optional.* OIDC_ISSUER .*AUTH_REQUIRED=false/,
    );
    const start = { main, args: ['start'], cwd: installed };
    const { url } = await startPostern({ AUTH_REQUIRED: 'false' }, start);
    expect(await callTool(url, 'service_ping')).toBe('Postern MCP Server: pong');
  } finally {
    await rename(`${provider}-hidden`, provider);
  }
});
