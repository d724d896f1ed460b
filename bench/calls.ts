// The call that is measured, in either era, and a session to make it in.
import type { Era } from './contestants.ts';

/** What every contestant has to answer to the call. */
export const EXPECTED_CONTENT = [{ type: 'text', text: 'Postern MCP Server: hello' }];

export interface Call {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** A header that differs from call to call under load. */
  readonly variedHeader?: VariedHeader;
  /** The body of the request with this id. */
  renderBody(id: number | string): string;
}

export interface VariedHeader {
  readonly name: string;
  /** How many values there are. */
  readonly count: number;
  /** The value as a Lua expression of `n`, which goes from 0 to `count` - 1 again and again. */
  readonly lua: string;
}

const PARAMS = { name: 'service_ping', arguments: { message: 'hello' } };

const STATELESS_PARAMS = {
  ...PARAMS,
  _meta: {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  },
};

/** The call in the given era; for the era with sessions, in a session that is opened for it. */
export async function createCall(url: string, token: string, era: Era): Promise<Call> {
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    authorization: `Bearer ${token}`,
  };
  if (era === 'stateless') {
    return {
      url,
      headers: {
        ...headers,
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': PARAMS.name,
      },
      renderBody: (id) => renderCall(id, STATELESS_PARAMS),
    };
  }
  const session = await openSession(url, headers);
  return {
    url,
    headers: { ...headers, 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' },
    renderBody: (id) => renderCall(id, PARAMS),
  };
}

const renderCall = (id: number | string, params: object) =>
  JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params });

async function openSession(url: string, headers: Record<string, string>): Promise<string> {
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'bench', version: '1' },
  };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
  const response = await fetch(url, { method: 'POST', headers, body });
  const session = response.headers.get('mcp-session-id');
  if (session === null) {
    throw new Error(`initialize at ${url} answered ${response.status}: ${await response.text()}`);
  }
  await fetch(url, {
    method: 'POST',
    headers: { ...headers, 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' },
    body: JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }),
  });
  return session;
}
