// npm run docs:check: the reference (docs/reference.md, docs/reference/) numbers what the service does. A chapter that no test
// names is an error, and so is a § in the code that the reference does not have.
import { readdir, readFile } from 'node:fs/promises';

const root = new URL('../', import.meta.url);
const reference = [
  await readFile(new URL('docs/reference.md', root), 'utf8'),
  ...(await textsIn('docs/reference/', '.md')).values(),
].join('\n');

const headings = numbersIn(reference, /^#{2,3} (\d+(?:\.\d+)?) /gm);
/** Rules that are in a table of their chapter. */
const rows = numbersIn(reference, /^\| (\d+\.\d+) +\|/gm);
const known = new Set([...headings, ...rows]);

/** They say what the service does not do, so there is nothing to test. */
const UNTESTED = new Set(['3.3', '6']);
const isParent = (chapter: string) => headings.some((other) => other.startsWith(`${chapter}.`));

const tests = await textsIn('test/');
const sources = await textsIn('src/');

// The title of a test begins with its chapter: test('§4.7 token: …'). Contracts are written once and
// run for each driver, so titles stand in other files, too. A describe may be empty: it does not count.
const tested = new Set(
  [...tests.values()].flatMap((text) =>
    numbersIn(text, /(?<!describe(?:\.each\([^)]*\))?\(\s*)['"`]§(\d+(?:\.\d+)?)\b/g),
  ),
);
const missing = headings.filter(
  (chapter) => !isParent(chapter) && !UNTESTED.has(chapter) && !tested.has(chapter),
);
if (missing.length > 0) report('No test has a title that begins with', missing);

for (const [name, text] of tests) {
  const groups = numbersIn(text, /\bdescribe(?:\.each\([^)]*\))?\(\s*['"`]§([\d.]+)/g);
  if (groups.length > 0) report(`${name} has a chapter in a describe, not in its tests`, groups);
}

for (const [name, text] of [...sources, ...tests]) {
  const strange = numbersIn(ownReferences(text), /§(\d+(?:\.\d+)*)/g).filter(
    (at) => !known.has(at),
  );
  if (strange.length > 0) report(`${name} names what the reference does not have`, strange);
}

function report(problem: string, chapters: readonly string[]): void {
  console.error(`${problem}: ${chapters.map((chapter) => `§${chapter}`).join(', ')}`);
  process.exitCode = 1;
}

function numbersIn(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].flatMap(([, number]) =>
    number === undefined ? [] : [number],
  );
}

/** Without the sections of other documents: `RFC 6749 §4.1.3 and §6`, also over the end of a line. */
function ownReferences(text: string): string {
  const lines = text.replace(/\n\s*(?:\/\/|\*)\s*/g, ' ');
  return lines.replace(
    /\b(?:RFC \w+|Core|Context|standard|HTML|Documents?(?: \(draft\))?)(?:(?:,|,? and)? §[\d.]+)+/g,
    '',
  );
}

async function textsIn(folder: string, ending = '.ts'): Promise<ReadonlyMap<string, string>> {
  const base = new URL(folder, root);
  const names = (await readdir(base, { recursive: true })).filter((name) => name.endsWith(ending));
  const texts = names.map(async (name) => {
    const text = await readFile(new URL(name, base), 'utf8');
    return [folder + name, text] as const;
  });
  return new Map(await Promise.all(texts));
}
