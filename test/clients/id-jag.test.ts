// Enterprise-Managed Authorization (ID-JAG) with the official clients: one token exchange at the identity provider, one token request
// here, and nobody at a browser.
import {
  Client as Client2,
  CrossAppAccessProvider,
  exchangeJwtAuthGrant,
  requestJwtAuthorizationGrant,
  StreamableHTTPClientTransport as Transport2,
} from '@modelcontextprotocol/client';
import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js';
import { expect, test } from 'vitest';
import { useShared } from '../support/lifetimes.ts';
import { ID_JAG_ENV, JWT_BEARER } from '../support/oauth/id-jag.ts';
import { fileOf, SECRET, withSecret } from '../support/oauth/machine-clients.ts';
import { startOwnTokenReplicas } from '../support/oauth/own-token-replicas.ts';
import { startIdJagProvider } from '../support/providers/id-jag-provider.ts';

const AT_PROVIDER = { id: 'agent-at-provider', secret: 'secret-at-provider' };

const own = useShared(async () => {
  const replicas = await startOwnTokenReplicas(ID_JAG_ENV, {
    file: await fileOf([withSecret('agent', { scopes: ['openid', 'profile'] })]),
  });
  const provider = await startIdJagProvider({
    issuer: replicas.provider.issuer,
    clock: replicas.clock,
    client: { ...AT_PROVIDER, idAtServer: 'agent' },
    approved: [replicas.mcpUrl.origin],
  });
  return {
    ...replicas,
    idp: provider,
    async close() {
      await provider.close();
      await replicas.close();
    },
  };
});

const HELLO = [{ type: 'text', text: 'Postern MCP Server: hello' }];
const PING = { name: 'service_ping', arguments: { message: 'hello' } };

interface Asked {
  readonly audience: string | URL;
  readonly resource: string | URL;
  readonly scope?: string | undefined;
}

/** What both do at the identity provider. */
const exchange = async ({ audience, resource, scope }: Asked): Promise<string> => {
  const { jwtAuthGrant } = await requestJwtAuthorizationGrant({
    tokenEndpoint: own.idp.tokenUrl,
    audience,
    resource,
    idToken: await own.idp.logIn({ sub: 'ada' }),
    clientId: AT_PROVIDER.id,
    clientSecret: AT_PROVIDER.secret,
    ...(scope !== undefined && { scope }),
  });
  return jwtAuthGrant;
};

test('§13.7 official client 2.x: its CrossAppAccessProvider logs a user in by the identity provider alone', async () => {
  const authProvider = new CrossAppAccessProvider({
    assertion: ({ authorizationServerUrl, resourceUrl, scope }) =>
      exchange({ audience: authorizationServerUrl, resource: resourceUrl, scope }),
    clientId: 'agent',
    clientSecret: SECRET,
    expectedIssuer: own.mcpUrl.origin,
  });
  const client = new Client2({ name: 'test', version: '1' });
  await client.connect(new Transport2(own.mcpUrl, { authProvider }));
  expect((await client.callTool(PING)).content).toEqual(HELLO);
  expect(authProvider.tokens()).toMatchObject({
    access_token: expect.stringMatching(/^pst_/),
    scope: 'openid profile',
  });
  expect(authProvider.tokens()).not.toHaveProperty('refresh_token');
  await client.close();
});

test('§13.7 official client 2.x: its exchangeJwtAuthGrant takes the answer, by header and by body, and an assertion once', async () => {
  const exchangeHere = (jwtAuthGrant: string, authMethod?: 'client_secret_post') =>
    exchangeJwtAuthGrant({
      tokenEndpoint: `${own.mcpUrl.origin}/oauth/token`,
      jwtAuthGrant,
      clientId: 'agent',
      clientSecret: SECRET,
      ...(authMethod && { authMethod }),
    });
  const asked = { audience: own.mcpUrl.origin, resource: own.mcpUrl };
  const first = await exchange(asked);
  expect((await exchangeHere(first)).access_token).toMatch(/^pst_/);
  await expect(exchangeHere(first)).rejects.toThrow(/invalid_grant/);
  const second = await exchangeHere(await exchange(asked), 'client_secret_post');
  expect(second.access_token).toMatch(/^pst_/);
});

/** Version 1 brings none for this grant: this is how an application writes one, by the same interface. */
function createProvider1(): OAuthClientProvider {
  let tokens: OAuthTokens | undefined;
  return {
    redirectUrl: undefined,
    clientMetadata: {
      redirect_uris: [],
      grant_types: [JWT_BEARER],
      token_endpoint_auth_method: 'client_secret_basic',
    },
    clientInformation: () => ({
      client_id: 'agent',
      client_secret: SECRET,
      issuer: own.mcpUrl.origin,
    }),
    tokens: () => tokens,
    saveTokens(given) {
      tokens = given;
    },
    redirectToAuthorization() {
      throw new Error('nobody is at a browser');
    },
    saveCodeVerifier() {},
    codeVerifier() {
      throw new Error('there is no code');
    },
    async prepareTokenRequest() {
      const asked = { audience: own.mcpUrl.origin, resource: own.mcpUrl };
      return new URLSearchParams({ grant_type: JWT_BEARER, assertion: await exchange(asked) });
    },
  };
}

test('§13.7 official client 1.x: an application’s own provider logs a user in, too', async () => {
  const authProvider = createProvider1();
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(own.mcpUrl, { authProvider }));
  expect((await client.callTool(PING)).content).toEqual(HELLO);
  await client.close();
});
