import { MCPClient } from '@mastra/mcp';
import { auth } from '@modelcontextprotocol/client';
import { run } from './errand.mjs';

await run(async (url, { provider, redirected }) => {
  // It completes a login only with a provider of its own: the SDK's login stands before it.
  if (provider.tokens() === undefined) {
    await auth(provider, { serverUrl: url });
    const answer = await redirected();
    const authorizationCode = answer.get('code');
    await auth(provider, { serverUrl: url, authorizationCode, iss: answer.get('iss') });
  }
  const mcp = new MCPClient({ servers: { postern: { url, authProvider: provider } } });
  const tools = await mcp.listTools();
  return {
    list: () => Object.keys(tools),
    call: () => tools.postern_service_ping.execute({ message: 'hello' }, {}),
    close: () => mcp.disconnect(),
  };
});
