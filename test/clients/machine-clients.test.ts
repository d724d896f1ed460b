// The official clients log in as themselves, by the providers that they bring for it: nobody is at a browser.
import * as sdk2 from '@modelcontextprotocol/client';
import {
  ClientCredentialsProvider,
  PrivateKeyJwtProvider,
} from '@modelcontextprotocol/sdk/client/auth-extensions.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { expect, test } from 'vitest';
import { useShared } from '../support/lifetimes.ts';
import { fileOf, newKey, SECRET, withSecret } from '../support/oauth/machine-clients.ts';
import { startOwnTokenReplicas } from '../support/oauth/own-token-replicas.ts';

const RSA = newKey('RS256');
const EC = newKey('ES256');

/** The clock is that of the machine: the clients sign by it. */
const own = useShared(async () =>
  startOwnTokenReplicas(
    {},
    {
      file: await fileOf([
        withSecret('ci', { scopes: ['tools:call'] }),
        { id: 'signs', jwks: { keys: [RSA.jwk, EC.jwk] } },
      ]),
    },
  ),
);

const toPem = ({ privateKey }: typeof RSA): string =>
  String(privateKey.export({ type: 'pkcs8', format: 'pem' }));

const expectedIssuer = () => own.mcpUrl.origin;

const PROVIDERS_1 = {
  client_secret_basic: () =>
    new ClientCredentialsProvider({
      clientId: 'ci',
      clientSecret: SECRET,
      expectedIssuer: expectedIssuer(),
    }),
  'client_secret_basic with a scope': () =>
    new ClientCredentialsProvider({
      clientId: 'ci',
      clientSecret: SECRET,
      scope: 'tools:call',
      expectedIssuer: expectedIssuer(),
    }),
  'private_key_jwt, RS256': () =>
    new PrivateKeyJwtProvider({
      clientId: 'signs',
      privateKey: toPem(RSA),
      algorithm: 'RS256',
      expectedIssuer: expectedIssuer(),
    }),
  'private_key_jwt, ES256': () =>
    new PrivateKeyJwtProvider({
      clientId: 'signs',
      privateKey: toPem(EC),
      algorithm: 'ES256',
      expectedIssuer: expectedIssuer(),
    }),
};

const HELLO = [{ type: 'text', text: 'Postern MCP Server: hello' }];
const PING = { name: 'service_ping', arguments: { message: 'hello' } };

test.for(Object.entries(PROVIDERS_1))(
  '§5.11 official client 1.x: logs in as itself by %s, and calls a tool',
  async ([, newProvider]) => {
    const authProvider = newProvider();
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(own.mcpUrl, { authProvider }));
    expect((await client.callTool(PING)).content).toEqual(HELLO);
    expect(authProvider.tokens()?.access_token).toMatch(/^pst_/);
    expect(authProvider.tokens()).not.toHaveProperty('refresh_token');
    await client.close();
  },
);

const PROVIDERS_2 = {
  client_secret_basic: () =>
    new sdk2.ClientCredentialsProvider({
      clientId: 'ci',
      clientSecret: SECRET,
      expectedIssuer: expectedIssuer(),
    }),
  'private_key_jwt, RS256': () =>
    new sdk2.PrivateKeyJwtProvider({
      clientId: 'signs',
      privateKey: toPem(RSA),
      algorithm: 'RS256',
      expectedIssuer: expectedIssuer(),
    }),
  'private_key_jwt, ES256': () =>
    new sdk2.PrivateKeyJwtProvider({
      clientId: 'signs',
      privateKey: toPem(EC),
      algorithm: 'ES256',
      expectedIssuer: expectedIssuer(),
    }),
};

test.for(Object.entries(PROVIDERS_2))(
  '§5.11 official client 2.x: logs in as itself by %s, and calls a tool',
  async ([, newProvider]) => {
    const authProvider = newProvider();
    const client = new sdk2.Client({ name: 'test', version: '1' });
    await client.connect(new sdk2.StreamableHTTPClientTransport(own.mcpUrl, { authProvider }));
    expect((await client.callTool(PING)).content).toEqual(HELLO);
    expect(authProvider.tokens()?.access_token).toMatch(/^pst_/);
    await client.close();
  },
);

test('§5.11 official client 1.x: a wrong secret is told as such, and no browser opens', async () => {
  const authProvider = new ClientCredentialsProvider({
    clientId: 'ci',
    clientSecret: 'wrong',
    expectedIssuer: expectedIssuer(),
  });
  const client = new Client({ name: 'test', version: '1' });
  const transport = new StreamableHTTPClientTransport(own.mcpUrl, { authProvider });
  await expect(client.connect(transport)).rejects.toThrow(/could not be authenticated/);
});
