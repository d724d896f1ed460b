import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { run } from './errand.mjs';

await run(async (url, { provider, redirected }) => {
  const newTransport = () => new StreamableHTTPClientTransport(url, { authProvider: provider });
  const connect = async (transport) => {
    const client = new Client({ name: 'trial', version: '1.0.0' });
    await client.connect(transport);
    return {
      list: () => client.listTools(),
      call: () => client.callTool({ name: 'service_ping', arguments: { message: 'hello' } }),
      close: () => client.close(),
    };
  };
  const first = newTransport();
  try {
    return await connect(first);
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
  }
  await first.finishAuth((await redirected()).get('code'));
  return connect(newTransport());
});
