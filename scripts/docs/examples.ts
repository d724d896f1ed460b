import { readdirSync, readFileSync } from 'node:fs';

const folder = new URL('../../docs/examples/', import.meta.url);
const names = readdirSync(folder).filter((name) => name.endsWith('.ts'));

const BLOCK = /(<!-- example: (\S+) -->\n)[\s\S]*?(<!-- end of example -->)/g;

/** Each is shown by a page of its own, and all others by `docs/authors.md`. */
const TEST = 'testing.ts';
const SAMPLING = 'sampling.ts';
const TASK = 'task.ts';
const SKILL = 'skill.ts';

/** A page with the examples as they are in `docs/examples`, where the tests call them. */
type RenderPage = (present: string) => string;

/** @throws Error for an example that is not there, and for one that the page does not show. */
const createRenderPage =
  (page: string, expected: readonly string[]): RenderPage =>
  (present) => {
    const shown = new Set<string>();
    const rendered = present.replace(BLOCK, (_, start: string, name: string, end: string) => {
      if (!names.includes(name)) throw new Error(`docs/examples has no ${name}`);
      shown.add(name);
      return `${start}\n\`\`\`ts\n${readFileSync(new URL(name, folder), 'utf8')}\`\`\`\n\n${end}`;
    });
    const missing = expected.filter((name) => !shown.has(name));
    if (missing.length > 0) throw new Error(`docs/${page}.md does not show ${missing.join(', ')}`);
    return rendered;
  };

export const renderAuthorsPage = createRenderPage(
  'authors',
  names.filter((name) => ![TEST, SAMPLING, TASK, SKILL].includes(name)),
);
export const renderTestingPage = createRenderPage('testing', [TEST]);
export const renderSamplingPage = createRenderPage('sampling', [SAMPLING]);
export const renderTasksPage = createRenderPage('tasks', [TASK]);
export const renderSkillsPage = createRenderPage('skills', [SKILL]);
