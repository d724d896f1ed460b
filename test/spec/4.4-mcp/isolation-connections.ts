// Two ways to have several requests on their way at once: one connection, or many.
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import type { TestResponse } from '../../support/gateway/gateway.ts';

export type Post = (
  headers: Readonly<Record<string, string>>,
  body: string,
) => Promise<Omit<TestResponse, 'json'>>;

export interface Connections {
  /** POST /mcp. */
  readonly post: Post;
  /** @throws when there came anything that is no part of an answer. */
  close(): void;
}

/** As many connections as there are requests on their way, kept alive. */
export function connectMany(port: number, host: string): Connections {
  const agent = new Agent({ keepAlive: true });
  return {
    post: (headers, body) =>
      new Promise((resolve, reject) => {
        const own = { host, 'content-type': 'application/json', ...headers };
        const options = { host: '127.0.0.1', port, path: '/mcp', method: 'POST', agent };
        const sent = request({ ...options, headers: own }, (answer) => {
          let text = '';
          answer.setEncoding('utf8').on('data', (piece: string) => {
            text += piece;
          });
          answer.on('error', reject);
          answer.on('end', () => {
            const all = answer.headers as TestResponse['headers'];
            resolve({ status: answer.statusCode ?? 0, headers: all, text });
          });
        });
        sent.on('error', reject);
        sent.end(body);
      }),
    close: () => agent.destroy(),
  };
}

interface Waiting {
  resolve(answer: Omit<TestResponse, 'json'>): void;
  reject(cause: Error): void;
}

/** One connection: answers come in the order of the requests (RFC 9112 §9.3.2). */
export function connectPipelined(port: number, host: string): Connections {
  const waiting: Waiting[] = [];
  let received = '';
  const socket = connect(port, '127.0.0.1');
  // One character for each byte, as lengths count them.
  socket.setEncoding('latin1').on('data', (text: string) => {
    received += text;
    while (waiting.length > 0) {
      const taken = takeAnswer(received);
      if (taken === undefined) return;
      received = taken.rest;
      waiting.shift()?.resolve(taken.answer);
    }
  });
  socket.on('close', () => {
    for (const { reject } of waiting.splice(0)) reject(new Error('The connection was closed.'));
  });
  socket.on('error', () => {});

  return {
    post: (headers, body) =>
      new Promise((resolve, reject) => {
        waiting.push({ resolve, reject });
        const all = {
          host,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          ...headers,
        };
        const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
        socket.write(`POST /mcp HTTP/1.1\r\n${lines.join('')}\r\n${body}`);
      }),
    close() {
      socket.destroy();
      if (received !== '') throw new Error(`This was no answer: ${received}`);
    },
  };
}

interface Taken {
  readonly answer: Omit<TestResponse, 'json'>;
  readonly rest: string;
}

/** The first answer, once all of it is there. */
function takeAnswer(received: string): Taken | undefined {
  const end = received.indexOf('\r\n\r\n');
  if (end === -1) return undefined;
  const [first = '', ...lines] = received.slice(0, end).split('\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(first)?.[1]);
  if (Number.isNaN(status)) throw new Error(`No answer begins here: ${first}`);
  const headers = Object.fromEntries(
    lines.map((line): [string, string] => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  const content = received.slice(end + 4);
  const taken =
    headers['transfer-encoding'] === 'chunked'
      ? takeChunks(content)
      : takeLength(content, Number(headers['content-length'] ?? 0));
  if (taken === undefined) return undefined;
  const text = Buffer.from(taken.bytes, 'latin1').toString();
  return { answer: { status, headers, text }, rest: taken.rest };
}

interface Content {
  readonly bytes: string;
  readonly rest: string;
}

const takeLength = (content: string, length: number): Content | undefined =>
  content.length < length
    ? undefined
    : { bytes: content.slice(0, length), rest: content.slice(length) };

function takeChunks(content: string): Content | undefined {
  let bytes = '';
  for (let at = 0; ; ) {
    const lineEnd = content.indexOf('\r\n', at);
    if (lineEnd === -1) return undefined;
    const length = Number.parseInt(content.slice(at, lineEnd), 16);
    const start = lineEnd + 2;
    if (content.length < start + length + 2) return undefined;
    bytes += content.slice(start, start + length);
    at = start + length + 2;
    if (length === 0) return { bytes, rest: content.slice(at) };
  }
}
