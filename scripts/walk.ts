// npm run walk: shows the files and functions of src that a warm call executes, and their rooms.
import { readFile, writeFile } from 'node:fs/promises';
import { readOptions } from './read-options.ts';
import { SHOWN, writeSection } from './walk/page.ts';
import { renderTotals, renderWalk } from './walk/render.ts';
import { takeWalk, type WalkResult } from './walk/take-walk.ts';
import { WALKS } from './walk/walks.ts';

const NAMES = WALKS.map(({ name }) => name).join(', ');

const USAGE = `Usage: npm run walk -- [METHOD] [options]

Makes calls until everything is warm, counts the functions of src that one more call executes, and prints
them by file and by room: a room is a folder of src. An arrow leads from one room to another where an
executed file imports a value from another executed file. Without METHOD it prints the totals of all.

METHOD is one of ${NAMES}.

  --functions      the functions of each file, too: name, line, and how often they were entered where
                   that is more than once (an async function that waits is entered again)
  --write          writes the totals into docs/architecture.md
  --check          fails if docs/architecture.md shows other totals
  --help           this text`;

const { values, positionals } = readOptions(USAGE, {
  allowPositionals: true,
  options: {
    functions: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
  },
});
const [method, ...others] = positionals;
const walk = WALKS.find(({ name }) => name === method);

if (method !== undefined && walk === undefined) {
  refuse(`There is no walk "${method}". There are ${NAMES}.`);
} else if (others.length > 0) {
  refuse('Name one METHOD, or none for the totals of all.');
} else if (walk !== undefined && (values.write || values.check)) {
  refuse('--write and --check need the totals of all: leave METHOD out.');
} else if (walk === undefined && values.functions) {
  refuse('--functions needs a METHOD.');
} else if (walk === undefined) {
  await walkAll();
} else {
  const { functions: hasFunctions } = values;
  console.log(renderWalk(await takeWalk(walk), { hasFunctions }));
}

async function walkAll(): Promise<void> {
  const isForPage = values.write || values.check;
  const walks = isForPage ? WALKS.filter(({ name }) => SHOWN.includes(name)) : WALKS;
  const results: WalkResult[] = [];
  for (const one of walks) results.push(await takeWalk(one));
  if (!isForPage) {
    console.log(renderTotals(results));
    return;
  }
  const file = new URL('../docs/architecture.md', import.meta.url);
  const page = await readFile(file, 'utf8');
  const written = writeSection(page, results);
  if (values.write) await writeFile(file, written);
  else if (written !== page)
    refuse('docs/architecture.md shows another walk: npm run walk -- --write writes it.');
}

function refuse(message: string): void {
  console.error(message);
  process.exitCode = 2;
}
