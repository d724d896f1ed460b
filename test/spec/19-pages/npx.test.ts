// §20.1: in a folder where Postern is not installed, npx would run the package that has its name in the registry.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

const listFiles = (folder: string): readonly string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(md|vue|ts|mjs|txt|ya?ml)$/.test(name))
    .filter((name) => !name.includes('node_modules') && !name.includes('.vitepress/cache'))
    .map((name) => join(folder, name));

const SHOWN = [
  'README.md',
  'CONTRIBUTING.md',
  ...['docs', 'deploy', 'examples'].flatMap(listFiles),
];

/** Lines that show `npx postern` without an installation before them, below the same heading. */
function findUnsafe(text: string): readonly string[] {
  const unsafe: string[] = [];
  let isInstalled = false;
  let isCode = false;
  for (const line of text.split('\n')) {
    if (line.startsWith('```')) isCode = !isCode;
    if (!isCode && line.startsWith('#')) isInstalled = false;
    if (/\bnpm (ci|install)\b(?! --global)/.test(line)) isInstalled = true;
    if (!isInstalled && line.includes('npx postern')) unsafe.push(line);
  }
  return unsafe;
}

test('§20.1 pages: show npx postern only below the command that installs it', () => {
  const unsafe = SHOWN.map((name) => [name, findUnsafe(readFileSync(join(ROOT, name), 'utf8'))]);
  expect(unsafe.filter(([, lines]) => lines?.length !== 0)).toEqual([]);
  // The search reads the pages that show it.
  expect(readFileSync(join(ROOT, 'README.md'), 'utf8')).toContain('npx postern');
});
