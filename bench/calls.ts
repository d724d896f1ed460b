// The call that is measured, in either era, and a session to make it in.
import { isDeepStrictEqual } from 'node:util';
import type { Era } from './contestants.ts';

/** What is asked, and what is right of the result. */
export interface Work {
  readonly method: 'tools/call' | 'tools/list';
  readonly params: {
    readonly name?: string;
    readonly arguments?: object;
    readonly _meta?: object;
  };
  isRight(result: unknown): boolean;
}

/** The built-in tool, and what stands for it in other contestants. */
const PING: Work = {
  method: 'tools/call',
  params: { name: 'service_ping', arguments: { message: 'hello' } },
  isRight: hasContent([{ type: 'text', text: 'Postern MCP Server: hello' }]),
};

export function hasContent(expected: unknown): Work['isRight'] {
  return (result) =>
    typeof result === 'object' &&
    result !== null &&
    'content' in result &&
    isDeepStrictEqual(result.content, expected) &&
    !('isError' in result && result.isError === true);
}

export interface Call {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** A header that differs from call to call under load. */
  readonly variedHeader?: VariedHeader;
  /** Who calls, in turn under load: the headers that differ between them. */
  readonly callers?: readonly Readonly<Record<string, string>>[];
  /** The body of the request with this id. */
  renderBody(id: number | string): string;
  isRight: Work['isRight'];
}

export interface VariedHeader {
  readonly name: string;
  /** How many values there are. */
  readonly count: number;
  /** The value as a Lua expression of `n`, which goes from 0 to `count` - 1 again and again. */
  readonly lua: string;
}

const STATELESS_META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** The call in the given era; for the era with sessions, in a session that is opened for it. */
export async function createCall(
  url: string,
  token: string,
  era: Era,
  { method, params, isRight }: Work = PING,
): Promise<Call> {
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
        'mcp-method': method,
        ...(params.name !== undefined && { 'mcp-name': params.name }),
      },
      renderBody: (id) => renderRequest(id, method, { ...params, _meta: STATELESS_META }),
      isRight,
    };
  }
  const session = await openSession(url, headers);
  return {
    url,
    headers: { ...headers, 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' },
    renderBody: (id) => renderRequest(id, method, params),
    isRight,
  };
}

const renderRequest = (id: number | string, method: string, params: object) =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params });

export async function openSession(url: string, headers: Record<string, string>): Promise<string> {
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
