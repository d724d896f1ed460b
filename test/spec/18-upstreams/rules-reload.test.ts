// §18.5: rules that are loaded anew hold for calls that wait to begin.
import { EventEmitter, once } from 'node:events';
import { expect, test } from 'vitest';
import { createLocalCatalog, defineTool } from '../../../src/index.ts';
import type { Catalog } from '../../../src/mcp/catalog/catalog.ts';
import { stateless } from '../../support/clients/stateless.ts';
import { parseServers, startForTest } from '../../support/upstreams/catalog-gateway.ts';

const file = (...may: string[]) => ({ mcpServers: {}, rules: [{ who: 'everyone', may }] });

test('§18.5 a call that waits to begin does not run once new rules deny it', async () => {
  let runs = 0;
  const local = createLocalCatalog({
    tools: ['runs', 'other'].map((name) =>
      defineTool({
        name,
        description: '',
        inputSchema: { type: 'object' },
        run() {
          runs += 1;
          return { content: [] };
        },
      }),
    ),
  });
  const turns = new EventEmitter();
  const begun = once(turns, 'begun');
  const builtIn: Catalog = {
    ...local,
    async mirroredParams() {
      const goesOn = once(turns, 'go on');
      turns.emit('begun');
      await goesOn;
      return [];
    },
  };
  const gateway = await startForTest({ file: file('*'), builtIn });
  const call = stateless(gateway, 'tools/call', { name: 'runs' });
  await begun;
  await gateway.reload(file('other'));
  turns.emit('go on');
  const { json } = await call;
  expect(json.error.code).toBe(-32602);
  expect(runs).toBe(0);
});

test('§18.5 of two files that are loaded at once the later one holds', async () => {
  const local = createLocalCatalog({
    tools: ['one', 'other'].map((name) =>
      defineTool({
        name,
        description: '',
        inputSchema: { type: 'object' },
        run: () => ({ content: [] }),
      }),
    ),
  });
  const gateway = await startForTest({ file: file('*'), builtIn: local });
  // The provider's keys come before the rules, which take the process for so long that it would miss them.
  expect(await gateway.listNames('tools/list')).toEqual(['one', 'other']);
  const slow = {
    mcpServers: {},
    rules: Array.from({ length: 2_000 }, (_, index) => ({
      who: 'everyone',
      may: ['one'],
      when: `user.sub != "nobody${index}" && size(user.sub) > 0`,
    })),
  };
  const files = await Promise.all([parseServers(slow), parseServers(file('other'))]);
  const { reload } = gateway.gateway;
  await Promise.all(files.map((content) => reload({ file: content, lock: undefined })));
  expect(await gateway.listNames('tools/list')).toEqual(['other']);
});
