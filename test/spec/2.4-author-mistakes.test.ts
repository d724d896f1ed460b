// What authors get wrong, and what they are told, in either era.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  createLocalCatalog,
  DefinitionError,
  definePrompt,
  defineTool,
  elicit,
} from '../../src/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { answeringCall, stateless } from '../support/stateless.ts';

const form = elicit('Go on?', { type: 'object', properties: {} });
const OBJECT = { type: 'object' } as const;

/** As a program without types would define it. */
const untyped = (name: string, run: unknown) =>
  defineTool({ name, description: '', inputSchema: OBJECT, run } as never);

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
  ],
});

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ deps: { catalog } });
});
afterAll(() => gateway.close());

const inSession = async (method: string, params: object) =>
  gateway.call(await gateway.open(), method, params);

describe.each([
  ['session', inSession],
  ['stateless', (method: string, params: object) => stateless(gateway, method, { ...params })],
])('in the %s era', (_era, ask) => {
  test.each([
    ['no-return', 'The tool returned no result'],
    ['a-text', 'The tool returned no result'],
    ['no-content', 'The tool returned no content'],
  ])('§4.4 tools/call: what %s forgot is said', async (name, details) => {
    const { status, json } = await ask('tools/call', { name });
    expect(status).toBe(200);
    expect(json.error).toEqual({
      code: -32603,
      message: 'Tool execution failed',
      data: { details },
    });
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
  expect(json.error).toMatchObject({
    code: -32603,
    data: { details: '"q" was asked twice; each question has its key' },
  });
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
