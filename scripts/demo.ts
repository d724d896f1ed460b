// npm run demo [url]: an official MCP client goes the whole way, from a refused call to the end
// of its session, and says what it sees.
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { type Authorization, createAuthorization } from './demo/authorization.ts';
import { listenForCallback } from './demo/callback.ts';
import { createTranscript } from './demo/transcript.ts';

const DEFAULT_URL = 'http://localhost:3000/mcp';

const { heading, say, note, fetch } = createTranscript(console.log);

async function demo(url: URL): Promise<void> {
  const callback = await listenForCallback();
  try {
    heading(`Connecting to ${url.href}`);
    const authorization = createAuthorization({ callback, name: 'ada', say, note });
    const client = new Client({ name: 'postern-demo', version: '1.0.0' });
    const transport = await connect(client, url, authorization);
    const server = client.getServerVersion();
    say(`${server?.name} ${server?.version}, session ${transport.sessionId}`);
    await look(client);
    heading('Good-bye');
    await transport.terminateSession();
    await client.close();
  } finally {
    callback.close();
  }
  heading('Everything works.');
}

async function connect(client: Client, url: URL, authorization: Authorization) {
  const open = () => new StreamableHTTPClientTransport(url, { authProvider: authorization, fetch });
  const first = open();
  try {
    await client.connect(first as Transport);
    return first;
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
  }
  const code = await authorization.code();
  await first.finishAuth(code);
  const second = open();
  await client.connect(second as Transport);
  return second;
}

async function look(client: Client): Promise<void> {
  heading('Tools');
  const { tools } = await client.listTools();
  say(names(tools));
  const ping = await client.callTool({ name: 'service_ping', arguments: { message: 'hello' } });
  say(JSON.stringify(ping.content));

  heading('Prompts');
  const { prompts } = await client.listPrompts();
  say(names(prompts));
  const greeting = await client.getPrompt({ name: 'greeting', arguments: { name: 'Ada' } });
  say(JSON.stringify(greeting.messages));

  heading('Resources');
  const { resources } = await client.listResources();
  say(names(resources));
  for (const uri of ['config://server', 'user://profile']) {
    const { contents } = await client.readResource({ uri });
    for (const content of contents) say('text' in content ? content.text : content.uri);
  }
}

const names = (entries: readonly { readonly name: string }[]): string =>
  entries.map(({ name }) => name).join(', ');

function explain(error: unknown, url: string): string {
  const causes = error instanceof Error ? [error, error.cause] : [];
  const unreachable = causes.some(
    (cause) => cause instanceof Error && 'code' in cause && cause.code === 'ECONNREFUSED',
  );
  if (unreachable)
    return `Nothing answers at ${url}: start it with npm run dev, in another terminal.`;
  return `The demo failed: ${error instanceof Error ? error.message : String(error)}`;
}

const [url = DEFAULT_URL] = process.argv.slice(2);
if (!URL.canParse(url)) {
  console.error(`Usage: npm run demo [url], for example ${DEFAULT_URL}`);
  process.exit(2);
}
demo(new URL(url)).catch((error: unknown) => {
  console.error(`\n${explain(error, url)}`);
  process.exitCode = 1;
});
