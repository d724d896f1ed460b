import { connect } from 'node:net';

/** What a server sends back to these bytes until it, or the time limit, ends the connection. */
export function sendRaw(port: number, bytes: string | Buffer, limitMs = 5000): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    let received = '';
    const end = () => {
      clearTimeout(timer);
      socket.destroy();
      resolve(received);
    };
    const timer = setTimeout(end, limitMs);
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
    });
    socket.on('close', end);
    socket.on('error', end);
  });
}

/** The status codes of all answers in what `sendRaw` received. */
export const statusesOf = (received: string): readonly number[] =>
  [...received.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, code]) => Number(code));
