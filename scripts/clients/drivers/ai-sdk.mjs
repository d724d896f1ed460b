import { auth, createMCPClient, UnauthorizedError } from '@ai-sdk/mcp';
import { run } from './errand.mjs';

await run(async (url, { provider, redirected }) => {
  const connect = async () => {
    const transport = { type: 'http', url: url.href, authProvider: provider };
    const client = await createMCPClient({ transport });
    return {
      list: () => client.listTools(),
      async call() {
        const { service_ping: tool } = await client.tools();
        return tool.execute({ message: 'hello' }, { toolCallId: '1', messages: [] });
      },
      close: () => client.close(),
    };
  };
  try {
    return await connect();
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
  }
  const answer = await redirected();
  await auth(provider, {
    serverUrl: url,
    authorizationCode: answer.get('code'),
    callbackState: answer.get('state'),
    callbackIssuer: answer.get('iss'),
  });
  return connect();
});
