// npm run demo [url]: an official MCP client goes the whole way, from a refused call to the end
// of its session, and prints what it sees. With --token it logs in and prints the access token.
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { readBaseUrl } from '../src/cli/connect.ts';
import { type Authorization, createAuthorization } from './demo/authorization.ts';
import { listenForCallback } from './demo/callback.ts';
import { explainError } from './demo/explain-error.ts';
import { exploreCatalog } from './demo/explore-catalog.ts';
import { createTranscript } from './demo/transcript.ts';
import { readOptions } from './read-options.ts';

const USAGE = `Usage: npm run demo -- [--token] [url]

An official MCP client goes the whole way at the gateway of this address (default
BASE_URL or PORT of the environment or .env, else http://localhost:3000).

  --token    log in, and print only the access token on standard output
  --help     this text`;

const { url, tokenOnly } = readArguments();
// A token is for $(…): everything else goes where it does not disturb.
const { printHeading, printLine, noteRequest, fetch } = createTranscript(
  tokenOnly ? console.error : console.log,
);

demo().catch((error: unknown) => {
  console.error(`\n${explainError(error, url)}`);
  process.exitCode = 1;
});

async function demo(): Promise<void> {
  const callback = await listenForCallback();
  try {
    printHeading(`Connecting to ${url.href}`);
    const authorization = createAuthorization({ callback, name: 'ada', printLine, noteRequest });
    const client = new Client({ name: 'postern-demo', version: '1.0.0' });
    const transport = await connect(client, authorization);
    const server = client.getServerVersion();
    printLine(`${server?.name} ${server?.version}, session ${transport.sessionId}`);
    const token = (await authorization.tokens())?.access_token;
    if (!tokenOnly)
      await exploreCatalog(client, { printHeading, printLine, hasUser: token !== undefined });
    printHeading('Good-bye');
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
  printHeading('Everything works.');
}

async function connect(client: Client, authorization: Authorization) {
  const createTransport = () =>
    new StreamableHTTPClientTransport(url, { authProvider: authorization, fetch });
  const first = createTransport();
  try {
    await client.connect(first as Transport);
    return first;
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
  }
  const code = await authorization.waitForCode();
  await first.finishAuth(code);
  const second = createTransport();
  await client.connect(second as Transport);
  return second;
}

function readArguments(): { url: URL; tokenOnly: boolean } {
  const { values, positionals } = readOptions(USAGE, {
    allowPositionals: true,
    options: { token: { type: 'boolean', default: false } },
  });
  const [given = readBaseUrl(process.env), ...more] = positionals;
  const target = /^https?:\/\//.test(given) && URL.canParse(given) ? new URL(given) : undefined;
  if (target === undefined || more.length > 0) {
    console.error(`The demo takes one address that begins with http:// or https://.\n\n${USAGE}`);
    process.exit(2);
  }
  if (target.pathname === '/') target.pathname = '/mcp';
  return { url: target, tokenOnly: values.token };
}
