// Guards that are modules, written by the test.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { closeAfterTest } from '../lifetimes.ts';
import { createTemporaryFolder } from '../temporary-folder.ts';

/** `body` is that of a function of `message`; `asked` counts in the text are the test's own. Resolves to `use`. */
export async function writeGuard(body: string, more: object = {}): Promise<{ module: string }> {
  const folder = closeAfterTest(await createTemporaryFolder());
  const module = join(folder.path, 'guard.mjs');
  await writeFile(module, `export default (message) => { ${body} };\n`);
  return { module, ...more };
}

/** What is said of all that goes through: everything, in the order of the steps of a call. */
export const ALL_POINTS = [
  'tools/list',
  'tools/call',
  'tools/result',
  'prompts/list',
  'prompts/get',
  'prompts/result',
  'resources/list',
  'resources/read',
  'resources/result',
  'resources/subscribe',
  'completion/complete',
  'completion/result',
  'instructions',
  'sampling',
  'sampling/result',
  'elicitation',
  'elicitation/result',
  'roots',
  'roots/result',
  'notifications',
] as const;
