import { auth } from '@modelcontextprotocol/client';
import { MCPServerStreamableHttp } from '@openai/agents';
import { run } from './errand.mjs';

await run(async (url, { provider, redirected }) => {
  // It has no login of its own: the SDK's stands before it.
  if (provider.tokens() === undefined) {
    await auth(provider, { serverUrl: url });
    const answer = await redirected();
    const authorizationCode = answer.get('code');
    await auth(provider, { serverUrl: url, authorizationCode, iss: answer.get('iss') });
  }
  const server = new MCPServerStreamableHttp({ url: url.href, authProvider: provider });
  await server.connect();
  return {
    list: () => server.listTools(),
    call: () => server.callTool('service_ping', { message: 'hello' }),
    close: () => server.close(),
  };
});
