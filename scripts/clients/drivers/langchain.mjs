import { MultiServerMCPClient } from '@langchain/mcp-adapters';
import { auth } from '@modelcontextprotocol/sdk/client/auth.js';
import { run } from './errand.mjs';

await run(async (url, { provider, redirected }) => {
  // It has no login of its own: the SDK's stands before it, as its documentation says.
  if (provider.tokens() === undefined) {
    await auth(provider, { serverUrl: url });
    const authorizationCode = (await redirected()).get('code');
    await auth(provider, { serverUrl: url, authorizationCode });
  }
  const client = new MultiServerMCPClient({
    mcpServers: { postern: { transport: 'http', url: url.href, authProvider: provider } },
  });
  const tools = await client.getTools();
  return {
    list: () => tools.map(({ name }) => name),
    call: () =>
      tools.find(({ name }) => name.endsWith('service_ping')).invoke({ message: 'hello' }),
    close: () => client.close(),
  };
});
