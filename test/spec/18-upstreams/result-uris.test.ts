// What a server names by a URI, clients know by the name under which they can read it there, wherever it stands.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  listClientUris,
  toMovedUri,
  toOwnUri,
  toSharedUri,
} from '../../../src/catalog/apps/app-tools.ts';
import type { JsonObject } from '../../../src/platform/json.ts';
import { stateless } from '../../support/clients/stateless.ts';
import { startForTest as start } from '../../support/upstreams/catalog-gateway.ts';
import { type Listing, serveForTest as serve } from '../../support/upstreams/listing-server.ts';

const anyServer = fc.stringMatching(/^[a-z][a-z0-9-]{0,31}$/);
const anyUri = fc
  .tuple(fc.constantFrom('ui://', 'UI://', 'x://', 'https://a.example/', 'skill://'), fc.webPath())
  .map(([scheme, path]) => scheme + path);

test('§18.2 names of URIs: what clients are told leads back to what the server wrote', () => {
  fc.assert(
    fc.property(anyServer, anyUri, (server, uri) => {
      for (const told of listClientUris(server, uri)) expect(toOwnUri(server, told)).toBe(uri);
      expect(toSharedUri(server, uri) === uri).toBe(!uri.toLowerCase().startsWith('ui://'));
      expect(toMovedUri(server, uri)).toBe(`${server}+${uri}`);
    }),
  );
});

const BOTH = 'x://both';
const LISTING: Partial<Listing> = {
  resources: [{ uri: BOTH, name: 'both' }],
  resourceTemplates: [{ uriTemplate: 'x://t/{id}', name: 't' }],
  tools: [{ name: 'name', inputSchema: { type: 'object' } }],
  prompts: [{ name: 'ask' }],
  capabilities: { tools: {}, prompts: {}, resources: { subscribe: true }, completions: {} },
};

const link = (uri: string) => ({ type: 'resource_link', uri, name: 'l' });
const embed = (uri: string, text = 'e') => ({ type: 'resource', resource: { uri, text } });
const LONG = 'x'.repeat(5_000);

/** All that can name a URI: short, and so long that it is parsed only where it has to be. */
const named = (uri: string) => [
  [link(uri)],
  [embed(uri)],
  [{ type: 'text', text: LONG }, link(uri), embed(uri, LONG)],
];

async function startBoth(answers: Listing['answers'] = {}, view?: string) {
  const one = await serve(LISTING);
  const two = await serve({ ...LISTING, answers });
  const file = {
    mcpServers: { one: one.url, two: two.url },
    views: { some: { servers: ['two'] } },
  };
  const gateway = await start({ file, ...(view !== undefined && { view }) });
  const session = await gateway.open();
  await gateway.list('resources/list', session);
  return { gateway, session, one, two };
}

const findUris = (value: unknown): readonly string[] =>
  [...JSON.stringify(value).matchAll(/"uri":"([^"]*)"/g)].map(([, uri = '']) => uri);

test.each([
  ['/mcp', undefined, 'two+'],
  ['a view without the other server', 'some', 'two+'],
  ['the server’s own path', 'two', ''],
])(
  '§18.2 URIs in results: at %s links and embedded resources have the name that clients read',
  async (_at, view, before) => {
    let content: unknown;
    const { gateway, session, two } = await startBoth(
      {
        'tools/call': () => ({ result: { content } }),
        'prompts/get': () => ({
          result: {
            messages: Array.isArray(content)
              ? content.map((one) => ({ role: 'user', content: one }))
              : [],
          },
        }),
      },
      view,
    );
    const prefix = view === 'two' ? '' : 'two__';
    for (const parts of named(BOTH)) {
      content = parts;
      for (const [method, name] of [
        ['tools/call', 'name'],
        ['prompts/get', 'ask'],
      ] as const) {
        const params = { name: `${prefix}${name}` };
        const { json } = await gateway.call(session, method, params);
        const uris = findUris(json.result);
        expect(new Set(uris)).toEqual(new Set([`${before}${BOTH}`]));
        const { json: read } = await gateway.call(session, 'resources/read', { uri: uris[0] });
        expect(read.result.contents[0].text).toBe(`read ${BOTH}`);
        if (view !== undefined) continue;
        const now = await stateless(gateway, method, params);
        expect(findUris(now.json.result)).toEqual(uris);
      }
    }
    expect(two.count('resources/read')).toBe(6);
  },
);

test.each([
  ['short', 'text'],
  ['long', LONG],
])(
  '§18.2 URIs in results: what is read has the URI by which it was asked for, %s, and nothing else of it changes',
  async (_what, text) => {
    const written = (uri: unknown) =>
      `{"contents":[{"uri":"${uri}","text":"${text}\\u0041","n":1.0},{"uri":"x://other","blob":"AAEC"}]}`;
    const { gateway, session } = await startBoth({
      'resources/read': ({ uri }: JsonObject) => ({ result: JSON.parse(written(uri)) }),
    });
    for (const uri of [`two+${BOTH}`, 'two+x://t/7']) {
      const { json } = await gateway.call(session, 'resources/read', { uri });
      expect(json.result).toEqual(JSON.parse(written(uri)));
      const now = await stateless(gateway, 'resources/read', { uri });
      expect(findUris(now.json.result)).toEqual([uri, 'x://other']);
    }
    const { json } = await gateway.call(session, 'resources/read', { uri: BOTH });
    expect(findUris(json.result)).toEqual([BOTH]);
  },
);

test('§18.2 URIs in results: a link that is no other server’s to read stays as it is', async () => {
  const { gateway, session } = await startBoth({
    'tools/call': () => ({ result: { content: [link('x://secret'), link('x://t/7')] } }),
  });
  const { json } = await gateway.call(session, 'tools/call', { name: 'two__name' });
  expect(findUris(json.result)).toEqual(['x://secret', 'x://t/7']);
  const { json: read } = await gateway.call(session, 'resources/read', { uri: 'x://secret' });
  expect(read.result.contents[0].text).toBe('read x://secret');
});

test('§18.2 URIs: a completion asks the server about its own template', async () => {
  const { gateway, session } = await startBoth();
  const params = {
    ref: { type: 'ref/resource', uri: 'two+x://t/{id}' },
    argument: { name: 'id', value: '' },
  };
  const { json } = await gateway.call(session, 'completion/complete', params);
  expect(json.result.completion.values).toEqual([
    JSON.stringify({ type: 'ref/resource', uri: 'x://t/{id}' }),
  ]);
});

test('§18.2 URIs: an error about a resource names it as its client did', async () => {
  const { gateway, session } = await startBoth({
    'resources/read': ({ uri }: JsonObject) => ({
      error: { code: -32002, message: 'Resource not found', data: { uri, why: 'gone' } },
    }),
  });
  const { json } = await gateway.call(session, 'resources/read', { uri: `two+${BOTH}` });
  expect(json.error.data).toEqual({ uri: `two+${BOTH}`, why: 'gone' });
});
