// What authors get wrong, and what they are told, in either era.
import { describe, expect, test } from 'vitest';
import {
  createLocalCatalog,
  DefinitionError,
  definePrompt,
  defineResource,
  defineResourceTemplate,
  defineTool,
  elicit,
} from '../../../src/index.ts';
import { answeringCall, stateless } from '../../support/clients/stateless.ts';
import { useGateway } from '../../support/gateway/use-gateway.ts';

const form = elicit('Go on?', { type: 'object', properties: {} });
const OBJECT = { type: 'object' } as const;

/** As a program without types would define it. */
const untyped = (name: string, run: unknown, members: object = {}) =>
  defineTool({ name, description: '', inputSchema: OBJECT, run, ...members } as never);
const RESOURCE = { uri: 'x://y', name: 'y', description: '', mimeType: 'text/plain' } as const;
const TEMPLATE = { uriTemplate: 'z://{id}', name: 'z', description: '' } as const;
const CONTENT = "{ content: [{ type: 'text', text: … }] }";

const catalog = createLocalCatalog({
  tools: [
    defineTool({
      name: 'same-key',
      description: 'Asks twice by one key.',
      inputSchema: OBJECT,
      async run(_args, { ask }) {
        await ask({ q: form });
        await ask({ q: form });
        return { content: [] };
      },
    }),
    defineTool({
      name: 'chooses',
      description: 'Takes one of two sizes.',
      inputSchema: {
        type: 'object',
        properties: { size: { type: 'string', enum: ['s', 'm'] } },
      },
      run: () => ({ content: [] }),
    }),
    untyped('no-return', () => {}),
    untyped('no-content', () => ({})),
    untyped('a-text', () => 'hello'),
    untyped('text-content', () => ({ content: 'hello' })),
    untyped('text-item', () => ({ content: ['hello'] })),
    untyped('promised', () => 'hello', { outputSchema: OBJECT }),
  ],
  resources: [defineResource({ ...RESOURCE, read: () => 'plain' } as never)],
  resourceTemplates: [
    defineResourceTemplate({
      ...TEMPLATE,
      read: ({ id }: { id: string }) => (id === 'none' ? null : { txt: id }),
    } as never),
  ],
  prompts: [
    definePrompt({
      name: 'tone',
      description: 'Sets the tone.',
      arguments: [
        { name: 'tone', description: '', required: false, values: ['brief', 'detailed', 'dry'] },
        { name: 'topic', description: '', required: false, complete: () => ['all'] },
      ],
      get: () => ({ messages: [] }),
    }),
    definePrompt({
      name: 'bare',
      description: 'Has no arguments.',
      get: () => ({ messages: [{ role: 'user', content: { type: 'text', text: 'Hello' } }] }),
    }),
    definePrompt({ name: 'a-string', description: '', arguments: [], get: () => 'hi' } as never),
  ],
});

const gateway = useGateway({ deps: { catalog } });

const inSession = async (method: string, params: object) =>
  gateway.call(await gateway.open(), method, params);

describe.each([
  ['session', inSession],
  ['stateless', (method: string, params: object) => stateless(gateway, method, { ...params })],
])('in the %s era', (_era, ask) => {
  test.each([
    ['no-return', `run returned nothing; it must return ${CONTENT}`],
    ['a-text', `run returned a string; it must return ${CONTENT}`],
    ['no-content', `run returned an object without content; it must return ${CONTENT}`],
    ['text-content', `run returned content that is a string; it must return ${CONTENT}`],
    ['text-item', `run returned content[0] that is a string; it must return ${CONTENT}`],
    [
      'promised',
      'run returned a string; it must return { structuredContent: { … } }, as its outputSchema says',
    ],
  ])('§4.4 tools/call: what %s forgot stands in the log', async (name, details) => {
    const { status, json } = await ask('tools/call', { name });
    expect(status).toBe(200);
    expect(json.result).toMatchObject({
      content: [{ text: expect.stringMatching(`^${name} failed; reference `) }],
      isError: true,
    });
    expect(gateway.log.findLast(({ error }) => error === 'tool_failed')?.cause).toBe(details);
  });

  test.each([
    [
      'resources/read',
      { uri: 'x://y' },
      'Resource x://y: read returned a string; it must return { text } or { blob }',
    ],
    [
      'resources/read',
      { uri: 'z://1' },
      'Resource template z://{id}: read returned an object without either; it must return { text } or { blob }',
    ],
    [
      'prompts/get',
      { name: 'a-string' },
      'get returned a string; it must return { messages: [{ role, content }] }',
    ],
  ])('§4.4 %s of %j: what is no content stands in the log alone', async (method, params, said) => {
    const before = gateway.log.length;
    const { json } = await ask(method, params);
    expect(json.error).toMatchObject({ code: -32603, message: 'Internal error' });
    expect(json.error.data.details).not.toContain('returned');
    expect(JSON.stringify(gateway.log.slice(before))).toContain(said);
  });

  test('§4.4 resources/read: null of a template is no resource', async () => {
    const { json } = await ask('resources/read', { uri: 'z://none' });
    expect(json.error.code).toBe(-32602);
  });

  test('§2.6 prompts/get: a prompt needs no list of arguments', async () => {
    const { json } = await ask('prompts/get', { name: 'bare' });
    expect(json.result.messages[0].content.text).toBe('Hello');
  });

  test('§4.4 tools/call: an argument outside its list hears what the list is', async () => {
    const { json } = await ask('tools/call', { name: 'chooses', arguments: { size: 'xl' } });
    expect(json.result.content[0].text).toContain('arguments/size must be one of "s", "m"');
  });

  test.each([
    ['d', ['detailed', 'dry']],
    ['', ['brief', 'detailed', 'dry']],
    ['x', []],
  ])('§4.4 completion/complete: "%s" finds values of an argument', async (value, values) => {
    const { json } = await ask('completion/complete', {
      ref: { type: 'ref/prompt', name: 'tone' },
      argument: { name: 'tone', value },
    });
    expect(json.result.completion.values).toEqual(values);
  });
});

test('§4.4 a key that is asked twice in one run is an error of the tool, and names the key', async () => {
  const inputResponses = { q: { action: 'accept', content: {} } };
  const { json } = await answeringCall(gateway, 'same-key', { inputResponses });
  expect(json.result.isError).toBe(true);
  expect(gateway.log.findLast(({ error }) => error === 'tool_failed')?.cause).toBe(
    '"q" was used twice; each question needs its own key',
  );
});

test.each([
  ['no inputSchema', { inputSchema: undefined }],
  ['a list for inputSchema', { inputSchema: [] }],
])('§2.4 tool: %s is refused at its definition', (_what, members) => {
  const define = () =>
    defineTool({ name: 'bad', description: '', run: () => ({ content: [] }), ...members } as never);
  expect(define).toThrow(DefinitionError);
  expect(define).toThrow('Tool bad: inputSchema is missing');
});

const TOOL = { name: 'roll_dice', description: '', inputSchema: OBJECT };
const PROMPT = { name: 'toast', description: '', arguments: [] };
const callable = () => ({});

test.each<[string, (members: never) => unknown, object, string]>([
  [
    'tool',
    defineTool,
    { ...TOOL, runn: callable },
    'Tool roll_dice: run is missing; it must be a function. There is "runn": did you misspell it?',
  ],
  ['tool', defineTool, TOOL, 'Tool roll_dice: run is missing; it must be a function.'],
  [
    'tool',
    defineTool,
    { ...TOOL, run: 'x' },
    'Tool roll_dice: run is a string; it must be a function.',
  ],
  [
    'tool',
    defineTool,
    { ...TOOL, name: undefined, nam: 'x', run: callable },
    'Tool: name is missing; it must be a string that is not empty. There is "nam": did you misspell it?',
  ],
  ['tool', defineTool, [], 'Tool: the definition is a list; it must be an object.'],
  [
    'prompt',
    definePrompt,
    { ...PROMPT, gett: callable },
    'Prompt toast: get is missing; it must be a function. There is "gett": did you misspell it?',
  ],
  [
    'resource',
    defineResource,
    { ...RESOURCE, raed: callable },
    'Resource x://y: read is missing; it must be a function. There is "raed": did you misspell it?',
  ],
  [
    'resource template',
    defineResourceTemplate,
    TEMPLATE,
    'Resource template z://{id}: read is missing; it must be a function.',
  ],
  [
    'tool',
    defineTool,
    { ...TOOL, discription: '', run: callable },
    'Tool roll_dice: unknown member "discription". Did you mean "description"? Allowed: name, title, description, icons, annotations, inputSchema, outputSchema, task, prepare, run.',
  ],
  [
    'prompt',
    definePrompt,
    { ...PROMPT, args: [], get: callable },
    'Prompt toast: unknown member "args". Allowed: name, title, description, icons, arguments, get.',
  ],
  [
    'prompt',
    definePrompt,
    { ...PROMPT, arguments: [{ name: 'tone', requird: true }], get: callable },
    'Prompt toast: argument tone: unknown member "requird". Did you mean "required"? Allowed: name, description, required, values, complete.',
  ],
  [
    'prompt',
    definePrompt,
    { ...PROMPT, arguments: {}, get: callable },
    'Prompt toast: arguments is an object; it must be a list.',
  ],
  [
    'resource',
    defineResource,
    { ...RESOURCE, mimetype: 'text/plain', read: callable },
    'Resource x://y: unknown member "mimetype". Did you mean "mimeType"? Allowed: uri, name, title, description, icons, mimeType, size, annotations, cache, watch, read.',
  ],
  [
    'resource template',
    defineResourceTemplate,
    { ...TEMPLATE, completes: {}, read: callable },
    'Resource template z://{id}: unknown member "completes". Did you mean "complete"? Allowed: uriTemplate, name, title, description, icons, mimeType, annotations, complete, read.',
  ],
  [
    'catalogue',
    createLocalCatalog,
    { tool: [] },
    'createLocalCatalog: unknown member "tool". Did you mean "tools"? Allowed: tools, prompts, resources, resourceTemplates, skills, logging, instructions, pageSize.',
  ],
  [
    'catalogue',
    createLocalCatalog,
    { tools: {} },
    'createLocalCatalog: the tools are an object; they must be a list.',
  ],
  [
    'catalogue',
    createLocalCatalog,
    { tools: [{ ...TOOL, run: callable }] },
    'createLocalCatalog: a tool in the list was not made by a define function.',
  ],
])(
  '§2.4 %s: a mistake is refused at once, with the way to mend it (%#)',
  (_what, define, members, says) => {
    const act = () => define(members as never);
    expect(act).toThrow(DefinitionError);
    expect(act).toThrow(new DefinitionError(says));
  },
);

const sides = (schema: object) => ({ type: 'object', properties: { sides: schema } });

test.each([
  [
    sides({ type: 'int' }),
    '.properties.sides.type is "int"; allowed are string, number, integer, boolean, object, array, null. Did you mean "integer"?',
  ],
  [
    sides({ type: ['string', 'nul'] }),
    '.properties.sides.type[1] is "nul"; allowed are string, number, integer, boolean, object, array, null. Did you mean "null"?',
  ],
  [sides({ type: 'x', items: {} }), '.properties.sides.type is "x"; allowed are string,'],
  [sides({ required: true }), '.properties.sides.required is true; it must be array.'],
  [sides({ minimum: '1' }), '.properties.sides.minimum is "1"; it must be number.'],
  [sides({ minLength: -1 }), '.properties.sides.minLength is -1; it must be >= 0.'],
  [sides({ title: 1 }), '.properties.sides.title is 1; it must be string.'],
  [
    sides({ type: 'object', required: ['a', 'a'] }),
    '.properties.sides.required is ["a","a"]; it must NOT have duplicate items',
  ],
  [
    { type: 'object', properties: { 'two words': 'string' } },
    '.properties["two words"] is "string"; it must be object,boolean.',
  ],
  [
    {
      type: 'object',
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      properties: { type: { type: 'int' } },
    },
    '.properties.type.type is "int"; allowed are string,',
  ],
  [
    sides({ minimun: 1 }),
    '.properties.sides: there is no keyword "minimun". Did you mean "minimum"?',
  ],
  [sides({ pattern: '(' }), ' is not a valid JSON Schema (Draft 7): Invalid regular expression'],
])('§2.4 the inputSchema %j is refused by the place that is wrong', (inputSchema, says) => {
  const define = () => untyped('dice', () => {}, { inputSchema });
  expect(define).toThrow(DefinitionError);
  expect(define).toThrow(`Tool dice: inputSchema${says}`);
});
