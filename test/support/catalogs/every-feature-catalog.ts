// Every feature of the authors' API, once.
import {
  type Catalog,
  createLocalCatalog,
  definePrompt,
  defineResource,
  defineResourceTemplate,
  defineTool,
  type ObjectSchema,
} from '../../../src/index.ts';
import { ANNOTATIONS, BYTES, EVERY_KIND, ICONS, QUESTIONS } from './every-content-kind.ts';

export interface EveryFeatureCatalog {
  readonly catalog: Catalog;
  /** `memo://watched` has changed. */
  changed(): void;
}

const NO_INPUT = { type: 'object', properties: {}, additionalProperties: true } as const;
const said = (text: string) => ({ content: [{ type: 'text', text } as const] });

const tools = [
  defineTool({
    name: 'echo',
    title: 'Echo',
    description: 'Says it again.',
    icons: ICONS,
    annotations: {
      title: 'Echo',
      readOnlyHint: true,
      destructiveHint: false,
      idempotentHint: true,
      openWorldHint: false,
    },
    inputSchema: {
      type: 'object',
      properties: {
        text: { type: 'string', maxLength: 10_000 },
        times: { type: 'integer', minimum: 1, maximum: 3 },
        kind: { enum: ['loud', 'quiet'] },
        list: { type: 'array', items: { type: 'number' }, uniqueItems: true, maxItems: 50 },
      },
      required: ['text'],
      additionalProperties: false,
    },
    run: ({ text, times = 1 }) => said(text.repeat(times)),
  }),
  defineTool({
    name: 'structured',
    description: 'A result that programs can read.',
    inputSchema: NO_INPUT,
    outputSchema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: { sum: { type: 'number' }, parts: { type: 'array', items: { type: 'string' } } },
      required: ['sum'],
    },
    run: () => ({ structuredContent: { sum: 4.5, parts: ['a', 'b'] } }),
  }),
  defineTool({
    name: 'every_kind',
    description: 'Every kind of content.',
    inputSchema: NO_INPUT,
    run: () => ({ content: EVERY_KIND }),
  }),
  defineTool({
    name: 'tree',
    description: 'Takes a tree of any depth.',
    inputSchema: {
      type: 'object',
      properties: {
        value: { type: 'number' },
        children: { type: 'array', items: { $ref: '#' } },
      },
      required: ['value'],
    } as ObjectSchema,
    run: () => said('Taken.'),
  }),
  defineTool({
    name: 'fails',
    description: 'A failure for the model.',
    inputSchema: NO_INPUT,
    run: () => ({ ...said('No.'), isError: true }),
  }),
  defineTool({
    name: 'throws',
    description: 'An unexpected failure.',
    inputSchema: NO_INPUT,
    run() {
      throw new Error('Broken.');
    },
  }),
  defineTool({
    name: 'chatty',
    description: 'Speaks while it works.',
    inputSchema: NO_INPUT,
    run(_, { progress, log }) {
      progress(1);
      progress(50, 100);
      progress(99.5, 100, 'Nearly.');
      log('debug', { step: 1 });
      log('warning', 'Slow.', 'engine');
      log('emergency', ['now', null]);
      return said('Done.');
    },
  }),
  defineTool({
    name: 'asks',
    description: 'Asks all that can be asked, or one of it.',
    inputSchema: {
      type: 'object',
      properties: { only: { enum: ['form', 'model', 'folders'] } },
    },
    async run({ only }, { ask }) {
      const chosen = Object.entries(QUESTIONS).filter(([key]) => key === (only ?? key));
      const answers = await ask(Object.fromEntries(chosen));
      return said(`Answered: ${Object.keys(answers).join(', ')}.`);
    },
  }),
];

const prompts = [
  definePrompt({
    name: 'plain',
    description: 'Without arguments.',
    arguments: [],
    get: () => ({ messages: [{ role: 'assistant', content: { type: 'text', text: 'Hello.' } }] }),
  }),
  definePrompt({
    name: 'every_kind',
    title: 'Every kind',
    description: 'Every kind of content.',
    icons: ICONS,
    arguments: [
      {
        name: 'colour',
        description: 'Any.',
        required: true,
        complete: (typed) => ['red', 'green', 'blue'].filter((one) => one.startsWith(typed)),
      },
      { name: 'mood', description: 'How.', required: false, values: ['good', 'bad'] },
    ],
    get: ({ colour }) => ({
      description: `In ${colour}.`,
      messages: EVERY_KIND.map((content) => ({ role: 'user', content })),
    }),
  }),
  definePrompt({
    name: 'throws',
    description: 'An unexpected failure.',
    arguments: [],
    get() {
      throw new Error('Broken.');
    },
  }),
];

const resourcesWith = (watch: (changed: () => void) => () => void) => [
  defineResource({
    uri: 'memo://text',
    name: 'memo',
    title: 'Memo',
    description: 'Text.',
    mimeType: 'text/plain',
    size: 5,
    icons: ICONS,
    annotations: ANNOTATIONS,
    cache: { ttlMs: 1000, scope: 'public' },
    read: () => ({ text: 'Memo.' }),
  }),
  defineResource({
    uri: 'memo://bytes',
    name: 'bytes',
    description: 'Bytes.',
    mimeType: 'application/octet-stream',
    read: () => ({ blob: BYTES }),
  }),
  defineResource({
    uri: 'memo://watched',
    name: 'watched',
    description: 'Changes.',
    mimeType: 'text/plain',
    watch,
    read: () => ({ text: 'Now.' }),
  }),
  defineResource({
    uri: 'memo://broken',
    name: 'broken',
    description: 'An unexpected failure.',
    mimeType: 'text/plain',
    read() {
      throw new Error('Broken.');
    },
  }),
];

const templates = [
  defineResourceTemplate({
    uriTemplate: 'memo://of/{who}/{+path}',
    name: 'memos',
    title: 'Memos',
    description: 'By person.',
    mimeType: 'text/plain',
    icons: ICONS,
    annotations: ANNOTATIONS,
    complete: { who: (typed) => Array.from({ length: 120 }, (_, at) => `${typed}${at}`) },
    read: ({ who, path }) => (who === 'nobody' ? undefined : { text: `${who}: ${path}` }),
  }),
  defineResourceTemplate({
    uriTemplate: 'bytes://{name}',
    name: 'more bytes',
    description: 'Of no known type.',
    read: () => ({ blob: BYTES }),
  }),
];

/** Lists come in pages of two. */
export function createEveryFeatureCatalog(): EveryFeatureCatalog {
  const listeners = new Set<() => void>();
  function watch(changed: () => void): () => void {
    listeners.add(changed);
    return () => listeners.delete(changed);
  }
  return {
    catalog: createLocalCatalog({
      tools,
      prompts,
      resources: resourcesWith(watch),
      resourceTemplates: templates,
      logging: true,
      instructions: 'Ask anything.',
      pageSize: 2,
    }),
    changed() {
      for (const listener of listeners) listener();
    },
  };
}
