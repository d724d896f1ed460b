import { test } from 'vitest';
import { stateless } from '../../support/clients/stateless.ts';
import { startForTest as start } from '../../support/upstreams/catalog-gateway.ts';
import { buildTool, serveForTest as serve } from '../../support/upstreams/listing-server.ts';

test('cost', async () => {
  const tools = Array.from({ length: 300 }, (_, at) =>
    buildTool(`tool_${at}`, { description: 'word '.repeat(60) }),
  );
  const wiki = await serve({ tools });
  const files = await serve({ tools });
  const run = async (view: string, rules: object) => {
    const gateway = await start({
      file: {
        mcpServers: { wiki: wiki.url, files: files.url },
        views: { research: { tools: ['wiki__*'] } },
        ...rules,
      },
      view,
      env: {
        MCP_RATE_LIMIT_MAX: '1000000',
        MCP_USER_RATE_LIMIT_MAX: '1000000',
        MCP_GLOBAL_RATE_LIMIT_MAX: '1000000',
      },
    });
    const token = await gateway.issuer.sign();
    const go = async (method: string, params: object, n: number) => {
      const t0 = performance.now();
      for (let i = 0; i < n; i += 1) await stateless(gateway, method, params as never, { token });
      return ((performance.now() - t0) / n).toFixed(3);
    };
    await go('tools/list', {}, 200);
    const list = await go('tools/list', {}, 600);
    const name = view === 'wiki' ? 'tool_5' : 'wiki__tool_5';
    await go('tools/call', { name, arguments: {} }, 50);
    const call = await go('tools/call', { name, arguments: {} }, 200);
    console.log(view, JSON.stringify(rules).slice(0, 30), 'list ms', list, 'call ms', call);
  };
  for (let i = 0; i < 2; i += 1) {
    await run('wiki', {});
    await run('research', {});
    await run('wiki', { rules: [{ who: 'everyone', may: ['*'] }] });
    await run('research', { rules: [{ who: 'everyone', may: ['*'] }] });
  }
}, 120_000);
