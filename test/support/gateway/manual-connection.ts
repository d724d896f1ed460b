import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** A connection of which a test decides what is sent when. */
export interface ManualConnection {
  readonly socket: Socket;
  readonly isClosed: boolean;
  readonly received: string;
  /** Resolves when the server has closed it. */
  readonly closed: Promise<void>;
  /** Sends more. */
  send(text: string | Buffer): void;
}

/** Resolves once it is open and has sent its first bytes. */
export async function openConnection(
  port: number,
  first: string | Buffer,
): Promise<ManualConnection> {
  const socket = connect(port, '127.0.0.1');
  let received = '';
  let isClosed = false;
  const closed = new Promise<void>((resolve) => {
    socket.on('close', () => {
      isClosed = true;
      resolve();
    });
  });
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
  });
  socket.on('error', () => {});
  await once(socket, 'connect');
  if (first.length > 0) await new Promise((sent) => socket.write(first, sent));
  return {
    socket,
    closed,
    get isClosed() {
      return isClosed;
    },
    get received() {
      return received;
    },
    send: (text) => socket.write(text),
  };
}

/** Resolves when what was sent over loopback has been read by a server of this process. */
export async function flushLoopback(count = 20): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate);
}

export interface PostHead {
  readonly path: string;
  readonly token?: string;
  readonly session?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Bytes that are announced. */
  readonly length: number;
}

export const postHead = ({ path, token, session, headers = {}, length }: PostHead): string =>
  [
    `POST ${path} HTTP/1.1`,
    'Host: localhost',
    'Content-Type: application/json',
    `Content-Length: ${length}`,
    ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
    ...(session === undefined ? [] : [`mcp-session-id: ${session}`]),
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    '',
    '',
  ].join('\r\n');
