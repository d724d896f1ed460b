// What a reader makes of the bytes of an answer: the gateway's own, and Node's client, whose parser is llhttp.
import { Agent, request } from 'node:http';
import { Duplex } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  InvalidResponse,
  ResponseReader,
} from '../../../src/platform/http-client/read-response.ts';

/** An answer as it was understood; undefined where it was refused, or did not end. */
export interface Understood {
  readonly status: number;
  /** `name: value`; values that came under the same name joined. */
  readonly headers: readonly string[];
  readonly body: string;
  readonly isReusable: boolean;
}

/** The pieces come one after the other; then the connection ends. */
export function readByGateway(pieces: readonly Buffer[]): Understood | undefined {
  let head: Pick<Understood, 'status' | 'headers'> | undefined;
  let understood: Understood | undefined;
  const body: Buffer[] = [];
  const reader = new ResponseReader({
    onHead(status, headers) {
      head = { status, headers: Object.entries(headers).map((header) => header.join(': ')) };
    },
    onBody: (bytes) => void body.push(bytes),
    onComplete(isReusable) {
      if (head === undefined) throw new Error('An answer ended that had not begun.');
      understood = { ...head, body: Buffer.concat(body).toString('latin1'), isReusable };
    },
  });
  reader.begin();
  try {
    for (const piece of pieces) {
      if (understood !== undefined) break;
      // As a connection does, which reads all into one buffer.
      const shared = Buffer.from(piece);
      reader.read(shared);
      shared.fill(0xff);
    }
  } catch (error) {
    if (!(error instanceof InvalidResponse)) throw error;
    return undefined;
  }
  if (understood === undefined) reader.readEnd();
  return understood;
}

export async function readByNode(bytes: Buffer): Promise<Understood | undefined> {
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() });
  const agent = new Agent({ keepAlive: true });
  agent.createConnection = () => socket;
  let isReusable = false;
  agent.keepSocketAlive = () => {
    isReusable = true;
    return false;
  };
  let head: Pick<Understood, 'status' | 'headers'> | undefined;
  let body: string | undefined;
  try {
    await new Promise<void>((over) => {
      socket.on('error', () => over());
      const sent = request({ agent, host: '127.0.0.1', method: 'POST', insecureHTTPParser: false });
      sent.on('error', () => over()).on('upgrade', () => over());
      sent.on('close', over).on('response', (answer) => {
        head = { status: answer.statusCode ?? 0, headers: joinHeaders(answer.rawHeaders) };
        const pieces: Buffer[] = [];
        answer.on('data', (piece) => pieces.push(piece)).on('error', () => over());
        answer.on('end', () => {
          body = Buffer.concat(pieces).toString('latin1');
        });
      });
      sent.end();
      socket.push(bytes);
      // By then an answer has ended, or it ends with the connection, or not at all.
      void nextTurn()
        .then(nextTurn)
        .then(() => socket.push(null));
    });
    // Node decides after the end whether the connection can be used again.
    await nextTurn();
  } finally {
    socket.destroy();
    agent.destroy();
  }
  return head === undefined || body === undefined ? undefined : { ...head, body, isReusable };
}

function joinHeaders(raw: readonly string[]): readonly string[] {
  const joined = new Map<string, string>();
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at]?.toLowerCase() ?? '';
    const former = joined.get(name);
    const value = raw[at + 1] ?? '';
    joined.set(name, former === undefined ? value : `${former}, ${value}`);
  }
  return [...joined].map((header) => header.join(': '));
}
