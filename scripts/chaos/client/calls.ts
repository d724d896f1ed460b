// Calls of /mcp with the one answer that is right for each.
import { randomUUID } from 'node:crypto';
import { type JsonObject, parseObject, readObject } from './refusals.ts';
import type { Answer, ClientRequest } from './requester.ts';

export interface Call {
  readonly what: string;
  readonly request: ClientRequest;
  /** The mistake in an answer; undefined if it is the right one. */
  findFault(answer: Answer): string | undefined;
}

const SESSION_VERSION = '2025-11-25';
const STATELESS_VERSION = '2026-07-28';

let lastId = 0;

const createHeaders = (token: string | undefined, session?: string) => ({
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  ...(token !== undefined && { authorization: `Bearer ${token}` }),
  ...(session !== undefined && {
    'mcp-session-id': session,
    'mcp-protocol-version': SESSION_VERSION,
  }),
});

export function createInitialize(token: string): Call {
  const id = ++lastId;
  const params = {
    protocolVersion: SESSION_VERSION,
    capabilities: {},
    clientInfo: { name: 'chaos', version: '1' },
  };
  return {
    what: 'initialize',
    request: createPost(createHeaders(token), { id, method: 'initialize', params }),
    findFault(answer) {
      if (typeof answer.headers['mcp-session-id'] !== 'string') return 'no session id';
      return findResultFault(answer, id, (result) => result.protocolVersion === SESSION_VERSION);
    },
  };
}

/** `service_ping` with a message that no other call has. */
export function createPing(token: string, session: string): Call {
  const { id, params, isEcho } = createPingParts();
  return {
    what: 'tools/call',
    request: createPost(createHeaders(token, session), { id, method: 'tools/call', params }),
    findFault: (answer) => findResultFault(answer, id, isEcho),
  };
}

export function createStatelessPing(token: string): Call {
  const { id, params, isEcho } = createPingParts();
  const headers = {
    ...createHeaders(token),
    'mcp-protocol-version': STATELESS_VERSION,
    'mcp-method': 'tools/call',
    'mcp-name': params.name,
  };
  const meta = {
    'io.modelcontextprotocol/protocolVersion': STATELESS_VERSION,
    'io.modelcontextprotocol/clientInfo': { name: 'chaos', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  return {
    what: 'stateless tools/call',
    request: createPost(headers, { id, method: 'tools/call', params: { ...params, _meta: meta } }),
    findFault: (answer) => findResultFault(answer, id, isEcho),
  };
}

/** A session of somebody else's, or one that has ended: for this user it does not exist. */
export function createCallOfNoSession(what: string, token: string, session: string): Call {
  const { id, params } = createPingParts();
  return {
    what,
    request: createPost(createHeaders(token, session), { id, method: 'tools/call', params }),
    findFault: (answer) => findErrorFault(answer, 404, 'session_not_found'),
  };
}

export function createUnauthorizedCall(reason: string, token: string | undefined): Call {
  const { id, params } = createPingParts();
  return {
    what: `call with ${reason}`,
    request: createPost(createHeaders(token, randomUUID()), { id, method: 'tools/call', params }),
    findFault: (answer) => findErrorFault(answer, 401, reason),
  };
}

export const createDelete = (token: string, session: string): Call => ({
  what: 'DELETE',
  request: { method: 'DELETE', path: '/mcp', headers: createHeaders(token, session) },
  findFault: ({ status, text }) =>
    status === 204 && text === '' ? undefined : `${status} ${text.slice(0, 200)}`,
});

function createPingParts() {
  const id = ++lastId;
  const message = `message ${randomUUID()}`;
  return {
    id,
    params: { name: 'service_ping', arguments: { message } },
    isEcho(result: JsonObject): boolean {
      const [item]: unknown[] = Array.isArray(result.content) ? result.content : [];
      const text = typeof item === 'object' && item !== null && 'text' in item ? item.text : '';
      return typeof text === 'string' && text.endsWith(`: ${message}`);
    },
  };
}

const createPost = (headers: Readonly<Record<string, string>>, message: object): ClientRequest => ({
  method: 'POST',
  path: '/mcp',
  headers,
  body: JSON.stringify({ jsonrpc: '2.0', ...message }),
});

function findResultFault(
  { status, text }: Answer,
  id: number,
  isRight: (result: JsonObject) => boolean,
): string | undefined {
  const body = parseObject(text);
  const result = body && readObject(body, 'result');
  if (status === 200 && body?.id === id && result && isRight(result)) return undefined;
  return `not the answer to message ${id}: ${status} ${text.slice(0, 300)}`;
}

function findErrorFault({ status, text }: Answer, expected: number, reason: string) {
  const body = parseObject(text);
  const error = body && readObject(body, 'error');
  const data = error && readObject(error, 'data');
  if (status === expected && data?.reason === reason) return undefined;
  return `not ${expected} ${reason}: ${status} ${text.slice(0, 300)}`;
}
