// A server of the official SDK 2 with its own check of bearer tokens, and the development provider as its authorization server.
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
  createMcpHandler,
  getOAuthProtectedResourceMetadataUrl,
  McpServer,
  OAuthError,
  OAuthErrorCode,
  oauthMetadataResponse,
  requireBearerAuth,
} from '@modelcontextprotocol/server';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { freePort } from '../gateway/ports.ts';
import { startProvider } from '../oauth/provider.ts';
import { listenOnLoopback } from '../upstreams/listen.ts';

export interface Sdk2Example {
  readonly url: string;
  /** At which people have accounts: any name logs in. */
  readonly issuer: string;
  /** It registers nobody. */
  readonly clientId: string;
  close(): Promise<void>;
}

/** Each tool says its name and for whom it was called. */
export async function startSdk2Example(tools: readonly string[]): Promise<Sdk2Example> {
  const port = await freePort();
  const resourceServerUrl = new URL(`http://127.0.0.1:${port}/mcp`);
  const provider = await startProvider({ gatewayUrl: resourceServerUrl.origin });
  const { issuer } = provider;
  const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));
  const metadata = await fetch(`${issuer}/.well-known/openid-configuration`);
  const oauthMetadata = JSON.parse(await metadata.text());

  const check = requireBearerAuth({
    requiredScopes: [],
    expectedResource: resourceServerUrl,
    resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(resourceServerUrl),
    verifier: {
      async verifyAccessToken(token) {
        const { payload } = await jwtVerify(token, keys, { issuer }).catch(() => {
          throw new OAuthError(OAuthErrorCode.InvalidToken, 'This token is not good here.');
        });
        return {
          token,
          clientId: String(payload.client_id),
          scopes: [],
          expiresAt: payload.exp ?? 0,
          resource: new URL(String(payload.aud)),
          extra: { account: payload.sub },
        };
      },
    },
  });
  const handler = createMcpHandler(() => createTools(tools));
  const handle = toNodeHandler({
    async fetch(request) {
      const document = oauthMetadataResponse(request, {
        oauthMetadata,
        resourceServerUrl,
        scopesSupported: ['openid'],
      });
      if (document !== undefined) return document;
      const authInfo = await check(request);
      return authInfo instanceof Response ? authInfo : handler.fetch(request, { authInfo });
    },
  });
  const listening = await listenOnLoopback((req, res) => {
    const { method = '', url = '' } = req;
    void handle(Object.assign(req, { method, url }), res);
  }, port);
  return {
    url: resourceServerUrl.href,
    issuer,
    clientId: 'gateway',
    async close() {
      await listening.close();
      await provider.close();
    },
  };
}

function createTools(names: readonly string[]): McpServer {
  const server = new McpServer({ name: 'sdk-2', version: '2.0.0' });
  for (const name of names) {
    server.registerTool(name, { description: `Is called ${name}.` }, ({ http }) => ({
      content: [{ type: 'text', text: `${name} of ${http?.authInfo?.extra?.account}` }],
    }));
  }
  return server;
}
