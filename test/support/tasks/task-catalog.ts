// Tools whose calls may be tasks, and do what the test says.
import { type Context, createLocalCatalog, defineTool } from '../../../src/index.ts';
import { said } from '../catalogs/conformance/content.ts';

export type Work = (context: Context) => Promise<string>;

const LABEL = {
  type: 'object',
  properties: { label: { type: 'string' } },
  required: ['label'],
  additionalProperties: false,
} as const;

/** `works` says what a call with that label does; the text becomes its result. */
export function createTaskCatalog(works: Map<string, Work>) {
  async function run(label: string, context: Context) {
    const work = works.get(label);
    if (work === undefined) throw new Error(`No test said what ${label} does.`);
    return said(await work(context));
  }
  return createLocalCatalog({
    tools: [
      defineTool({
        name: 'job',
        description: 'A call that may be a task.',
        inputSchema: LABEL,
        task: 'optional',
        run: ({ label }, context) => run(label, context),
      }),
      defineTool({
        name: 'always',
        description: 'A call that always is one.',
        inputSchema: LABEL,
        task: true,
        run: ({ label }, context) => run(label, context),
      }),
      defineTool({
        name: 'plain',
        description: 'A call that never is.',
        inputSchema: LABEL,
        run: ({ label }, context) => run(label, context),
      }),
    ],
  });
}

/** What a test ends when it wants to. */
export function createDeferred() {
  let resolve: (text: string) => void = () => {};
  const promise = new Promise<string>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
