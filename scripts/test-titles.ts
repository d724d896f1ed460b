// npm run docs:check: which chapters of the interface specification no test speaks of. The title
// of a test begins with its chapter: test('§4.7 token: …').
import { readdir, readFile } from 'node:fs/promises';

/**
 * The headings from §2.1 on. Left out: §3.3, which says "not shown", and §6, which says that the
 * service sends nothing of its own accord: there is no event to wait for.
 */
const CHAPTERS = [
  ...numbered(2, 8),
  ...numbered(3, 2),
  ...numbered(4, 12),
  '5',
  ...numbered(7, 5),
  '8',
  '9',
];

const folder = new URL('../test/', import.meta.url);
const names = await readdir(folder, { recursive: true });
const files = names.filter((name) => name.endsWith('.ts'));
const texts = await Promise.all(files.map((name) => readFile(new URL(name, folder), 'utf8')));

// Contracts are written once and run for each driver, so titles stand in other files, too. Only
// what a test itself says counts: a describe may be empty.
const titles = texts.flatMap((text) => [
  ...text.matchAll(/(?<!describe(?:\.each\([^)]*\))?\(\s*)['"`]§(\d+)(?:\.(\d+))?\b/g),
]);
const tested = new Set(titles.flatMap(([, chapter, part]) => [chapter, `${chapter}.${part}`]));

const missing = CHAPTERS.filter((chapter) => !tested.has(chapter));
if (missing.length > 0) {
  console.error(
    `No test has a title that begins with: ${missing.map((id) => `§${id}`).join(', ')}`,
  );
  process.exitCode = 1;
}

function numbered(chapter: number, last: number): readonly string[] {
  return Array.from({ length: last }, (_, at) => `${chapter}.${at + 1}`);
}
