// §30.1: `ui://` URIs of servers: with the server's name towards clients, without it towards servers.
import { expect, test } from 'vitest';
import { createLocalCatalog, defineResource, defineResourceTemplate } from '../../../src/index.ts';
import { openEvents } from '../../support/clients/event-stream.ts';
import { openClient } from '../../support/clients/session-client.ts';
import { stateless, statelessRequest } from '../../support/clients/stateless.ts';
import { createAuditLog } from '../../support/gateway/audit-log.ts';
import { writeGuard } from '../../support/guards/module-guard.ts';
import {
  type CatalogGateway,
  startForTest as start,
} from '../../support/upstreams/catalog-gateway.ts';
import {
  buildTool,
  type Listing,
  serveForTest as serve,
} from '../../support/upstreams/listing-server.ts';

const PATIENT = { timeout: 20_000 };
const MIME = 'text/html;profile=mcp-app';
const CSP = { connectDomains: ['https://api.example'], resourceDomains: ['https://*.cdn.example'] };

/** A server with an app at `ui://clock/view`, whose texts say that it is this one. */
const serveClock = (name: string, listing: Partial<Listing> = {}) =>
  serve({
    tools: [
      buildTool('show', {
        _meta: {
          ui: { resourceUri: 'ui://clock/view', visibility: ['model', 'app'] },
          'ui/resourceUri': 'ui://clock/view',
          'openai/outputTemplate': 'ui://clock/view',
          other: 'ui://clock/view',
        },
      }),
    ],
    resources: [
      {
        uri: 'ui://clock/view',
        name: 'view',
        mimeType: MIME,
        _meta: { ui: { csp: CSP, permissions: { camera: {} }, prefersBorder: true } },
      },
    ],
    resourceTemplates: [{ uriTemplate: 'ui://clock/{id}/part', name: 'part', mimeType: MIME }],
    capabilities: { tools: {}, prompts: {}, resources: { subscribe: true }, completions: {} },
    prompts: [{ name: 'p' }],
    answers: {
      'resources/read': ({ uri }) => ({
        result: {
          contents: [
            { uri, mimeType: MIME, text: `${name} has ${uri}`, _meta: { ui: { csp: CSP } } },
          ],
        },
      }),
    },
    ...listing,
  });

async function startTwo(view: string | undefined = undefined, rest: object = {}) {
  const one = await serveClock('one');
  const two = await serveClock('two');
  const file = { mcpServers: { one: one.url, two: { url: two.url, prefix: '' } }, ...rest };
  const gateway = await start({
    file,
    env: { MCP_STREAMS: 'true' },
    ...(view !== undefined && { view }),
  });
  return { one, two, gateway };
}

async function read(gateway: CatalogGateway, uri: string, session?: string) {
  const { json } = await gateway.call(session ?? (await gateway.open()), 'resources/read', { uri });
  return json.error ? json.error.data?.details : json.result.contents[0].text;
}

test('§30.1 the server is in the URIs of its apps: in lists, in templates, and where tools name them', async () => {
  const { gateway } = await startTwo();
  const session = await gateway.open();
  expect(await gateway.listNames('resources/list', session)).toEqual([
    'ui://one/clock/view',
    'ui://two/clock/view',
  ]);
  expect(await gateway.listNames('resources/templates/list', session)).toEqual([
    'ui://one/clock/{id}/part',
    'ui://two/clock/{id}/part',
  ]);
  const [first, second] = await gateway.list('tools/list', session);
  expect(first.name).toBe('one__show');
  expect(first._meta).toEqual({
    ui: { resourceUri: 'ui://one/clock/view', visibility: ['model', 'app'] },
    'ui/resourceUri': 'ui://one/clock/view',
    'openai/outputTemplate': 'ui://one/clock/view',
    other: 'ui://clock/view',
  });
  // A server without a prefix has its name in them all the same.
  expect(second.name).toBe('show');
  expect(second._meta.ui.resourceUri).toBe('ui://two/clock/view');
});

test('§30.1 what is read comes from the server that the URI names, with its policy unchanged', async () => {
  const { gateway, one, two } = await startTwo();
  const session = await gateway.open();
  const { json } = await gateway.call(session, 'resources/read', { uri: 'ui://two/clock/view' });
  expect(json.result.contents).toEqual([
    {
      uri: 'ui://two/clock/view',
      mimeType: MIME,
      text: 'two has ui://clock/view',
      _meta: { ui: { csp: CSP } },
    },
  ]);
  expect(await read(gateway, 'ui://one/clock/7/part', session)).toBe('one has ui://clock/7/part');
  // Servers need not list the apps that their tools name.
  expect(await read(gateway, 'ui://one/unlisted', session)).toBe('one has ui://unlisted');
  expect([one.count('resources/read'), two.count('resources/read')]).toEqual([2, 1]);
  const [listed] = await gateway.list('resources/list', session);
  expect(listed._meta).toEqual({
    ui: { csp: CSP, permissions: { camera: {} }, prefersBorder: true },
  });
});

test('§30.1 a long page of an app has the URI that the client asked for', async () => {
  const text = 'x'.repeat(300_000);
  const server = await serveClock('one', {
    answers: {
      'resources/read': ({ uri }) => ({ result: { contents: [{ uri, mimeType: MIME, text }] } }),
    },
  });
  const gateway = await start({ file: { mcpServers: { one: server.url } } });
  const { json } = await stateless(gateway, 'resources/read', { uri: 'ui://one/clock/view' });
  expect(json.result.contents).toEqual([{ uri: 'ui://one/clock/view', mimeType: MIME, text }]);
});

test.each([
  ['ui://clock/view', 'the server own URI, which does not say whose it is'],
  ['ui://three/clock/view', 'a server that is not there'],
  ['ui://one', 'no URI of the server'],
  ['ui://One/clock/view', 'the name in other letters'],
  ['ui://one%2Fclock/view', 'an encoded slash'],
  ['ui:one/clock/view', 'no authority'],
  ['one+ui://clock/view', 'the form of other URIs'],
])('§30.1 %s is unknown: %s', async (uri) => {
  const { gateway, one, two } = await startTwo();
  const session = await gateway.open();
  await gateway.list('resources/list', session);
  expect(await read(gateway, uri, session)).toBe(`Unknown resource "${uri}"`);
  expect([one.count('resources/read'), two.count('resources/read')]).toEqual([0, 0]);
});

test('§30.1 no server can have a URI that names another, whatever it lists and whatever its templates fit', async () => {
  const one = await serveClock('one', { resources: [] });
  const evil = await serveClock('evil', {
    resources: [
      { uri: 'ui://one/clock/view', name: 'stolen' },
      { uri: 'UI://one/clock/view', name: 'stolen' },
      { uri: 'ui://../one/clock/view', name: 'stolen' },
    ],
    resourceTemplates: [
      { uriTemplate: '{+any}', name: 'any' },
      { uriTemplate: 'u{i}://{+rest}', name: 'rest' },
    ],
  });
  const gateway = await start({ file: { mcpServers: { evil: evil.url, one: one.url } } });
  const session = await gateway.open();
  expect(await gateway.listNames('resources/list', session)).toEqual([
    'ui://evil/one/clock/view',
    'UI://evil/one/clock/view',
    'ui://evil/../one/clock/view',
  ]);
  await gateway.list('resources/templates/list', session);
  expect(await read(gateway, 'ui://one/clock/view', session)).toBe('one has ui://clock/view');
  expect(await read(gateway, 'ui://evil/../one/clock/view', session)).toBe(
    'evil has ui://../one/clock/view',
  );
  expect(await read(gateway, 'ui://nobody/x', session)).toBe('Unknown resource "ui://nobody/x"');
});

test('§30.1 the built-in catalogue keeps its URIs, and comes first', async () => {
  const page = { description: '', mimeType: MIME, read: () => ({ text: 'built-in' }) };
  const builtIn = createLocalCatalog({
    resources: [
      defineResource({ uri: 'ui://own/view', name: 'own', ...page }),
      defineResource({ uri: 'ui://one/clock/view', name: 'taken', ...page }),
    ],
    resourceTemplates: [
      defineResourceTemplate({
        uriTemplate: 'ui://own/{id}/x',
        name: 'x',
        description: '',
        read: ({ id }) => ({ text: `built-in ${id}` }),
      }),
    ],
  });
  const one = await serveClock('one');
  const gateway = await start({ file: { mcpServers: { one: one.url } }, builtIn });
  const session = await gateway.open();
  expect(await gateway.listNames('resources/list', session)).toEqual([
    'ui://own/view',
    'ui://one/clock/view',
  ]);
  expect(await read(gateway, 'ui://own/view', session)).toBe('built-in');
  expect(await read(gateway, 'ui://one/clock/view', session)).toBe('built-in');
  expect(await read(gateway, 'ui://own/7/x', session)).toBe('built-in 7');
  expect(await read(gateway, 'ui://one/other', session)).toBe('one has ui://other');
  expect(gateway.lines().map(({ msg }) => msg)).toContainEqual(
    expect.stringContaining('is hidden: the built-in catalogue has that URI, too'),
  );
});

test('§30.1 at the path of one server everything is as the server wrote it', async () => {
  const { gateway, one } = await startTwo('one');
  const session = await gateway.open();
  expect(await gateway.listNames('resources/list', session)).toEqual(['ui://clock/view']);
  expect(await gateway.listNames('resources/templates/list', session)).toEqual([
    'ui://clock/{id}/part',
  ]);
  const [tool] = await gateway.list('tools/list', session);
  expect(tool._meta.ui.resourceUri).toBe('ui://clock/view');
  const { json } = await gateway.call(session, 'resources/read', { uri: 'ui://clock/view' });
  expect(json.result.contents[0]).toMatchObject({
    uri: 'ui://clock/view',
    text: 'one has ui://clock/view',
  });
  for (const uri of ['ui://clock/7/part', 'ui://unlisted', 'ui://two/clock/view']) {
    expect(await read(gateway, uri, session)).toBe(`one has ${uri}`);
  }
  expect(one.count('resources/read')).toBe(4);
});

const LINK = { type: 'resource_link', uri: 'ui://clock/view', name: 'view' };
const EMBEDDED = {
  type: 'resource',
  resource: { uri: 'ui://clock/now', mimeType: 'text/html', text: '<p>ui://clock/view</p>' },
};
const OTHER = { type: 'resource_link', uri: 'x://a', name: 'a' };

test('§30.1 links, embedded resources and _meta of results name the server; nothing else in them changes', async () => {
  const structuredContent = { uri: 'ui://clock/view' };
  const server = await serveClock('one', {
    answers: {
      'tools/call': () => ({
        result: {
          content: [{ type: 'text', text: 'ui://clock/view' }, LINK, EMBEDDED, OTHER],
          structuredContent,
          _meta: { ui: { resourceUri: 'ui://clock/view' }, 'a/b': 1 },
        },
      }),
      'prompts/get': () => ({ result: { messages: [{ role: 'user', content: EMBEDDED }] } }),
      'resources/read': ({ uri }) => ({
        result: {
          contents: [
            { uri, text: 'a' },
            { uri: 'ui://clock/b', text: 'b' },
          ],
        },
      }),
    },
    resources: [{ uri: 'x://both', name: 'both' }],
  });
  const gateway = await start({ file: { mcpServers: { one: server.url } } });
  const session = await gateway.open();
  const shared = {
    ...EMBEDDED,
    resource: { ...EMBEDDED.resource, uri: 'ui://one/clock/now' },
  };
  const called = await gateway.call(session, 'tools/call', { name: 'one__show' });
  expect(called.json.result).toEqual({
    content: [
      { type: 'text', text: 'ui://clock/view' },
      { ...LINK, uri: 'ui://one/clock/view' },
      shared,
      OTHER,
    ],
    structuredContent,
    _meta: { ui: { resourceUri: 'ui://one/clock/view' }, 'a/b': 1 },
  });
  const got = await gateway.call(session, 'prompts/get', { name: 'one__p' });
  expect(got.json.result.messages).toEqual([{ role: 'user', content: shared }]);
  const both = await gateway.call(session, 'resources/read', { uri: 'x://both' });
  expect(both.json.result.contents).toEqual([
    { uri: 'x://both', text: 'a' },
    { uri: 'ui://one/clock/b', text: 'b' },
  ]);
  // The URI of a link is read from the server that it names.
  expect(await read(gateway, 'ui://one/clock/now', session)).toBe('a');
});

test('§30.1 completion, subscriptions and what they tell use the same URIs, in both eras', async () => {
  const { gateway, one, two } = await startTwo();
  const client = await openClient(gateway);
  const stream = await client.watch();
  const argument = { name: 'id', value: '' };
  for (const [uri, own] of [
    ['ui://two/clock/{id}/part', 'ui://clock/{id}/part'],
    ['ui://two/clock/7/part', 'ui://clock/7/part'],
  ]) {
    const { result } = await client.ask('completion/complete', {
      ref: { type: 'ref/resource', uri },
      argument,
    });
    expect(result.completion.values).toEqual([JSON.stringify({ type: 'ref/resource', uri: own })]);
  }
  expect(one.count('completion/complete')).toBe(0);
  const uri = 'ui://two/clock/view';
  expect((await client.ask('resources/subscribe', { uri })).result).toEqual({});
  expect(two.requests.at(-1)).toMatchObject({ params: { uri: 'ui://clock/view' } });
  const updated = { method: 'notifications/resources/updated', params: { uri } };
  await expect.poll(two.openStreams, PATIENT).toBe(2);
  one.notify('notifications/resources/updated', { uri: 'ui://clock/view' });
  two.notify('notifications/resources/updated', { uri: 'ui://clock/view' });
  expect(await stream.next()).toMatchObject(updated);
  stream.hangUp();
  const { message, headers } = statelessRequest('subscriptions/listen', {
    notifications: { resourceSubscriptions: [uri] },
  });
  const events = await openEvents({
    port: await gateway.listen(),
    headers: {
      ...headers,
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${await gateway.issuer.sign()}`,
    },
    body: message,
  });
  expect(await events.next()).toMatchObject({
    params: { notifications: { resourceSubscriptions: [uri] } },
  });
  await expect.poll(() => two.count('resources/subscribe'), PATIENT).toBe(2);
  await expect.poll(two.openStreams, PATIENT).toBe(2);
  two.notify('notifications/resources/updated', { uri: 'ui://clock/view' });
  expect(await events.next()).toMatchObject(updated);
  events.hangUp();
});

test('§30.1 rules are about the URI with the server in it, at every path', async () => {
  const rules = [{ who: 'everyone', may: ['*', 'resource:ui://one/*'] }];
  for (const [view, mine, others] of [
    [undefined, 'ui://one/clock/view', 'ui://two/clock/view'],
    ['one', 'ui://clock/view', undefined],
    ['two', undefined, 'ui://clock/view'],
  ] as const) {
    const { gateway, two } = await startTwo(view, { rules });
    const session = await gateway.open();
    if (mine) expect(await read(gateway, mine, session)).toBe('one has ui://clock/view');
    if (others) expect(await read(gateway, others, session)).toBe(`Unknown resource "${others}"`);
    expect(await gateway.listNames('resources/list', session)).toEqual(mine ? [mine] : []);
    expect(two.count('resources/read')).toBe(0);
  }
});

test('§30.1 patterns of a view are about them, too; a server that is not of the view is not asked', async () => {
  const views = { research: { servers: ['one'], resources: ['ui://one/clock/*'] } };
  const { gateway, one, two } = await startTwo('research', { views });
  const session = await gateway.open();
  expect(await gateway.listNames('resources/list', session)).toEqual(['ui://one/clock/view']);
  expect(await read(gateway, 'ui://one/clock/view', session)).toBe('one has ui://clock/view');
  expect(await read(gateway, 'ui://one/clock/other', session)).toBe('one has ui://clock/other');
  for (const uri of ['ui://one/else', 'ui://two/clock/view', 'ui://two/clock/other']) {
    expect(await read(gateway, uri, session)).toBe(`Unknown resource "${uri}"`);
  }
  expect([one.count('resources/read'), two.count('resources/read')]).toEqual([2, 0]);
});

test('§30.1 guards see them as clients do, and the list of a guarded server is whole', async () => {
  const use = await writeGuard(
    "return message.name === 'ui://two/clock/view' ? { decision: 'refuse', message: 'No.' } : { decision: 'pass' };",
  );
  const guards = [{ name: 'g', on: ['resources/list', 'resources/read'], use }];
  const { gateway } = await startTwo(undefined, { guards });
  const session = await gateway.open();
  expect(await gateway.listNames('resources/list', session)).toContain('ui://one/clock/view');
  expect(await read(gateway, 'ui://one/clock/view', session)).toBe('one has ui://clock/view');
  const { json } = await gateway.call(session, 'resources/read', { uri: 'ui://two/clock/view' });
  expect(JSON.stringify(json)).toContain('No.');
});

test('§30.1 the audit log names them as the client did, with the server', async () => {
  const audit = await createAuditLog();
  const server = await serveClock('one');
  for (const [view, uri] of [
    [undefined, 'ui://one/clock/view'],
    ['one', 'ui://clock/view'],
  ] as const) {
    const gateway = await start({
      file: { mcpServers: { one: server.url } },
      env: audit.env,
      ...(view !== undefined && { view }),
    });
    await read(gateway, uri);
    await expect.poll(() => audit.lines().at(-1)).toMatchObject({ resource: uri, server: 'one' });
  }
});
