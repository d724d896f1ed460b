// The call that is measured, in either era.
import type { Call } from './wrk.ts';

const PARAMS = { name: 'service_ping', arguments: { message: 'hello' } };

const createHeaders = (token: string) => ({
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  authorization: `Bearer ${token}`,
});

const createCallBody = (params: object) =>
  JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/call', params });

/** In a session that is opened for it. */
export async function createSessionCall(url: string, token: string): Promise<Call> {
  const headers = createHeaders(token);
  const initialize = { protocolVersion: '2025-11-25', capabilities: {} };
  const opened = await fetch(url, {
    method: 'POST',
    headers,
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: initialize }),
  });
  const session = opened.headers.get('mcp-session-id');
  if (session === null) throw new Error(`initialize answered ${opened.status}`);
  return {
    url,
    headers: { ...headers, 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' },
    body: createCallBody(PARAMS),
  };
}

export function createStatelessCall(url: string, token: string): Call {
  return {
    url,
    headers: {
      ...createHeaders(token),
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': PARAMS.name,
    },
    body: createCallBody({
      ...PARAMS,
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    }),
  };
}
