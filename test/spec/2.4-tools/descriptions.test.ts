// What authors say of their tools, prompts, resources and templates is listed as they said it.
import { beforeAll, expect, test } from 'vitest';
import {
  createLocalCatalog,
  DefinitionError,
  definePrompt,
  defineResource,
  defineResourceTemplate,
  defineTool,
} from '../../../src/index.ts';
import { useGateway } from '../../support/gateway/use-gateway.ts';

const icons = [
  { src: 'https://a.example/i.svg', mimeType: 'image/svg+xml', sizes: ['any'] },
  { src: 'data:image/png;base64,AAAA', mimeType: 'image/png', sizes: ['48x48'], theme: 'dark' },
] as const;
const annotations = {
  audience: ['user', 'assistant'],
  priority: 0.5,
  lastModified: '2025-01-12T15:00:58Z',
} as const;

const TOOL = {
  name: 'tool.of-many_words',
  title: 'Tool of many words',
  description: 'Says all.',
  icons,
  inputSchema: {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: { a: { type: 'string', description: 'A.', default: 'x' } },
    $defs: { unused: { type: 'null' } },
    additionalProperties: false,
  },
  outputSchema: {
    type: 'object',
    properties: { n: { type: 'number', title: 'N' } },
    required: ['n'],
  },
  annotations: {
    title: 'Another title',
    readOnlyHint: true,
    destructiveHint: false,
    idempotentHint: true,
    openWorldHint: false,
  },
} as const;
const ARGUMENT = { name: 'who', description: 'Whom to greet.', required: true } as const;
const PROMPT = {
  name: 'prompt',
  title: 'Prompt',
  description: 'Says all.',
  icons,
} as const;
const RESOURCE = {
  uri: 'x://resource',
  name: 'resource',
  title: 'Resource',
  description: 'Says all.',
  mimeType: 'text/plain',
  size: 1234,
  icons,
  annotations,
} as const;
const TEMPLATE = {
  uriTemplate: 'x://{id}',
  name: 'template',
  title: 'Template',
  description: 'Says all.',
  mimeType: 'text/plain',
  icons,
  annotations,
} as const;

const complete = () => ['one'];
const catalog = createLocalCatalog({
  tools: [
    defineTool({ ...TOOL, run: () => ({ structuredContent: { n: 1 } }) }),
    defineTool({
      name: 'plain',
      description: 'Says little.',
      inputSchema: { type: 'object' },
      run: () => ({ content: [] }),
    }),
  ],
  prompts: [
    definePrompt({
      ...PROMPT,
      arguments: [{ ...ARGUMENT, values: ['one', 'two'], complete }],
      get: () => ({ messages: [] }),
    }),
  ],
  resources: [
    defineResource({
      ...RESOURCE,
      cache: { ttlMs: 1, scope: 'public' },
      watch: () => () => {},
      read: () => ({ text: '' }),
    }),
  ],
  resourceTemplates: [
    defineResourceTemplate({ ...TEMPLATE, complete: { id: complete }, read: () => undefined }),
  ],
});

const gateway = useGateway({ deps: { catalog } });
let session: string;
beforeAll(async () => {
  session = await gateway.open();
});

test.each([
  {
    method: 'tools/list',
    result: {
      tools: [
        TOOL,
        { name: 'plain', description: 'Says little.', inputSchema: { type: 'object' } },
      ],
    },
  },
  { method: 'prompts/list', result: { prompts: [{ ...PROMPT, arguments: [ARGUMENT] }] } },
  { method: 'resources/list', result: { resources: [RESOURCE] } },
  { method: 'resources/templates/list', result: { resourceTemplates: [TEMPLATE] } },
])('§2.4 $method says what its authors said, and nothing else', async ({ method, result }) => {
  expect((await gateway.call(session, method)).json).toEqual({ jsonrpc: '2.0', result, id: 1 });
});

test.each([
  { outputSchema: { type: 'object', properties: { n: { type: 'numbr' } } }, says: /outputSchema/ },
  { outputSchema: { type: 'object', required: 'n' }, says: /outputSchema/ },
  { outputSchema: { type: 'array' }, says: /outputSchema must have the type object/ },
  { outputSchema: {}, says: /outputSchema must have the type object/ },
  {
    outputSchema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      prefixItems: 1,
    },
    says: /outputSchema.prefixItems is 1; it must be array/,
  },
])(
  '§2.4 a tool with the outputSchema $outputSchema is refused by name',
  ({ outputSchema, says }) => {
    const define = () =>
      defineTool({
        name: 'wrong',
        description: 'Has a wrong schema.',
        inputSchema: { type: 'object' },
        outputSchema: outputSchema as unknown as { type: 'object' },
        run: () => ({ structuredContent: {} }),
      });
    expect(define).toThrow(DefinitionError);
    expect(define).toThrow(says);
    expect(define).toThrow('wrong');
  },
);

const template = (uriTemplate: string, completers?: Record<string, () => string[]>) => () =>
  defineResourceTemplate({
    uriTemplate,
    name: 'wrong',
    description: 'Has a wrong template.',
    ...(completers && { complete: completers }),
    read: () => undefined,
  });

test.each([
  { uriTemplate: 'x://none', says: 'it has no variable' },
  { uriTemplate: 'x://{open', says: 'Resource template' },
  { uriTemplate: 'x://{a}/{open', says: 'brace' },
  { uriTemplate: 'x://{a}/close}', says: 'brace' },
  { uriTemplate: 'x://{}', says: '{name}' },
  { uriTemplate: 'x://{a,b}', says: '{name}' },
  { uriTemplate: 'x://{?q}', says: '{name}' },
  { uriTemplate: 'x://{a*}', says: '{name}' },
  { uriTemplate: 'x://{#a}', says: '{name}' },
  { uriTemplate: 'x://{a b}', says: '{name}' },
  { uriTemplate: 'x://{a}/{a}', says: 'twice' },
  { uriTemplate: 'x://{a}{b}', says: 'between' },
  { uriTemplate: 'x://{+a}/{+b}', says: '{+name}' },
])('§2.7 the template $uriTemplate is refused', ({ uriTemplate, says }) => {
  expect(template(uriTemplate)).toThrow(DefinitionError);
  expect(template(uriTemplate)).toThrow(says);
  expect(template(uriTemplate)).toThrow(uriTemplate);
});

test('§2.7 a completer for what is no variable is refused', () => {
  expect(template('x://{a}', { b: () => [] })).toThrow(DefinitionError);
  expect(template('x://{a}', { b: () => [] })).toThrow('no variable b');
});

test('§2.7 two templates with the same text are refused', () => {
  const twice = () =>
    createLocalCatalog({ resourceTemplates: [template('x://{a}')(), template('x://{a}')()] });
  expect(twice).toThrow(DefinitionError);
  expect(twice).toThrow('x://{a}');
});
