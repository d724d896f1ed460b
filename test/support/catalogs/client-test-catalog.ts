// One of everything that clients of both eras can use, by the authors' API.
import { setTimeout as pause } from 'node:timers/promises';
import {
  type Catalog,
  createLocalCatalog,
  definePrompt,
  defineResource,
  defineResourceTemplate,
  defineTool,
  elicit,
  sample,
} from '../../../src/index.ts';

export interface ClientTestCatalog {
  readonly catalog: Catalog;
  /** What became of each call of `wait`, by its key. */
  readonly waits: ReadonlyMap<string, 'runs' | 'was aborted'>;
  /** Tells whoever watches the resource. */
  change(uri: string): void;
}

export const TODAY = 'note://today';
export const TOMORROW = 'note://tomorrow';

const LANGUAGES = ['javascript', 'java', 'rust'];
const CITIES = ['berlin', 'bern', 'oslo'];
const NO_INPUT = { type: 'object', additionalProperties: false } as const;

/** Nobody waits for longer than any test does. */
const WAIT_MS = 120_000;

export function createClientTestCatalog(): ClientTestCatalog {
  const waits = new Map<string, 'runs' | 'was aborted'>();
  const watchers = new Map<string, Set<() => void>>();

  const note = (uri: string, content: string) =>
    defineResource({
      uri,
      name: uri,
      description: 'A note that changes',
      mimeType: 'text/plain',
      read: () => ({ text: content }),
      watch(changed) {
        const own = watchers.get(uri) ?? new Set();
        watchers.set(uri, own.add(changed));
        return () => void own.delete(changed);
      },
    });

  const wait = defineTool({
    name: 'wait',
    description: 'Waits until it is told to stop',
    inputSchema: {
      type: 'object',
      properties: { key: { type: 'string' } },
      required: ['key'],
    },
    async run({ key }, { signal }) {
      waits.set(key, 'runs');
      signal.addEventListener('abort', () => waits.set(key, 'was aborted'));
      await pause(WAIT_MS, undefined, { signal, ref: false });
      return text('Nobody told me to stop.');
    },
  });

  return {
    waits,
    change: (uri) => watchers.get(uri)?.forEach((changed) => void changed()),
    catalog: createLocalCatalog({
      tools: [add, countUp, book, summarize, report, whoAmI, wait],
      prompts: [review],
      resources: [note(TODAY, 'Sunny.'), note(TOMORROW, 'Rain.')],
      resourceTemplates: [city],
      logging: true,
    }),
  };
}

const text = (words: string) => ({ content: [{ type: 'text', text: words }] }) as const;

const add = defineTool({
  name: 'add',
  description: 'Adds two numbers',
  inputSchema: {
    type: 'object',
    properties: { a: { type: 'number' }, b: { type: 'number' } },
    required: ['a', 'b'],
  },
  outputSchema: {
    type: 'object',
    properties: { sum: { type: 'number' } },
    required: ['sum'],
  },
  run: ({ a, b }) => ({ structuredContent: { sum: a + b } }),
});

const countUp = defineTool({
  name: 'count-up',
  description: 'Counts to three, and says so',
  inputSchema: NO_INPUT,
  run(_args, { progress }) {
    for (const done of [1, 2, 3]) progress(done, 3, `${done} of 3`);
    return text('Counted.');
  },
});

const book = defineTool({
  name: 'book',
  description: 'Books a table, and asks for whom',
  inputSchema: NO_INPUT,
  async run(_args, { ask }) {
    const { guest } = await ask({
      guest: elicit('For whom?', {
        type: 'object',
        properties: { name: { type: 'string' } },
        required: ['name'],
      }),
    });
    return text(guest.action === 'accept' ? `A table for ${guest.content.name}` : 'No table');
  },
});

const summarize = defineTool({
  name: 'summarize',
  description: "Has the client's model write a summary",
  inputSchema: NO_INPUT,
  async run(_args, { ask }) {
    const { summary } = await ask({
      summary: sample({
        messages: [{ role: 'user', content: { type: 'text', text: 'Sum it up.' } }],
        maxTokens: 100,
      }),
    });
    return text(`${summary.model} says ${JSON.stringify(summary.content)}`);
  },
});

const report = defineTool({
  name: 'report',
  description: 'Logs at two levels',
  inputSchema: NO_INPUT,
  run(_args, { log }) {
    log('info', 'All is well.', 'reports');
    log('warning', 'It is getting late.', 'reports');
    return text('Reported.');
  },
});

const whoAmI = defineTool({
  name: 'who-am-i',
  description: 'Says who calls',
  inputSchema: NO_INPUT,
  run: (_args, { user }) => text(user?.sub ?? 'nobody'),
});

const review = definePrompt({
  name: 'review',
  description: 'Asks for a review',
  arguments: [
    {
      name: 'language',
      description: 'Of the code',
      required: true,
      complete: (typed) => LANGUAGES.filter((language) => language.startsWith(typed)),
    },
  ],
  get: ({ language }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `Review this ${language} code.` } }],
  }),
});

const city = defineResourceTemplate({
  uriTemplate: 'city://{name}',
  name: 'city',
  description: 'A city',
  mimeType: 'text/plain',
  complete: { name: (typed) => CITIES.filter((name) => name.startsWith(typed)) },
  read: ({ name }) => (name && CITIES.includes(name) ? { text: `This is ${name}.` } : undefined),
});
