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

/** The status codes of the answers in what `sendRaw` received, one after the other by length. */
export function statusesOf(received: string): readonly number[] {
  const statuses: number[] = [];
  for (let rest = received; rest !== ''; ) {
    const end = rest.indexOf('\r\n\r\n');
    const head = rest.slice(0, end);
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]);
    if (end === -1 || Number.isNaN(status)) throw new Error(`No answer begins here: ${rest}`);
    statuses.push(status);
    const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0);
    rest = rest.slice(end + 4 + length);
  }
  return statuses;
}
