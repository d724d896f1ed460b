// BASE_URL with a path: the login and calls of official clients, whatever the proxy in front does with the path.
import { describe, expect, test } from 'vitest';
import { createClientTestCatalog } from '../support/catalogs/client-test-catalog.ts';
import { OFFICIAL_CLIENTS } from '../support/clients/official-clients.ts';
import { startService } from '../support/gateway/service.ts';
import { useShared } from '../support/lifetimes.ts';

const { catalog } = createClientTestCatalog();

describe.each(['removes', 'keeps'] as const)('behind a proxy that %s the path', (prefixRule) => {
  const service = useShared(() =>
    startService({ mode: 'broker', basePath: '/tools/gateway', prefixRule, deps: { catalog } }),
  );

  test.for(
    OFFICIAL_CLIENTS.flatMap((row) => [
      [row.title, '', row] as const,
      [row.title, '/', row] as const,
    ]),
  )(
    `§4.1 official client %s: logs in at <path>/mcp%s and calls, where the proxy ${prefixRule} the path`,
    async ([, end, { connect }]) => {
      const client = await connect(new URL(`${service.baseUrl}/mcp${end}`));
      expect(client.memory.saved.authorizations).toHaveLength(1);
      const { content } = await client.call('who-am-i');
      expect(content).toEqual([{ type: 'text', text: 'ada' }]);
      await client.close();
    },
  );
});
