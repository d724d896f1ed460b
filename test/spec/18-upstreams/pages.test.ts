// Of more than a page holds, each server has its share.
import { expect, test } from 'vitest';
import {
  type CatalogGateway,
  startForTest as start,
} from '../../support/upstreams/catalog-gateway.ts';
import { buildTool, serveForTest as serve } from '../../support/upstreams/listing-server.ts';

const buildMany = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`);

const serveTools = (names: readonly string[]) =>
  serve({ tools: names.map((name) => buildTool(name)) });

/** Names, page by page. */
async function readPages(
  gateway: CatalogGateway,
  method: string,
  token?: string,
): Promise<readonly (readonly string[])[]> {
  const session = await gateway.open(token === undefined ? {} : { token });
  const pages: string[][] = [];
  let cursor: string | undefined;
  do {
    const message = { jsonrpc: '2.0', id: 1, method, params: { ...(cursor && { cursor }) } };
    const { json } = await gateway.rpc(message, { session, ...(token && { token }) });
    const { nextCursor, ...members } = json.result;
    const items: { uri?: string; name: string }[] = Object.values(members).flat() as never;
    pages.push(items.map(({ uri, name }) => uri ?? name));
    cursor = nextCursor;
  } while (cursor !== undefined);
  return pages;
}

async function serveUnequal() {
  const small = await serveTools(buildMany('s', 5));
  const large = await serveTools(buildMany('l', 2_500));
  const last = await serveTools(buildMany('z', 700));
  return { mcpServers: { small: small.url, large: large.url, last: last.url } };
}

test('§18.2 pages: one server with thousands of tools does not push others off the first page', async () => {
  const file = await serveUnequal();
  const gateway = await start({ file });
  const pages = await readPages(gateway, 'tools/list');
  const [first = []] = pages;
  expect(pages.map(({ length }) => length)).toEqual([1_000, 1_000, 1_000, 205]);
  const count = (server: string) => first.filter((name) => name.startsWith(`${server}__`)).length;
  // In turns: where one has no more, the others share what is left.
  expect([count('small'), count('large'), count('last')]).toEqual([5, 498, 497]);
  // A page has the order of the file.
  expect(first).toEqual([
    ...buildMany('small__s', 5),
    ...buildMany('large__l', 498),
    ...buildMany('last__z', 497),
  ]);
  const all = pages.flat();
  expect(new Set(all).size).toBe(3_205);
  expect(await readPages(await start({ file }), 'tools/list')).toEqual(pages);
}, 60_000);

test('§18.2 pages: what fits on one has the order of the file', async () => {
  const one = await serveTools(buildMany('a', 400));
  const other = await serveTools(buildMany('b', 600));
  const gateway = await start({ file: { mcpServers: { one: one.url, other: other.url } } });
  const names = [...buildMany('one__a', 400), ...buildMany('other__b', 600)];
  expect(await readPages(gateway, 'tools/list')).toEqual([names]);
});

test('§18.2 pages: what rules hide takes no place, and its name is no cursor', async () => {
  const file = await serveUnequal();
  const rules = [{ who: 'everyone', may: ['small__*', 'large__l?9*', 'last__*'] }];
  const gateway = await start({ file: { ...file, rules } });
  const pages = await readPages(gateway, 'tools/list');
  const visible = [
    ...buildMany('small__s', 5),
    ...buildMany('large__l', 2_500).filter((name) => /^large__l.9/.test(name)),
    ...buildMany('last__z', 700),
  ];
  expect(pages).toEqual([visible]);
  const session = await gateway.open();
  const cursor = Buffer.from('large__l0').toString('base64url');
  const { json } = await gateway.call(session, 'tools/list', { cursor });
  expect(json.error.code).toBe(-32602);
});

test('§18.2 pages: so it is with resources, and those of one server keep their order', async () => {
  const toResources = (names: readonly string[]) => names.map((uri) => ({ uri, name: uri }));
  const large = await serve({ resources: toResources(buildMany('x://l/', 1_500)) });
  const small = await serve({ resources: toResources(buildMany('x://s/', 3)) });
  const file = { mcpServers: { large: large.url, small: small.url } };
  const [first = [], second = []] = await readPages(await start({ file }), 'resources/list');
  expect(first.slice(-3)).toEqual(buildMany('x://s/', 3));
  expect([...first.slice(0, -3), ...second]).toEqual(buildMany('x://l/', 1_500));
  const own = await readPages(await start({ file, view: 'large' }), 'resources/list');
  expect(own.flat()).toEqual(buildMany('x://l/', 1_500));
});
