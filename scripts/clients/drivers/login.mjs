// What a program brings for the login of an MCP SDK: a file for what it was given, a loopback
// listener for the redirect, and the browser that the system would open.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';

const FILE = 'login.json';
const REDIRECT_PORT = 8765;
const REDIRECT_URI = `http://127.0.0.1:${REDIRECT_PORT}/callback`;

export function createLogIn() {
  const kept = read();
  const keep = (name) => (value) => {
    kept[name] = value;
    writeFileSync(FILE, JSON.stringify(kept));
  };
  let redirect;
  const provider = {
    redirectUrl: REDIRECT_URI,
    clientMetadata: {
      client_name: 'Postern trial',
      redirect_uris: [REDIRECT_URI],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    },
    state: () => (kept.state ??= randomUUID()),
    clientInformation: () => kept.client,
    saveClientInformation: keep('client'),
    tokens: () => kept.tokens,
    saveTokens: keep('tokens'),
    codeVerifier: () => kept.verifier,
    saveCodeVerifier: keep('verifier'),
    discoveryState: () => kept.discovery,
    saveDiscoveryState: keep('discovery'),
    authorizationServerInformation: () => kept.server,
    saveAuthorizationServerInformation: keep('server'),
    storedState: () => kept.state,
    saveState: keep('state'),
    async redirectToAuthorization(url) {
      redirect = await listenForRedirect();
      spawn('xdg-open', [String(url)], { stdio: 'ignore' });
    },
    invalidateCredentials(scope) {
      if (scope === 'all' || scope === 'client') keep('client')(undefined);
      if (scope === 'all' || scope === 'tokens') keep('tokens')(undefined);
      if (scope === 'all' || scope === 'discovery') keep('discovery')(undefined);
    },
  };
  /** The parameters with which the browser came back. */
  const redirected = async () => (await redirect.visited).searchParams;
  return { provider, redirected };
}

/** Resolves once it listens. */
async function listenForRedirect() {
  const server = createServer();
  const visited = once(server, 'request').then(([request, response]) => {
    response.end('Done.');
    server.close();
    return new URL(request.url, REDIRECT_URI);
  });
  server.listen(REDIRECT_PORT, '127.0.0.1');
  await once(server, 'listening');
  return { visited };
}

function read() {
  try {
    return JSON.parse(readFileSync(FILE, 'utf8'));
  } catch {
    return {};
  }
}
