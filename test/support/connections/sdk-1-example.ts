// The OAuth example of the official SDK 1.x as it comes: its demo provider, its router, its bearer check.
import { DemoInMemoryAuthProvider } from '@modelcontextprotocol/sdk/examples/server/demoInMemoryOAuthProvider.js';
import { requireBearerAuth } from '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js';
import {
  createOAuthMetadata,
  getOAuthProtectedResourceMetadataUrl,
  mcpAuthMetadataRouter,
  mcpAuthRouter,
} from '@modelcontextprotocol/sdk/server/auth/router.js';
import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { freePort } from '../gateway/ports.ts';
import { listenOnLoopback } from '../upstreams/listen.ts';
import { createGate } from './gate.ts';
import { createProtectedServer1 } from './protected-tools.ts';

export interface Sdk1Example {
  readonly url: string;
  close(): Promise<void>;
}

export async function startSdk1Example(): Promise<Sdk1Example> {
  const [mcpPort, authPort] = [await freePort(), await freePort()];
  const mcpServerUrl = new URL(`http://localhost:${mcpPort}/mcp`);
  const issuerUrl = new URL(`http://localhost:${authPort}`);
  const provider = new DemoInMemoryAuthProvider();
  const scopesSupported = ['mcp:tools'];

  const auth = createMcpExpressApp();
  auth.use(mcpAuthRouter({ provider, issuerUrl, scopesSupported }));

  const mcp = createMcpExpressApp();
  mcp.use(
    mcpAuthMetadataRouter({
      oauthMetadata: createOAuthMetadata({ provider, issuerUrl, scopesSupported }),
      resourceServerUrl: mcpServerUrl,
      scopesSupported,
      resourceName: 'MCP Demo Server',
    }),
  );
  const guard = requireBearerAuth({
    verifier: provider,
    requiredScopes: [],
    resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(mcpServerUrl),
  });
  mcp.post('/mcp', guard, async (req, res) => {
    const transport = new StreamableHTTPServerTransport({});
    const server = createProtectedServer1(createGate());
    res.on('close', () => void server.close());
    await server.connect(transport);
    await transport.handleRequest(req, res, req.body);
  });
  mcp.all('/mcp', guard, (_req, res) => void res.writeHead(405).end());

  const listening = [await listenOnLoopback(mcp, mcpPort), await listenOnLoopback(auth, authPort)];
  return {
    url: mcpServerUrl.href,
    async close() {
      for (const one of listening) await one.close();
    },
  };
}
