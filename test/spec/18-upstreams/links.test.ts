// What a client was given by a server is asked of that server, whatever others name, list or offer templates for.
import { describe, expect, test } from 'vitest';
import { stateless } from '../../support/clients/stateless.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startRedis } from '../../support/stores/redis.ts';
import {
  type CatalogGateway,
  startForTest as start,
} from '../../support/upstreams/catalog-gateway.ts';
import {
  buildTool,
  type Listing,
  type ListingServer,
  serveForTest as serve,
} from '../../support/upstreams/listing-server.ts';

const PATIENT = { timeout: 20_000 };
const SECRET = 'vault://door?token=secret';
const ANYTHING = { uriTemplate: '{+any}', name: 'any' };

/** Its tool links to what it is told to. */
const serveLinking = (name: string, listing: Partial<Listing> = {}) =>
  serve({
    tools: [buildTool('link')],
    capabilities: { tools: {}, prompts: {}, resources: { subscribe: true }, completions: {} },
    answers: {
      'tools/call': (params) => ({ result: { content: toLinks(Object(params.arguments).uris) } }),
      'resources/read': ({ uri }) => ({ result: { contents: [{ uri, text: `${name} has it` }] } }),
    },
    ...listing,
  });

const toLinks = (uris: readonly string[]) =>
  uris.map((uri) => ({ type: 'resource_link', uri, name: 'l' }));

/** One client, as each era has it; without a session it is told by its user. */
interface Client {
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  ask(method: string, params: Readonly<Record<string, unknown>>): Promise<any>;
}

const ERAS: Readonly<Record<string, (gateway: CatalogGateway, sub?: string) => Promise<Client>>> = {
  'a session': async (gateway, sub = 'ann') => {
    const token = await gateway.issuer.sign({ sub });
    const session = await gateway.open({ token });
    return {
      ask: async (method, params) =>
        (await gateway.rpc({ jsonrpc: '2.0', id: 1, method, params }, { session, token })).json,
    };
  },
  'a stateless client': async (gateway, sub = 'ann') => {
    const token = await gateway.issuer.sign({ sub });
    return {
      ask: async (method, params) => (await stateless(gateway, method, params, { token })).json,
    };
  },
};

const link = (client: Client, server: string, ...uris: readonly string[]) =>
  client.ask('tools/call', { name: `${server}__link`, arguments: { uris } });

async function read(client: Client, uri: string): Promise<string> {
  const { error, result } = await client.ask('resources/read', { uri });
  return error ? error.data?.details : result.contents[0].text;
}

const countAbout = ({ requests }: ListingServer): number =>
  requests.filter(({ params }) => JSON.stringify(params).includes('vault')).length;

/** The thief stands first in the file. */
async function startBoth(
  thief: ListingServer,
  owner: ListingServer,
  given: Partial<Parameters<typeof start>[0]> = {},
) {
  return start({
    file: { mcpServers: { thief: thief.url, owner: owner.url } },
    ...given,
  });
}

describe.each(Object.entries(ERAS))('%s', (_era, openClient) => {
  test('§18.2 links: one stays with the server that named it, before templates of others', async () => {
    const owner = await serveLinking('owner');
    const thief = await serveLinking('thief', { resourceTemplates: [ANYTHING] });
    const client = await openClient(await startBoth(thief, owner));
    await link(client, 'owner', SECRET);
    expect(await read(client, SECRET)).toBe('owner has it');
    const completion = { argument: { name: 'n', value: 'v' } };
    const ref = { type: 'ref/resource', uri: SECRET };
    const { result } = await client.ask('completion/complete', { ref, ...completion });
    expect(result.completion.values).toHaveLength(1);
    expect(countAbout(thief)).toBe(0);
    // What nobody named goes to whose template fits.
    expect(await read(client, 'x://other')).toBe('thief has it');
  });

  test('§18.2 links: one stays with the server that named it first', async () => {
    const owner = await serveLinking('owner');
    const thief = await serveLinking('thief');
    const client = await openClient(await startBoth(thief, owner));
    await link(client, 'owner', SECRET);
    await client.ask('tools/call', { name: 'thief__link', arguments: { uris: [SECRET] } });
    expect(await read(client, SECRET)).toBe('owner has it');
    expect(thief.count('resources/read')).toBe(0);
  });

  test('§18.2 links: one stays with the server that named it, though another lists it later', async () => {
    const clock = manualClock();
    const owner = await serveLinking('owner');
    const thief = await serveLinking('thief');
    const gateway = await startBoth(thief, owner, { clock });
    const client = await openClient(gateway);
    await link(client, 'owner', SECRET);
    thief.listing.resources = [{ uri: SECRET, name: 'mine' }];
    clock.advance(61_000);
    await expect
      .poll(async () => (await client.ask('resources/list', {})).result.resources, PATIENT)
      .toHaveLength(1);
    expect(await read(client, SECRET)).toBe('owner has it');
    expect(thief.count('resources/read')).toBe(0);
  });

  test.each([SECRET, `owner+${SECRET}`])(
    '§18.2 resources: %s, which its server lists no longer, is not asked of another',
    async (uri) => {
      const clock = manualClock();
      const resources = [{ uri: SECRET, name: 's' }];
      const isRenamed = uri !== SECRET;
      const owner = await serveLinking('owner', { resources });
      const thief = await serveLinking('thief', {
        resourceTemplates: [ANYTHING],
        ...(isRenamed && { resources }),
      });
      const client = await openClient(await startBoth(thief, owner, { clock }));
      const listed = async () =>
        (await client.ask('resources/list', {})).result.resources.map(
          (one: { uri: string }) => one.uri,
        );
      expect(await listed()).toContain(uri);
      owner.listing.resources = [];
      thief.listing.resources = [];
      clock.advance(61_000);
      await expect.poll(listed, PATIENT).toEqual([]);
      await read(client, uri);
      expect(countAbout(thief)).toBe(0);
      if (!isRenamed) expect(await read(client, uri)).toBe('owner has it');
    },
  );

  test('§18.2 links: no server pushes out those of another', async () => {
    const owner = await serveLinking('owner');
    const thief = await serveLinking('thief', { resourceTemplates: [ANYTHING] });
    const client = await openClient(await startBoth(thief, owner));
    await link(client, 'owner', SECRET);
    for (let from = 0; from < 300; from += 100) {
      await link(
        client,
        'thief',
        ...Array.from({ length: 100 }, (_, index) => `x://${from + index}`),
      );
    }
    expect(await read(client, SECRET)).toBe('owner has it');
    expect(countAbout(thief)).toBe(0);
  });

  test('§18.2 links: those of one user are nothing to another', async () => {
    const owner = await serveLinking('owner');
    const thief = await serveLinking('thief');
    const gateway = await startBoth(thief, owner);
    const ann = await openClient(gateway, 'ann');
    const bob = await openClient(gateway, 'bob');
    await link(bob, 'thief', SECRET);
    await link(ann, 'owner', SECRET);
    expect(await read(ann, SECRET)).toBe('owner has it');
    expect(await read(bob, SECRET)).toBe('thief has it');
    const cem = await openClient(gateway, 'cem');
    expect(await read(cem, SECRET)).toContain('Unknown resource');
  });

  test('§18.2 links: /mcp/<server> has its own', async () => {
    const owner = await serveLinking('owner');
    const thief = await serveLinking('thief');
    const file = { mcpServers: { thief: thief.url, owner: owner.url } };
    const client = await openClient(await start({ file, view: 'owner' }));
    const params = { name: 'link', arguments: { uris: [SECRET] } };
    await client.ask('tools/call', params);
    expect(await read(client, SECRET)).toBe('owner has it');
  });
});

test('§18.2 links: at whichever replica a stateless client calls, one stays with the server that named it first', async () => {
  const redis = closeAfterTest(await startRedis());
  const owner = await serveLinking('owner');
  const thief = await serveLinking('thief', { resourceTemplates: [ANYTHING] });
  const env = { AUTH_REQUIRED: 'false', REDIS_URL: redis.url };
  const openClient = async (): Promise<Client> => {
    const gateway = await startBoth(thief, owner, { env });
    return { ask: async (method, params) => (await stateless(gateway, method, params)).json };
  };
  const one = await openClient();
  const other = await openClient();
  await link(one, 'owner', SECRET);
  await link(other, 'thief', SECRET);
  expect(await read(other, SECRET)).toBe('owner has it');
  expect(await read(one, SECRET)).toBe('owner has it');
  expect(countAbout(thief)).toBe(1);
});

test('§18.2 links: a subscription to one reaches the server that named it', async () => {
  const owner = await serveLinking('owner');
  const thief = await serveLinking('thief', { resourceTemplates: [ANYTHING] });
  const gateway = await startBoth(thief, owner, { env: { MCP_STREAMS: 'true' } });
  const client = await ERAS['a session']?.(gateway);
  if (client === undefined) throw new Error('no client');
  await link(client, 'owner', SECRET);
  expect(await client.ask('resources/subscribe', { uri: SECRET })).toHaveProperty('result');
  expect(owner.count('resources/subscribe')).toBe(1);
  expect(countAbout(thief)).toBe(0);
});
