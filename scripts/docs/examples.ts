import { readdirSync, readFileSync } from 'node:fs';

const folder = new URL('../../docs/examples/', import.meta.url);
const names = readdirSync(folder).filter((name) => name.endsWith('.ts'));

const BLOCK = /(<!-- example: (\S+) -->\n)[\s\S]*?(<!-- end of example -->)/g;

/**
 * `docs/authors.md` with the examples as they are in `docs/examples`, where the tests call them.
 *
 * @throws Error for an example that is not there, and for one that the page does not show.
 */
export function renderAuthorsPage(present: string): string {
  const shown = new Set<string>();
  const page = present.replace(BLOCK, (_, start: string, name: string, end: string) => {
    if (!names.includes(name)) throw new Error(`docs/examples has no ${name}`);
    shown.add(name);
    return `${start}\n\`\`\`ts\n${readFileSync(new URL(name, folder), 'utf8')}\`\`\`\n\n${end}`;
  });
  const missing = names.filter((name) => !shown.has(name));
  if (missing.length > 0) throw new Error(`docs/authors.md does not show ${missing.join(', ')}`);
  return page;
}
