// What a protected server offers, by the official SDKs of both eras: tools that tell for whom they were called.
import { McpServer as McpServer1 } from '@modelcontextprotocol/sdk/server/mcp.js';
import { McpServer } from '@modelcontextprotocol/server';
import type { Gate } from './gate.ts';

/** The tool that wants a scope of its own, and which. */
export const WIDER = { tool: 'write', scope: 'mcp:write' } as const;

/** What the guard in front of it found out of the token. */
export interface TokenInfo {
  readonly token: string;
  readonly clientId: string;
  readonly scopes: string[];
  readonly extra: { readonly account: string };
}

interface SeenInfo {
  readonly extra?: Record<string, unknown>;
}

const say = (text: unknown) => ({ content: [{ type: 'text' as const, text: String(text) }] });

const DESCRIPTIONS = {
  whoami: 'Says for which account it was called.',
  slow: 'Answers when the test lets it.',
  [WIDER.tool]: 'Needs a scope of its own.',
};

/** One for each session. */
export function createProtectedServer1(gate: Gate): McpServer1 {
  const server = new McpServer1({ name: 'protected-1', version: '1.0.0' });
  const sayAccount = (info: SeenInfo | undefined) => say(info?.extra?.account);
  server.registerTool('whoami', { description: DESCRIPTIONS.whoami }, ({ authInfo }) =>
    sayAccount(authInfo),
  );
  server.registerTool('slow', { description: DESCRIPTIONS.slow }, async ({ authInfo, signal }) => {
    await gate.wait(signal);
    return sayAccount(authInfo);
  });
  server.registerTool(WIDER.tool, { description: DESCRIPTIONS.write }, ({ authInfo }) =>
    say(`written by ${authInfo?.extra?.account}`),
  );
  return server;
}

/** One for each request. */
export function createProtectedServer2(gate: Gate): McpServer {
  const server = new McpServer({ name: 'protected-2', version: '2.0.0' });
  const sayAccount = (info: SeenInfo | undefined) => say(info?.extra?.account);
  server.registerTool('whoami', { description: DESCRIPTIONS.whoami }, ({ http }) =>
    sayAccount(http?.authInfo),
  );
  server.registerTool('slow', { description: DESCRIPTIONS.slow }, async ({ http, mcpReq }) => {
    await gate.wait(mcpReq.signal);
    return sayAccount(http?.authInfo);
  });
  server.registerTool(WIDER.tool, { description: DESCRIPTIONS.write }, ({ http }) =>
    say(`written by ${http?.authInfo?.extra?.account}`),
  );
  return server;
}
