// npm run demo [url]: an official MCP client goes the whole way, from a refused call to the end
// of its session, and says what it sees. With --token it logs in and prints the access token.
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { type Authorization, createAuthorization } from './demo/authorization.ts';
import { listenForCallback } from './demo/callback.ts';
import { explain } from './demo/explain.ts';
import { look } from './demo/look.ts';
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
    if (!tokenOnly) await look(client, { heading, say, hasUser: token !== undefined });
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
