// npm run wasm: compiles wasm/scan-json.ts, and writes what comes of it as a module of the source. With --check it writes
// nothing and fails when that is out of date.
// Plain JavaScript: the compiler is ten megabytes of it, which tsx would look through first.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';

/** The compiler's own: it takes 100 MB, which nobody else needs. */
const folder = new URL('../wasm/', import.meta.url);
const compiler = new URL('node_modules/assemblyscript/dist/asc.js', folder);
if (!existsSync(compiler)) {
  console.log('Installing the compiler of wasm/scan-json.ts …');
  const stdio = ['ignore', 'ignore', 'inherit'];
  execFileSync('npm', ['ci', '--ignore-scripts', '--silent'], { cwd: folder, stdio });
}
const { default: asc } = await import(compiler.href);

const SOURCE = 'wasm/scan-json.ts';
const target = new URL('../src/platform/scan/scan-module.ts', import.meta.url);

/** Without a runtime, and without anything imported but the memory. */
const OPTIONS = '-O3 --runtime stub --noAssert --enable simd --importMemory --noExportMemory';

async function compile() {
  const written = new Map();
  const { error, stderr } = await asc.main(
    [SOURCE, '--outFile', 'scan.wasm', ...OPTIONS.split(' ')],
    {
      readFile: (name) =>
        readFile(new URL(`../${name}`, import.meta.url), 'utf8').catch(() => null),
      writeFile: (name, content) => void written.set(name, content),
    },
  );
  const bytes = written.get('scan.wasm');
  if (error || !(bytes instanceof Uint8Array)) throw new Error(`${SOURCE}: ${stderr}`);
  return bytes;
}

const wanted = `// Generated from ${SOURCE} by npm run wasm.
export const SCAN_MODULE =
  '${Buffer.from(await compile()).toString('base64')}';
`;
const present = await readFile(target, 'utf8').catch(() => '');
if (present !== wanted && process.argv.includes('--check')) {
  console.error(`${target.pathname} is out of date: run npm run wasm, and commit what it writes.`);
  process.exitCode = 1;
} else if (present !== wanted) {
  await writeFile(target, wanted);
  console.log(`${target.pathname} written`);
}
