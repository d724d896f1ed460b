// Requests to a process under test, seen down to the connection.
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { INITIALIZE_REQUEST } from './gateway.ts';

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
}

export interface HalfSent {
  /** Resolves to the answer, whether the rest is sent or not. */
  answer(): Promise<HttpAnswer>;
  /** Sends the rest; resolves to the answer. */
  finish(): Promise<HttpAnswer>;
}

/** A POST of JSON of which the service has the head and half of the body, and waits for the rest. */
export async function postHalf(port: number, path: string, body: unknown): Promise<HalfSent> {
  const bytes = Buffer.from(JSON.stringify(body));
  const half = Math.floor(bytes.length / 2);
  const sent = request({
    ...{ host: '127.0.0.1', port, path, method: 'POST' },
    headers: {
      'Content-Type': 'application/json',
      'Content-Length': bytes.length,
      Expect: '100-continue',
    },
  });
  const answered = once(sent, 'response');
  // Looked at by `finish`; a test that ends before must not fail by it.
  answered.catch(() => {});
  sent.flushHeaders();
  // The service has read the head.
  await once(sent, 'continue');
  sent.write(bytes.subarray(0, half));
  async function readAnswer() {
    const [answer] = (await answered) as [IncomingMessage];
    let text = '';
    for await (const chunk of answer.setEncoding('utf8')) text += chunk;
    return { status: answer.statusCode ?? 0, headers: answer.headers, text };
  }
  return {
    answer: readAnswer,
    finish() {
      sent.end(bytes.subarray(half));
      return readAnswer();
    },
  };
}

/** Whether nobody listens at the port any more. */
export const isRefused = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(false);
    });
    socket.once('error', () => resolve(true));
  });

export interface McpOptions {
  readonly session?: string;
  readonly token?: string | undefined;
}

/** POST /mcp. */
export const rpc = (url: string, message: unknown, options: McpOptions = {}): Promise<Response> =>
  fetch(`${url}/mcp`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headersOf(options) },
    body: JSON.stringify(message),
  });

/** tools/list in a session: the status says whether the session is alive. */
export const checkSession = async (url: string, options: McpOptions): Promise<number> => {
  const answer = await rpc(url, { jsonrpc: '2.0', id: 2, method: 'tools/list' }, options);
  await answer.arrayBuffer();
  return answer.status;
};

export const endSession = async (url: string, options: McpOptions): Promise<number> =>
  (await fetch(`${url}/mcp`, { method: 'DELETE', headers: headersOf(options) })).status;

/** initialize; resolves to the session's id. */
export async function openSession(url: string, token?: string): Promise<string> {
  const answer = await rpc(url, INITIALIZE_REQUEST, { token });
  const text = await answer.text();
  const session = answer.headers.get('mcp-session-id');
  if (session === null) throw new Error(`initialize answered ${answer.status}: ${text}`);
  return session;
}

const headersOf = ({ session, token }: McpOptions): Record<string, string> => ({
  ...(session !== undefined && { 'mcp-session-id': session }),
  ...(token !== undefined && { Authorization: `Bearer ${token}` }),
});
