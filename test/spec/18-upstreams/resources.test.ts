// Whose a URI is.
import { expect, test } from 'vitest';
import { createLocalCatalog, defineResource, defineResourceTemplate } from '../../../src/index.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startRedis } from '../../support/stores/redis.ts';
import {
  type CatalogGateway,
  startForTest as start,
} from '../../support/upstreams/catalog-gateway.ts';
import {
  buildTool,
  type Listing,
  serveForTest as serve,
} from '../../support/upstreams/listing-server.ts';

/** A server that says in each text that it is this one. */
const serveAs = (name: string, listing: Partial<Listing> = {}) =>
  serve({
    answers: {
      'resources/read': ({ uri }) => ({
        result: { contents: [{ uri, text: `${name} has ${uri}` }] },
      }),
    },
    ...listing,
  });

const resource = (uri: string) => ({ uri, name: uri });
const template = (uriTemplate: string) => ({ uriTemplate, name: uriTemplate });

async function read(gateway: CatalogGateway, uri: string, session?: string) {
  const id = session ?? (await gateway.open());
  const { json } = await gateway.call(id, 'resources/read', { uri });
  return json.error ? json.error.data?.details : json.result.contents[0].text;
}

test('§18.2 resources: URIs stay as they are; of the same URI the later one is <server>+<uri>', async () => {
  const one = await serveAs('one', { resources: [resource('x://a'), resource('x://both')] });
  const two = await serveAs('two', { resources: [resource('x://both'), resource('x://b')] });
  const gateway = await start({ file: { mcpServers: { one: one.url, two: two.url } } });
  expect(await gateway.listNames('resources/list')).toEqual([
    'x://a',
    'x://both',
    'x://b',
    'two+x://both',
  ]);
  expect(await read(gateway, 'x://a')).toBe('one has x://a');
  expect(await read(gateway, 'x://both')).toBe('one has x://both');
  expect(await read(gateway, 'two+x://both')).toBe('two has x://both');
  expect(await read(gateway, 'two+x://b')).toBe('Unknown resource "two+x://b"');
  expect(await read(gateway, 'x://c')).toBe('Unknown resource "x://c"');
});

test('§18.2 resources: those of the built-in catalogue come first', async () => {
  const builtIn = createLocalCatalog({
    resources: [
      defineResource({
        uri: 'x://both',
        name: 'both',
        description: '',
        mimeType: 'text/plain',
        read: () => ({ text: 'built-in' }),
      }),
    ],
    resourceTemplates: [
      defineResourceTemplate({
        uriTemplate: 'y://{id}',
        name: 'y',
        description: '',
        read: ({ id }) => ({ text: `built-in ${id}` }),
      }),
    ],
  });
  const server = await serveAs('a', {
    resources: [resource('x://both')],
    resourceTemplates: [template('y://{id}'), template('z://{id}')],
  });
  const gateway = await start({ file: { mcpServers: { a: server.url } }, builtIn });
  expect(await gateway.listNames('resources/list')).toEqual(['x://both', 'a+x://both']);
  expect(await read(gateway, 'x://both')).toBe('built-in');
  expect(await read(gateway, 'a+x://both')).toBe('a has x://both');
  expect(await read(gateway, 'y://1')).toBe('built-in 1');
  expect(await read(gateway, 'a+y://1')).toBe('a has y://1');
  expect(await read(gateway, 'z://1')).toBe('a has z://1');
});

test.each([
  ['x://{id}', ['x://1', 'x://%41'], ['x://', 'x://1/2', 'x://1?q', 'y://1']],
  ['x://{a}/b/{c}', ['x://1/b/2', 'x://b/b/b'], ['x://1/b/', 'x://1/2', 'x:///b/1']],
  ['x://{+path}', ['x://1', 'x://1/2?q#f'], ['x://']],
  ['x://a{/path*}', ['x://a', 'x://a/b', 'x://a/b/c'], ['x://ab', 'x://a?q']],
  ['x://a{?q,r}', ['x://a', 'x://a?q=1&r=2'], ['x://a/b', 'x://a#f', 'x://aq']],
  ['x://a{?q}{&r}', ['x://a?q=1&r=2', 'x://a&r=2'], ['x://b']],
  ['x://a{#f}', ['x://a', 'x://a#f/g'], ['x://af']],
  ['x://a{.ext}', ['x://a', 'x://a.txt'], ['x://atxt', 'x://a.t/x']],
  ['x://a{;p}', ['x://a', 'x://a;p=1'], ['x://a/p']],
  ['{scheme}://b', ['x://b'], ['://b', 'x://c']],
  ['x://{a}{b}', ['x://12'], ['x://1', 'x://']],
  ['x://{=a}', [], ['x://1', 'x://=1']],
])('§18.2 templates: %s is for %j, and not for %j', async (uriTemplate, fitting, others) => {
  const server = await serveAs('a', { resourceTemplates: [template(uriTemplate)] });
  const gateway = await start({ file: { mcpServers: { a: server.url } } });
  const session = await gateway.open();
  for (const uri of fitting) expect(await read(gateway, uri, session)).toBe(`a has ${uri}`);
  for (const uri of others) {
    expect(await read(gateway, uri, session)).toMatch(/^Unknown resource "/);
  }
});

test('§18.2 templates: the first server in order whose template fits gets the URI', async () => {
  const one = await serveAs('one', { resourceTemplates: [template('x://one/{id}')] });
  const two = await serveAs('two', { resourceTemplates: [template('x://{+any}')] });
  const three = await serveAs('three', { resourceTemplates: [template('x://{+any}')] });
  const file = { mcpServers: { one: one.url, two: two.url, three: three.url } };
  const gateway = await start({ file });
  expect(await gateway.listNames('resources/templates/list')).toEqual([
    'x://one/{id}',
    'x://{+any}',
    'three+x://{+any}',
  ]);
  expect(await read(gateway, 'x://one/1')).toBe('one has x://one/1');
  expect(await read(gateway, 'x://one/1/2')).toBe('two has x://one/1/2');
  expect(await read(gateway, 'three+x://1')).toBe('three has x://1');
});

test('§18.2 templates: one that is made to be slow is not', async () => {
  const hostile = `x://${'{+a}b'.repeat(15)}c`;
  const many = Array.from({ length: 400 }, (_, index) =>
    template(`${'{+a}/'.repeat(15)}${index}{b}`),
  );
  const server = await serveAs('a', { resourceTemplates: [template(hostile), ...many] });
  const gateway = await start({ file: { mcpServers: { a: server.url } } });
  expect(await read(gateway, `x://${'b'.repeat(2_000)}`)).toContain('Unknown resource');
  expect(await read(gateway, `x://${'ab'.repeat(15)}c`)).toContain('a has');
});

test('§18.2 links: a resource that a result names is read from the server that named it, in this session', async () => {
  const link = { type: 'resource_link', uri: 'http://169.254.169.254/latest', name: 'l' };
  const embedded = { type: 'resource', resource: { uri: 'x://embedded', text: '' } };
  const one = await serveAs('one');
  const two = await serve({
    tools: [buildTool('t')],
    prompts: [{ name: 'p' }],
    answers: {
      'tools/call': () => ({ result: { content: [link] } }),
      'prompts/get': () => ({ result: { messages: [{ role: 'user', content: embedded }] } }),
      'resources/read': ({ uri }) => ({ result: { contents: [{ uri, text: `two has ${uri}` }] } }),
    },
  });
  const gateway = await start({ file: { mcpServers: { one: one.url, two: two.url } } });
  const session = await gateway.open();
  const other = await gateway.open();
  expect(await read(gateway, link.uri, session)).toContain('Unknown resource');
  await gateway.call(session, 'tools/call', { name: 'two__t' });
  await gateway.call(session, 'prompts/get', { name: 'two__p' });
  // Nobody but the server sees the URI: the gateway itself asks no address of it.
  expect(await read(gateway, link.uri, session)).toBe(`two has ${link.uri}`);
  expect(await read(gateway, 'x://embedded', session)).toBe('two has x://embedded');
  expect(await read(gateway, link.uri, other)).toContain('Unknown resource');
  expect(one.count('resources/read')).toBe(0);
});

test('§18.2 links: another replica knows them, too', async () => {
  const redis = closeAfterTest(await startRedis());
  const link = { type: 'resource_link', uri: 'x://linked', name: 'l' };
  const server = await serve({
    tools: [buildTool('t')],
    answers: { 'tools/call': () => ({ result: { content: [link] } }) },
  });
  const options = {
    file: { mcpServers: { linking: server.url } },
    env: { AUTH_REQUIRED: 'false', REDIS_URL: redis.url },
  };
  const one = await start(options);
  const other = await start(options);
  const session = await one.open();
  await one.call(session, 'tools/call', { name: 'linking__t' });
  expect(await read(other, link.uri, session)).toBe('read x://linked');
});

test('§18.2 links: one to what another server lists does not take it away from that server', async () => {
  const link = { type: 'resource_link', uri: 'x://a', name: 'l' };
  const evil = await serve({
    tools: [buildTool('t')],
    answers: { 'tools/call': () => ({ result: { content: [link] } }) },
  });
  const owner = await serveAs('owner', { resources: [resource('x://a')] });
  const gateway = await start({ file: { mcpServers: { evil: evil.url, owner: owner.url } } });
  const session = await gateway.open();
  await gateway.call(session, 'tools/call', { name: 'evil__t' });
  expect(await read(gateway, 'x://a', session)).toBe('owner has x://a');
});

test('§18.2 links: the last 100 of a session are remembered', async () => {
  const server = await serve({
    tools: [buildTool('t')],
    answers: {
      'tools/call': (params) => {
        const { from } = Object(params.arguments);
        const content = Array.from({ length: 60 }, (_, index) => ({
          type: 'resource_link',
          uri: `x://${from + index}`,
          name: 'l',
        }));
        return { result: { content } };
      },
    },
  });
  const gateway = await start({ file: { mcpServers: { a: server.url } } });
  const session = await gateway.open();
  for (const from of [0, 60]) {
    await gateway.call(session, 'tools/call', { name: 'a__t', arguments: { from } });
  }
  expect(await read(gateway, 'x://19', session)).toContain('Unknown resource');
  expect(await read(gateway, 'x://20', session)).toBe('read x://20');
  expect(await read(gateway, 'x://119', session)).toBe('read x://119');
});

test.each(['x://a b', 'x://a\u0007', 'x://a\nb', ''])(
  '§18.2 resources: the URI %j is hidden, and the others are not',
  async (uri) => {
    const server = await serveAs('a', { resources: [resource(uri), resource('x://good')] });
    const gateway = await start({ file: { mcpServers: { a: server.url } } });
    expect(await gateway.listNames('resources/list')).toEqual(['x://good']);
  },
);

test('§18.2 completion: prompts and templates are completed by whose they are, in its own words', async () => {
  const one = await serve({ prompts: [{ name: 'p' }], resourceTemplates: [template('x://{id}')] });
  const two = await serve({ prompts: [{ name: 'p' }], resourceTemplates: [template('x://{id}')] });
  const gateway = await start({ file: { mcpServers: { one: one.url, two: two.url } } });
  const session = await gateway.open();
  const complete = async (ref: object) => {
    const params = {
      ref,
      argument: { name: 'id', value: 'v' },
      context: { arguments: { known: 'k' } },
    };
    return (await gateway.call(session, 'completion/complete', params)).json;
  };
  const prompt = await complete({ type: 'ref/prompt', name: 'two__p' });
  expect(prompt.result.completion.values).toEqual(['{"type":"ref/prompt","name":"p"}']);
  expect(two.requests.at(-1)?.params).toMatchObject({
    argument: { name: 'id', value: 'v' },
    context: { arguments: { known: 'k' } },
  });
  const resources = await complete({ type: 'ref/resource', uri: 'two+x://{id}' });
  expect(resources.result.completion.values).toEqual(['{"type":"ref/resource","uri":"x://{id}"}']);
  const unknown = await complete({ type: 'ref/prompt', name: 'p' });
  expect(unknown.error.code).toBe(-32602);
});

test('§18.2 /mcp/<server>: its URIs are its own, whoever else has them', async () => {
  const one = await serveAs('one', { resources: [resource('x://both')] });
  const two = await serveAs('two', {
    resources: [resource('x://both')],
    resourceTemplates: [template('y://{id}')],
  });
  const gateway = await start({
    file: { mcpServers: { one: one.url, two: two.url } },
    view: 'two',
  });
  expect(await gateway.listNames('resources/list')).toEqual(['x://both']);
  expect(await read(gateway, 'x://both')).toBe('two has x://both');
  expect(await read(gateway, 'y://1')).toBe('two has y://1');
  expect(await read(gateway, 'two+x://both')).toContain('Unknown resource');
});

test('§18.2 templates: thousands that are made to be slow hold nobody up', async () => {
  const hostile = Array.from({ length: 10_000 }, (_, at) => template(`${'{+a}'.repeat(16)}!${at}`));
  const evil = await serveAs('evil', { resourceTemplates: hostile });
  const good = await serveAs('good', { resourceTemplates: [template('x://{+any}')] });
  const gateway = await start({ file: { mcpServers: { evil: evil.url, good: good.url } } });
  const session = await gateway.open();
  // Of its own time, not of the machine's: what others do meanwhile does not count.
  const before = process.cpuUsage();
  const uri = `x://${'a'.repeat(2000)}`;
  for (let time = 0; time < 20; time += 1) {
    expect(await read(gateway, uri, session)).toBe(`good has ${uri}`);
  }
  const { user, system } = process.cpuUsage(before);
  expect((user + system) / 1000).toBeLessThan(20_000);
}, 120_000);
