// The pages for authors and about the protocol, read as a program that holds them to their word.
import { readFileSync } from 'node:fs';

export const readPage = (name: string): string =>
  readFileSync(new URL(`../../../docs/${name}.md`, import.meta.url), 'utf8');

/** The JSON blocks that follow an example, up to the next one: what comes back, says the page. */
export function exampleAnswers(page: string, example: string): readonly unknown[] {
  const [, after] = page.split(`<!-- example: ${example} -->`);
  if (after === undefined) throw new Error(`The page has no example ${example}`);
  const [own = ''] = after.split('<!-- example: ');
  return codeBlocks(own, 'json').map((block) => JSON.parse(block));
}

/** The code blocks in a language. */
export const codeBlocks = (page: string, language: string): readonly string[] =>
  [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].flatMap(([, said, block]) =>
    said === language && block !== undefined ? [block] : [],
  );

/** The settings of a block of .env with those that are commented out. */
export const uncommentSettings = (block: string): string => block.replace(/^#(?=[A-Z_]+=)/gm, '');
