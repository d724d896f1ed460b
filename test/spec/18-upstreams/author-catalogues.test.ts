// §18.2: what authors write themselves, in place of a local catalogue, among the servers of a configuration file.
import { describe, expect, test } from 'vitest';
import { createLocalCatalog, defineTool } from '../../../src/index.ts';
import type { Catalog } from '../../../src/mcp/catalog/catalog.ts';
import type { CacheHint } from '../../../src/mcp/catalog/content.ts';
import { stateless } from '../../support/clients/stateless.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';

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
