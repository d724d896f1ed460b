import {
  Client,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client';
import { run } from './errand.mjs';

// A session (the client's default) or, with "stateless", 2026-07-28 where the service speaks it.
const mode = process.argv[4] === 'stateless' ? { versionNegotiation: { mode: 'auto' } } : {};

await run(async (url, { provider, redirected }) => {
  const newTransport = () => new StreamableHTTPClientTransport(url, { authProvider: provider });
  const connect = async (transport) => {
    const client = new Client({ name: 'trial', version: '1.0.0' }, mode);
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
  await first.finishAuth(await redirected());
  return connect(newTransport());
});
