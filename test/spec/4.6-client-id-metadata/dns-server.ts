// A DNS server (RFC 1035) on a loopback socket, as far as a resolver of addresses needs one.
import { createSocket, type RemoteInfo } from 'node:dgram';
import { isIPv6 } from 'node:net';

/** The addresses of a name, of both families; `undefined` for no such name, `silent` for no word. */
export type Zone = (name: string) => readonly string[] | 'silent' | undefined;

export interface DnsServer {
  /** For `Resolver.setServers`. */
  readonly address: string;
  /** Names that were asked for, once for each family. */
  readonly asked: readonly string[];
  /** Answers from now on. */
  answer(zone: Zone): void;
  close(): Promise<void>;
}

const A = 1;
const AAAA = 28;
const NO_SUCH_NAME = 3;
const HEADER_BYTES = 12;

export async function startDnsServer(): Promise<DnsServer> {
  const socket = createSocket('udp4');
  const asked: string[] = [];
  let zone: Zone = () => undefined;

  function onQuery(query: Buffer, from: RemoteInfo): void {
    const { name, type, end } = readQuestion(query);
    asked.push(name);
    const found = zone(name);
    if (found === 'silent') return;
    socket.send(encode(query.subarray(0, end), type, found), from.port, from.address);
  }
  socket.on('message', onQuery);
  await new Promise<void>((bound) => socket.bind(0, '127.0.0.1', bound));

  return {
    address: `127.0.0.1:${socket.address().port}`,
    asked,
    answer(wanted) {
      zone = wanted;
    },
    close: () => new Promise((closed) => socket.close(() => closed())),
  };
}

function readQuestion(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.'), type: query.readUInt16BE(at + 1), end: at + 5 };
}

function encode(question: Buffer, type: number, found: readonly string[] | undefined): Buffer {
  const wanted = (found ?? []).filter((address) => (isIPv6(address) ? AAAA : A) === type);
  const reply = Buffer.from(question);
  // A response, recursion desired and available; one question, no further sections.
  reply.writeUInt16BE(0x8180 | (found === undefined ? NO_SUCH_NAME : 0), 2);
  reply.writeUInt16BE(1, 4);
  reply.writeUInt16BE(wanted.length, 6);
  reply.writeUInt32BE(0, 8);
  return Buffer.concat([reply, ...wanted.map((address) => record(type, bytesOf(address)))]);
}

/** The name is that of the question, by a pointer to it. */
function record(type: number, data: Buffer): Buffer {
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc000 | HEADER_BYTES, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(60, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

function bytesOf(address: string): Buffer {
  if (!isIPv6(address)) return Buffer.from(address.split('.').map(Number));
  const [left = '', right = ''] = address.split('::');
  const groups = (text: string) => text.split(':').filter((group) => group !== '');
  const zeros = 8 - groups(left).length - groups(right).length;
  const all = [...groups(left), ...Array<string>(zeros).fill('0'), ...groups(right)];
  return Buffer.from(all.flatMap((group) => [...uint16(Number.parseInt(group, 16))]));
}

const uint16 = (value: number): readonly number[] => [value >> 8, value & 0xff];
