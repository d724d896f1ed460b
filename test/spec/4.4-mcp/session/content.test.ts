// What tools and prompts answer with, and how sessions of older revisions get it.
import { beforeAll, describe, expect, test } from 'vitest';
import {
  type Content,
  createLocalCatalog,
  definePrompt,
  defineTool,
} from '../../../../src/index.ts';
import { INITIALIZE_REQUEST } from '../../../support/gateway/gateway.ts';
import { useGateway } from '../../../support/gateway/use-gateway.ts';

const annotations = {
  audience: ['user'],
  priority: 1,
  lastModified: '2025-01-12T15:00:58Z',
} as const;

const CONTENT = {
  text: { type: 'text', text: 'Text.', annotations },
  image: { type: 'image', data: 'AAAA', mimeType: 'image/png' },
  audio: { type: 'audio', data: 'AAEC', mimeType: 'audio/wav', annotations },
  embedded: {
    type: 'resource',
    resource: { uri: 'x://1', mimeType: 'text/plain', text: 'One.' },
  },
  embeddedBlob: { type: 'resource', resource: { uri: 'x://2', name: 'Two', blob: 'AAEC' } },
  link: {
    type: 'resource_link',
    uri: 'https://a.example/report',
    name: 'report',
    title: 'Report',
    description: 'The report.',
    mimeType: 'application/pdf',
    size: 4096,
    icons: [{ src: 'https://a.example/i.png' }],
    annotations,
  },
} as const satisfies Record<string, Content>;

const ALL: readonly Content[] = Object.values(CONTENT);
const STRUCTURED = {
  name: 'structured',
  description: 'Returns what it is told to.',
  inputSchema: { type: 'object', properties: { returns: { type: 'object' } } },
} as const;
const COUNT = {
  type: 'object',
  properties: { count: { type: 'integer' } },
  required: ['count'],
  additionalProperties: false,
} as const;

const catalog = createLocalCatalog({
  tools: [
    defineTool({
      name: 'every-kind',
      description: 'Returns content of every kind.',
      inputSchema: { type: 'object' },
      run: () => ({ content: ALL }),
    }),
    defineTool({
      ...STRUCTURED,
      outputSchema: COUNT,
      // What the caller says: whether it fits is what is tested.
      run: ({ returns }) => returns as { structuredContent: { count: number } },
    }),
    defineTool({
      ...STRUCTURED,
      name: 'unpromised',
      // As a program without types would.
      run: () => ({ content: [], structuredContent: { any: ['thing'] } }) as never,
    }),
  ],
  prompts: [
    definePrompt({
      name: 'every-kind',
      description: 'Has a message of every kind.',
      arguments: [],
      get: () => ({
        description: 'All.',
        messages: ALL.map((content) => ({ role: 'assistant' as const, content })),
      }),
    }),
  ],
});

const gateway = useGateway({ deps: { catalog } });

async function openAs(protocolVersion: string, to = gateway): Promise<string> {
  const params = { ...INITIALIZE_REQUEST.params, protocolVersion };
  const { headers, json } = await to.rpc({ ...INITIALIZE_REQUEST, params });
  expect(json.result.protocolVersion).toBe(protocolVersion);
  return headers['mcp-session-id'] ?? expect.unreachable();
}

describe('content of every kind', () => {
  const { text, image, audio, embedded, embeddedBlob, link } = CONTENT;
  const audioAsText = { type: 'text', text: expect.stringContaining('audio/wav') };
  const linkAsText = { type: 'text', text: expect.stringContaining(link.uri) };
  const ROWS = [
    { version: '2025-11-25', content: [text, image, audio, embedded, embeddedBlob, link] },
    { version: '2025-06-18', content: [text, image, audio, embedded, embeddedBlob, link] },
    { version: '2025-03-26', content: [text, image, audio, embedded, embeddedBlob, linkAsText] },
    {
      version: '2024-11-05',
      content: [text, image, audioAsText, embedded, embeddedBlob, linkAsText],
    },
    { version: '0.1.0', content: [text, image, audioAsText, embedded, embeddedBlob, linkAsText] },
  ] as const;

  test.each(ROWS)(
    '§2.5 a tool’s content reaches a session of $version',
    async ({ version, content }) => {
      const session = await openAs(version);
      const { json } = await gateway.call(session, 'tools/call', { name: 'every-kind' });
      expect(json.result).toEqual({ content });
    },
  );

  test.each(ROWS)(
    '§2.6 a prompt’s messages reach a session of $version',
    async ({ version, content }) => {
      const session = await openAs(version);
      const { json } = await gateway.call(session, 'prompts/get', { name: 'every-kind' });
      expect(json.result).toEqual({
        description: 'All.',
        messages: content.map((one) => ({ role: 'assistant', content: one })),
      });
    },
  );
});

describe('structured results', () => {
  let session: string;
  beforeAll(async () => {
    session = await gateway.open();
  });

  const structured = async (returns: object) =>
    (await gateway.call(session, 'tools/call', { name: 'structured', arguments: { returns } }))
      .json;

  test('§2.5 without content the result is there as JSON text, too', async () => {
    const { result } = await structured({ structuredContent: { count: 3 } });
    expect(result).toEqual({
      content: [{ type: 'text', text: '{"count":3}' }],
      structuredContent: { count: 3 },
    });
  });

  test.each([{ content: [] }, { content: [{ type: 'text', text: 'three' }] }])(
    '§2.5 the author’s own $content stays beside the result',
    async ({ content }) => {
      const { result } = await structured({ content, structuredContent: { count: 3 } });
      expect(result).toEqual({ content, structuredContent: { count: 3 } });
    },
  );

  test.each([
    { returns: { structuredContent: { count: 'three' } }, names: 'count' },
    { returns: { structuredContent: { count: 1.5 } }, names: 'count' },
    { returns: { structuredContent: {} }, names: 'count' },
    { returns: { structuredContent: { count: 1, secret: 'x' } }, names: 'secret' },
    { returns: { structuredContent: [1] }, names: 'structuredContent' },
    { returns: { structuredContent: null }, names: 'structuredContent' },
    { returns: { content: [{ type: 'text', text: 'three' }] }, names: 'structuredContent' },
    { returns: { content: [], isError: false }, names: 'structuredContent' },
    {
      returns: { content: [], structuredContent: { count: 'three' }, isError: true },
      names: 'count',
    },
  ])(
    '§2.5 $returns does not fit the outputSchema: the tool failed, nothing of it is sent',
    async ({ returns, names }) => {
      const { result } = await structured(returns);
      expect(result).toEqual({
        content: [{ type: 'text', text: expect.stringContaining('structured failed; reference ') }],
        isError: true,
      });
      expect(gateway.log.findLast((line) => line.error === 'tool_failed')).toMatchObject({
        level: 'error',
        of: 'structured',
        cause: expect.stringContaining(names),
      });
    },
  );

  test('§2.5 a failure for the model needs no structured content', async () => {
    const failure = { content: [{ type: 'text', text: 'out of stock' }], isError: true };
    expect((await structured(failure)).result).toEqual(failure);
  });

  test('§2.5 structured content that no schema promised is sent as it is', async () => {
    const { json } = await gateway.call(session, 'tools/call', { name: 'unpromised' });
    expect(json.result).toEqual({ content: [], structuredContent: { any: ['thing'] } });
  });
});

describe('a catalogue that is not local', () => {
  const foreign = useGateway({
    deps: {
      catalog: {
        ...createLocalCatalog({
          prompts: [
            definePrompt({
              name: 'broken',
              description: 'Is replaced.',
              get: () => ({ messages: [] }),
            }),
          ],
        }),
        getPrompt: async () =>
          JSON.parse('{"messages":[{"role":"user"},{"role":"user","content":[]}]}'),
      },
    },
  });

  test('§2.6 what is no content reaches clients of old revisions as it is', async () => {
    const session = await openAs('2024-11-05', foreign);
    const { json } = await foreign.call(session, 'prompts/get', { name: 'broken' });
    expect(json.result).toEqual({ messages: [{ role: 'user' }, { role: 'user', content: [] }] });
  });
});
