import { readdirSync, readFileSync } from 'node:fs';

const EXAMPLES = 'docs/examples';
const ONE_OF_EACH = 'test/types/one-of-each';

const root = new URL('../../', import.meta.url);
const listFiles = (folder: string) =>
  readdirSync(new URL(folder, root)).filter((name) => name.endsWith('.ts'));
const names = listFiles(EXAMPLES);

const BLOCK = /(<!-- example: (\S+) -->\n)[\s\S]*?(<!-- end of example -->)/g;

/** Each is shown on its own page, and all others by `docs/authors.md`. */
const TEST = 'testing.ts';
const SAMPLING = 'sampling.ts';
const TASK = 'task.ts';
const SKILL = 'skill.ts';

/** A page with the examples as they are in a folder, where the tests call them. */
type RenderPage = (present: string) => string;

/** @throws Error for an example that is not there, and for one that the page does not show. */
const createRenderPage =
  (page: string, expected: readonly string[], folder = EXAMPLES): RenderPage =>
  (present) => {
    const known = listFiles(folder);
    const shown = new Set<string>();
    const rendered = present.replace(BLOCK, (_, start: string, name: string, end: string) => {
      if (!known.includes(name)) throw new Error(`${folder} has no ${name}`);
      shown.add(name);
      const code = readFileSync(new URL(`${folder}/${name}`, root), 'utf8');
      return `${start}\n\`\`\`ts\n${code}\`\`\`\n\n${end}`;
    });
    const missing = expected.filter((name) => !shown.has(name));
    if (missing.length > 0) throw new Error(`${page} does not show ${missing.join(', ')}`);
    return rendered;
  };

export const renderAuthorsPage = createRenderPage(
  'docs/authors.md',
  names.filter((name) => ![TEST, SAMPLING, TASK, SKILL].includes(name)),
);
export const renderTestingPage = createRenderPage('docs/testing.md', [TEST]);
export const renderSamplingPage = createRenderPage('docs/sampling.md', [SAMPLING]);
export const renderTasksPage = createRenderPage('docs/tasks.md', [TASK]);
export const renderSkillsPage = createRenderPage('docs/skills.md', [SKILL]);

/** Parts of the others, which a newcomer writes for more than the form. */
const UNSHOWN = ['memory-store.ts', 'queue.ts'];

/** Everything that can be added here, one of each. */
export const renderContributingPage = createRenderPage(
  'CONTRIBUTING.md',
  listFiles(ONE_OF_EACH).filter((name) => !UNSHOWN.includes(name)),
  ONE_OF_EACH,
);
