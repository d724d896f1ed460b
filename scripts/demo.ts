// npm run demo [url]: an official MCP client goes the whole way, from a refused call to the end
// of its session, and says what it sees. With --token it logs in and prints the access token.
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { type Authorization, createAuthorization } from './demo/authorization.ts';
import { listenForCallback } from './demo/callback.ts';
import { explain } from './demo/explain.ts';
import { createTranscript } from './demo/transcript.ts';

const DEFAULT_URL = 'http://localhost:3000/mcp';
const USAGE = `Usage: npm run demo -- [--token] [url], for example ${DEFAULT_URL}`;

const { url, tokenOnly } = readArguments(process.argv.slice(2));
// A token is for $(…): everything else goes where it does not disturb.
const { heading, say, note, fetch } = createTranscript(tokenOnly ? console.error : console.log);

demo().catch((error: unknown) => {
  console.error(`\n${explain(error, url)}`);
  process.exitCode = 1;
});

async function demo(): Promise<void> {
  const callback = await listenForCallback();
  try {
    heading(`Connecting to ${url.href}`);
    const authorization = createAuthorization({ callback, name: 'ada', say, note });
    const client = new Client({ name: 'postern-demo', version: '1.0.0' });
    const transport = await connect(client, authorization);
    const server = client.getServerVersion();
    say(`${server?.name} ${server?.version}, session ${transport.sessionId}`);
    const token = (await authorization.tokens())?.access_token;
    if (!tokenOnly) await look(client, token !== undefined);
    heading('Good-bye');
    await transport.terminateSession();
    await client.close();
    if (tokenOnly) {
      if (token === undefined) {
        console.error('This gateway needs no token (AUTH_REQUIRED=false).');
        process.exitCode = 1;
        return;
      }
      console.log(token);
    }
  } finally {
    callback.close();
  }
  heading('Everything works.');
}

async function connect(client: Client, authorization: Authorization) {
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

async function look(client: Client, hasUser: boolean): Promise<void> {
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
  for (const uri of hasUser ? ['config://server', 'user://profile'] : ['config://server']) {
    const { contents } = await client.readResource({ uri });
    for (const content of contents) say('text' in content ? content.text : content.uri);
  }
  if (!hasUser) say('user://profile needs a user; this gateway runs without authentication.');
}

const names = (entries: readonly { readonly name: string }[]): string =>
  entries.map(({ name }) => name).join(', ');

function readArguments(args: readonly string[]): { url: URL; tokenOnly: boolean } {
  const [given = DEFAULT_URL, ...more] = args.filter((arg) => arg !== '--token');
  const url = /^https?:\/\//.test(given) && URL.canParse(given) ? new URL(given) : undefined;
  if (url === undefined || more.length > 0) {
    console.error(USAGE);
    process.exit(2);
  }
  if (url.pathname === '/') url.pathname = '/mcp';
  return { url, tokenOnly: args.includes('--token') };
}
