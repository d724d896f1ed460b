// The MCP endpoint behind the guard of a protected server, in either era.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { createMcpHandler } from '@modelcontextprotocol/server';
import type { Gate } from './gate.ts';
import {
  createProtectedServer1,
  createProtectedServer2,
  type TokenInfo,
} from './protected-tools.ts';

/** `sse`: the transport of 2024-11-05. */
export type Era = 'session' | 'stateless' | 'sse';

export interface McpEndpoint {
  answer(
    req: IncomingMessage & { auth?: TokenInfo },
    res: ServerResponse,
    body: unknown,
  ): Promise<void>;
  /** Forgets all sessions, and says so from now on by this status. */
  loseSessions(status: number): void;
}

export function createMcpEndpoint(era: Era, gate: Gate): McpEndpoint {
  if (era === 'sse') return createSse(gate);
  return era === 'session' ? createSessions(gate) : createStateless(gate);
}

function createSse(gate: Gate): McpEndpoint {
  const transports = new Map<string | null, SSEServerTransport>();
  return {
    async answer(req, res, body) {
      if (req.method === 'GET') {
        const transport = new SSEServerTransport('/mcp', res);
        transports.set(transport.sessionId, transport);
        await createProtectedServer1(gate).connect(transport);
        return;
      }
      const { searchParams } = new URL(req.url ?? '', 'http://localhost');
      await transports.get(searchParams.get('sessionId'))?.handlePostMessage(req, res, body);
    },
    loseSessions: () => transports.clear(),
  };
}

function createSessions(gate: Gate): McpEndpoint {
  const transports = new Map<string, StreamableHTTPServerTransport>();
  let unknownStatus = 404;

  async function openSession(): Promise<StreamableHTTPServerTransport> {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void transports.set(id, transport),
      onsessionclosed: (id) => void transports.delete(id),
    });
    await createProtectedServer1(gate).connect(transport);
    return transport;
  }

  const answer: McpEndpoint['answer'] = async (req, res, body) => {
    const id = req.headers['mcp-session-id'];
    const known = typeof id === 'string' ? transports.get(id) : undefined;
    if (id !== undefined && known === undefined) {
      const error = { code: -32001, message: 'Session not found' };
      res.writeHead(unknownStatus, { 'content-type': 'application/json' });
      res.end(JSON.stringify({ jsonrpc: '2.0', error, id: null }));
      return;
    }
    await (known ?? (await openSession())).handleRequest(req, res, body);
  };

  return {
    answer,
    loseSessions(status) {
      unknownStatus = status;
      transports.clear();
    },
  };
}

function createStateless(gate: Gate): McpEndpoint {
  const handle = toNodeHandler(
    createMcpHandler(() => createProtectedServer2(gate), { legacy: 'reject' }),
  );
  return {
    async answer(req, res, body) {
      await handle(Object.assign(req, { method: req.method ?? '', url: req.url ?? '' }), res, body);
    },
    loseSessions() {},
  };
}
