// node stdio-proxy.mjs <url> <errand> <command>: a client over stdio, behind which a proxy leads to
// the gateway.
import { run } from './errand.mjs';
import { start } from './json-lines.mjs';

await run(async (url) => {
  const proxy = start(process.argv[4], [url.href]);
  await proxy.ask('initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'trial', version: '1.0.0' },
  });
  proxy.notify('notifications/initialized');
  return {
    list: () => proxy.ask('tools/list', {}),
    call: () => proxy.ask('tools/call', { name: 'service_ping', arguments: { message: 'hello' } }),
    close: proxy.close,
  };
});
