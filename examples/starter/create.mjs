#!/usr/bin/env node
// npm create postern FOLDER: copies template/ there, under the name of the folder.
import { cpSync, existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const USAGE = `npm create postern FOLDER -- [--postern FILE]

Makes a folder with a gateway: tools of your own, a test of them, and a configuration file.

  --postern FILE   take Postern from the package in FILE (postern-….tgz) and not from the registry
  --help           show this`;

/** npm leaves out files of these names when it packs. */
const RENAMED = { _gitignore: '.gitignore', '_env.example': '.env.example' };

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
  copyTemplate(folder, values.postern);
  console.log(`${name} is ready:

  cd ${name}
  npm install
  npm test            calls the tool as a client would
  npm run dev         serves it, with a provider that lets anybody in

Then change tools/time-in.mjs.`);
}

function readArguments() {
  const options = { postern: { type: 'string' }, help: { type: 'boolean', short: 'h' } };
  try {
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    return end(2, `${error.message}\n\n${USAGE}`);
  }
}

function copyTemplate(folder, tarball) {
  cpSync(fileURLToPath(new URL('template', import.meta.url)), folder, { recursive: true });
  for (const [from, to] of Object.entries(RENAMED))
    renameSync(join(folder, from), join(folder, to));
  const file = join(folder, 'package.json');
  const { name: _, dependencies, ...manifest } = JSON.parse(readFileSync(file, 'utf8'));
  const name = basename(folder)
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '-');
  const postern =
    tarball === undefined ? dependencies.postern : `file:${relative(folder, tarball)}`;
  const written = { name, ...manifest, dependencies: { ...dependencies, postern } };
  writeFileSync(file, `${JSON.stringify(written, null, 2)}\n`);
}

function end(code, message) {
  console.error(message);
  process.exit(code);
}

main();
