#!/usr/bin/env node
// npm create postern FOLDER: a project with Postern in it, which postern init then fills.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';

const USAGE = `npm create postern FOLDER -- [--yes] [--postern FILE]

Makes a folder with a gateway of your own: tools with their test, or MCP servers that you have. It asks which.

  --yes            ask nothing: a first tool with its test, and the development provider
  --postern FILE   take Postern from the package in FILE (postern-….tgz) and not from the registry
  --help           show this`;

const { version } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'));

function main() {
  const { values, positionals } = readArguments();
  if (values.help) return console.log(USAGE);
  const [name] = positionals;
  if (name === undefined || positionals.length > 1) end(2, `One folder is needed.\n\n${USAGE}`);
  const folder = resolve(name);
  if (existsSync(folder) && readdirSync(folder).length > 0) {
    end(1, `${name} is there already, and not empty. Choose another folder.`);
  }
  if (values.postern !== undefined && !existsSync(values.postern)) {
    end(
      1,
      `--postern: there is no file ${values.postern}. npm pack in a checkout of Postern makes it.`,
    );
  }
  const postern =
    values.postern === undefined ? version : `file:${relative(folder, resolve(values.postern))}`;
  const made = mkdirSync(folder, { recursive: true });
  // Without a listener Ctrl+C would end this process at once, and leave half a project.
  process.on('SIGINT', () => {});
  console.log(`Installing Postern in ${name} …`);
  try {
    fill(folder, postern, values.yes);
  } catch (error) {
    removeProject(folder, made);
    end(
      error instanceof Stopped ? 130 : 1,
      `${error.message} What was made in ${name} is removed again.`,
    );
  }
  console.log(`\nAll of it in the folder: cd ${name.includes(' ') ? `'${name}'` : name}`);
}

function fill(folder, postern, isYes) {
  writeManifest(folder, postern);
  run(folder, 'npm', ['install', '--no-audit', '--no-fund', '--loglevel=error']);
  const asks = !isYes && process.stdin.isTTY && process.stdout.isTTY;
  const init = [join(folder, 'node_modules', 'postern', 'dist', 'cli', 'main.js'), 'init'];
  run(folder, process.execPath, [...init, ...(asks ? [] : ['--yes'])]);
  // Now it is known what there is to serve.
  writeManifest(folder, postern);
}

/** The user pressed Ctrl+C. */
class Stopped extends Error {}

/** All that was made, and not the empty folder that may have been there before. */
function removeProject(folder, made) {
  const paths = made === undefined ? readdirSync(folder).map((file) => join(folder, file)) : [made];
  for (const path of paths) rmSync(path, { recursive: true, force: true });
}

function readArguments() {
  const options = {
    yes: { type: 'boolean' },
    postern: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  };
  try {
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    return end(2, `${error.message}\n\n${USAGE}`);
  }
}

/** The scripts name the files: .env, which names them as well, stays on this machine. */
function writeManifest(folder, postern) {
  const files = [
    ['--catalog', 'catalog.mjs'],
    ['--config', 'postern.yaml'],
  ].filter(([, file]) => existsSync(join(folder, file)));
  const options = files.flat().join(' ');
  const manifest = {
    name: basename(folder)
      .toLowerCase()
      .replace(/[^a-z0-9-]+/g, '-'),
    version: '0.1.0',
    private: true,
    type: 'module',
    scripts: {
      dev: `postern dev ${options}`.trim(),
      start: `postern start ${options}`.trim(),
      test: 'node --test',
    },
    dependencies: { postern },
  };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}

function run(cwd, command, args) {
  const { status, signal, error } = spawnSync(command, args, { cwd, stdio: 'inherit' });
  if (status === 0) return;
  if (signal === 'SIGINT' || status === STOPPED) throw new Stopped('Stopped.');
  throw new Error(error === undefined ? `${command} failed: see above.` : `${error.message}.`);
}

/** How npm, and questions of postern init, end by Ctrl+C. */
const STOPPED = 130;

function end(code, message) {
  console.error(message);
  process.exit(code);
}

main();
