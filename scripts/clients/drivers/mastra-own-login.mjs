// Its own login never registers a client: this does so in its place.
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { MCPClient, MCPOAuthClientProvider } from '@mastra/mcp';
import { run } from './errand.mjs';

const FILE = 'login.json';
const redirectUrl = 'http://127.0.0.1:5533/oauth/callback';
const metadata = { client_name: 'Postern trial', redirect_uris: [redirectUrl] };

await run(async (url) => {
  const kept = read();
  const storage = {
    get: (key) => kept[key],
    set(key, value) {
      kept[key] = value;
      writeFileSync(FILE, JSON.stringify(kept));
    },
    delete(key) {
      delete kept[key];
    },
  };
  if (kept.client_id === undefined) storage.set('client_id', await register(url));
  const authProvider = new MCPOAuthClientProvider({
    redirectUrl,
    clientMetadata: metadata,
    clientInformation: { client_id: kept.client_id },
    storage,
    onRedirectToAuthorization: (target) => void spawn('xdg-open', [String(target)]),
  });
  const mcp = new MCPClient({ servers: { postern: { url, authProvider } } });
  if ((await authProvider.tokens()) === undefined) await mcp.authenticate('postern');
  const tools = await mcp.listTools();
  return {
    list: () => Object.keys(tools),
    call: () => tools.postern_service_ping.execute({ message: 'hello' }, {}),
    close: () => mcp.disconnect(),
  };
});

async function register(url) {
  const answer = await fetch(new URL('/oauth/register', url), {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(metadata),
  });
  return (await answer.json()).client_id;
}

function read() {
  try {
    return JSON.parse(readFileSync(FILE, 'utf8'));
  } catch {
    return {};
  }
}
