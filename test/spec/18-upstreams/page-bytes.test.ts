// Pages are written once for all who see the same: nobody gets another's, or an old one.
import { expect, test } from 'vitest';
import { createWritePage, type VisiblePage } from '../../../src/catalog/list-page.ts';
import type { Entry } from '../../../src/catalog/prepare-list.ts';
import { SERVER_INFO, stateless } from '../../support/clients/stateless.ts';
import {
  type CatalogGateway,
  startForTest as start,
} from '../../support/upstreams/catalog-gateway.ts';
import { buildTool, serveForTest as serve } from '../../support/upstreams/listing-server.ts';

const REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];

const toTools = (...names: string[]) => names.map((name) => buildTool(name, { title: 'ä "b"' }));

async function startTwo(rules: object = {}) {
  const one = await serve({ tools: toTools('read', 'write') });
  const other = await serve({ tools: toTools('find') });
  const mcpServers = { one: one.url, other: other.url };
  const gateway = await start({ file: { mcpServers, ...rules } });
  return { gateway, mcpServers };
}

async function openAs(
  gateway: CatalogGateway,
  claims: Record<string, unknown>,
  protocolVersion = '2025-11-25',
) {
  const token = await gateway.issuer.sign(claims);
  const params = { protocolVersion, capabilities: {}, clientInfo: { name: 'x', version: '1' } };
  const { headers } = await gateway.rpc(
    { jsonrpc: '2.0', id: 1, method: 'initialize', params },
    { token },
  );
  const session = String(headers['mcp-session-id']);
  return { session, token };
}

const askForList = async (gateway: CatalogGateway, id: unknown, as: object): Promise<string> =>
  (await gateway.rpc({ jsonrpc: '2.0', id, method: 'tools/list', params: {} }, as)).text;

const render = (id: unknown, result: object) => JSON.stringify({ jsonrpc: '2.0', result, id });

test.each(REVISIONS)(
  '§18.2 pages: a client of %s gets the same however often it asks, with its own id',
  async (revision) => {
    const { gateway } = await startTwo();
    const tools = toTools('one__read', 'one__write', 'other__find').map((tool) => ({
      ...tool,
      description: `Does ${tool.name.slice(tool.name.indexOf('__') + 2)}.`,
    }));
    const ann = await openAs(gateway, { sub: 'ann' }, revision);
    const bob = await openAs(gateway, { sub: 'bob' }, revision);
    expect(await askForList(gateway, 1, ann)).toBe(render(1, { tools }));
    expect(await askForList(gateway, 'a "b"', bob)).toBe(render('a "b"', { tools }));
    expect(await askForList(gateway, 3, ann)).toBe(render(3, { tools }));
  },
);

test('§18.2 pages: a client of 2026-07-28 gets the same, with what its revision adds', async () => {
  const { gateway } = await startTwo();
  const session = await openAs(gateway, { sub: 'ann' });
  const { result } = JSON.parse(await askForList(gateway, 1, session));
  for (const id of [1, 'x']) {
    const { text, json } = await stateless(gateway, 'tools/list', {}, { id });
    const serverInfo = json.result._meta[SERVER_INFO];
    expect(serverInfo.name).toBe('postern');
    const added = { ttlMs: 60_000, cacheScope: 'public', _meta: { [SERVER_INFO]: serverInfo } };
    expect(text).toBe(render(id, { resultType: 'complete', ...result, ...added }));
  }
});

const RULES = {
  rules: [
    { who: { groups: ['readers'] }, may: ['one__read'] },
    { who: { groups: ['writers'] }, may: ['one__*'] },
  ],
};

test('§18.5 pages: of two users each gets what the rules show it, also once other rules hold', async () => {
  const { gateway, mcpServers } = await startTwo(RULES);
  const reader = await openAs(gateway, { sub: 'ann', groups: ['readers'] });
  const writer = await openAs(gateway, { sub: 'bob', groups: ['writers'] });
  const nobody = await openAs(gateway, { sub: 'eve', groups: ['others'] });
  const listAll = async () => {
    const names: string[][] = [];
    for (const as of [reader, writer, nobody, writer, reader]) {
      const { result } = JSON.parse(await askForList(gateway, 1, as));
      names.push(result.tools.map(({ name }: { name: string }) => name));
    }
    return names;
  };
  const all = ['one__read', 'one__write'];
  expect(await listAll()).toEqual([['one__read'], all, [], all, ['one__read']]);
  // The same user, whose token says another group now.
  const promoted = {
    ...reader,
    token: await gateway.issuer.sign({ sub: 'ann', groups: ['writers'] }),
  };
  expect(await gateway.listNames('tools/list', promoted.session, promoted.token)).toEqual(all);

  await gateway.reload({
    mcpServers,
    rules: [{ who: { groups: ['writers'] }, may: ['other__find'] }],
  });
  expect(await listAll()).toEqual([[], ['other__find'], [], ['other__find'], []]);
  await gateway.reload({ mcpServers: { two: mcpServers.one } });
  const renamed = ['two__read', 'two__write'];
  expect(await listAll()).toEqual([renamed, renamed, renamed, renamed, renamed]);
});

// Kept where the same bytes come back, not only equal ones.

const toEntry = (name: string): Entry => ({
  kind: 'tool',
  server: 'one',
  ownName: name,
  name,
  ownItem: { name },
  item: { name },
  annotations: {},
});
const LIST = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map(toEntry);

const show = (caller: string | undefined, ...positions: number[]) => ({
  viewName: '',
  kind: 'tools' as const,
  list: LIST,
  positions,
  nextCursor: undefined,
  caller,
});

const getItem = ({ item }: Entry) => item;

/** The very bytes. */
function createWriteBytes(...bounds: number[]) {
  const writePage = createWritePage(...bounds);
  return (page: VisiblePage) => writePage(page, getItem).bytes;
}

test('§18.2 pages: what is another list, view, kind or cursor is written anew', () => {
  const writeBytes = createWriteBytes();
  const page = show('ann', 0, 1);
  const bytes = writeBytes(page);
  expect(writeBytes(show('bob', 0, 1))).toBe(bytes);
  const others = [
    { ...page, list: [...LIST] },
    { ...page, viewName: 'one' },
    { ...page, kind: 'prompts' as const },
    { ...page, nextCursor: 'b' },
    show('ann', 0, 2),
    show('ann', 1),
  ];
  for (const other of others) expect(writeBytes(other)).not.toBe(bytes);
  expect(String(writeBytes({ ...page, kind: 'prompts', nextCursor: 'b' }))).toBe(
    '{"prompts":[{"name":"a"},{"name":"b"}],"nextCursor":"b"}',
  );
});

test('§18.2 pages: however many one user sees, those of others stay', () => {
  const size = createWriteBytes()(show('x', 0)).length + 16;
  const writeBytes = createWriteBytes(8 * size, 2 * size);
  const ofAnn = writeBytes(show('ann', 7));
  const ofEve = [0, 1, 2, 3, 4, 5, 6].map((position) => writeBytes(show('eve', position)));
  const again = [0, 1, 2, 3, 4, 5, 6].map((position) => writeBytes(show('eve', position)));
  expect(again.filter((bytes, position) => bytes === ofEve[position])).toHaveLength(2);
  expect(again.map(String)).toEqual(ofEve.map(String));
  expect(writeBytes(show('ann', 7))).toBe(ofAnn);
});

test('§18.2 pages: beyond the bound of all, the one that nobody asked for goes', () => {
  const size = createWriteBytes()(show('x', 0)).length + 16;
  const writeBytes = createWriteBytes(2 * size, size);
  const first = writeBytes(show('ann', 0));
  const second = writeBytes(show('bob', 1));
  expect(writeBytes(show('ann', 0))).toBe(first);
  const third = writeBytes(show('eve', 2));
  expect(writeBytes(show('eve', 2))).toBe(third);
  expect(writeBytes(show('ann', 0))).toBe(first);
  // Eve's went for it, whose room she has again.
  expect(writeBytes(show('bob', 1))).not.toBe(second);
  expect(writeBytes(show('eve', 3))).toBe(writeBytes(show('eve', 3)));
});
