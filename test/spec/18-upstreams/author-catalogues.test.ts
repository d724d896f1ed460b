// §18.2: what authors write themselves, in place of a local catalogue, among the servers of a configuration file.
import { describe, expect, test } from 'vitest';
import { createLocalCatalog, defineTool } from '../../../src/index.ts';
import type { Catalog } from '../../../src/mcp/catalog/catalog.ts';
import type { CacheHint } from '../../../src/mcp/catalog/content.ts';
import { stateless } from '../../support/clients/stateless.ts';
import { startGateway } from '../../support/gateway/gateway.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { buildTool, serveForTest } from '../../support/upstreams/listing-server.ts';

const local = createLocalCatalog({
  tools: [
    defineTool({
      name: 'works',
      description: '',
      inputSchema: { type: 'object' },
      run: () => ({ content: [] }),
    }),
  ],
});

describe('a built-in list of each user', () => {
  /** Two pages, one tool each, named after the user. */
  const createPersonal = (hints: readonly (CacheHint | undefined)[]): Catalog => ({
    ...local,
    async listTools(cursor, { user }) {
      const page = Number(cursor ?? 0);
      const { [page]: cache } = hints;
      return {
        items: [
          { name: `of_${user?.sub}_${page}`, description: '', inputSchema: { type: 'object' } },
        ],
        ...(page + 1 < hints.length && { nextCursor: String(page + 1) }),
        ...(cache && { cache }),
      };
    },
  });

  test.each<{ what: string; hints: (CacheHint | undefined)[]; told: CacheHint }>([
    {
      what: 'that is private is private',
      hints: [{ ttlMs: 0, scope: 'private' }],
      told: { ttlMs: 0, scope: 'private' },
    },
    {
      what: 'that says nothing is not kept',
      hints: [undefined],
      told: { ttlMs: 0, scope: 'private' },
    },
    {
      what: 'is as private as its most private page, and kept as long as the first that is too old',
      hints: [
        { ttlMs: 9_000, scope: 'public' },
        { ttlMs: 8_000, scope: 'private' },
      ],
      told: { ttlMs: 8_000, scope: 'private' },
    },
    {
      what: 'that its author calls public is public',
      hints: [{ ttlMs: 9_000, scope: 'public' }],
      told: { ttlMs: 9_000, scope: 'public' },
    },
  ])('§18.2 a built-in list $what', async ({ hints, told }) => {
    const gateway = await startForTest({
      file: { mcpServers: {} },
      builtIn: createPersonal(hints),
    });
    for (const sub of ['ada', 'bob']) {
      const token = await gateway.issuer.sign({ sub });
      const { json } = await stateless(gateway, 'tools/list', {}, { token });
      const { tools, ttlMs, cacheScope } = json.result;
      expect(tools.map(({ name }: { name: string }) => name)).toEqual(
        hints.map((_, page) => `of_${sub}_${page}`),
      );
      expect({ ttlMs, scope: cacheScope }).toEqual(told);
    }
  });
});

const createFailing = (): Catalog => ({
  ...local,
  async listTools() {
    throw new Error('the database is down');
  },
});

test('§18.2 a built-in list that fails keeps nobody from what a server has under its prefix', async () => {
  const server = await serveForTest({ tools: [buildTool('read')] });
  const gateway = await startForTest({
    file: { mcpServers: { wiki: server.url } },
    builtIn: createFailing(),
  });
  const session = await gateway.open();
  const call = async (name: string) =>
    (await gateway.call(session, 'tools/call', { name, arguments: {} })).json;
  expect((await call('wiki__read')).result).toMatchObject({ content: expect.anything() });
  expect((await call('wiki__read')).result.isError).toBeUndefined();
  // Whether the built-in catalogue has it nobody can say.
  const { result, error } = await call('read');
  expect(result?.isError ?? error).toBeTruthy();
});

test('§2.4 a tool of an author whose function returns no promise is answered', async () => {
  const gateway = closeAfterTest(
    await startGateway({
      deps: {
        catalog: {
          ...local,
          callTool: (() => ({ content: [{ type: 'text', text: 'at once' }] })) as never,
        },
      },
    }),
  );
  const { json } = await gateway.call(await gateway.open(), 'tools/call', { name: 'works' });
  expect(json.result).toEqual({ content: [{ type: 'text', text: 'at once' }] });
});
