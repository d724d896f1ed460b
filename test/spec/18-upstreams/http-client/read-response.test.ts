// RFC 9112: how the answers of servers are read. Whatever the gateway takes for an answer, Node's own parser (llhttp) takes for
// the same one: then nobody between can have read two.
import { expect, test } from 'vitest';
import { ResponseReader } from '../../../../src/platform/http-client/read-response.ts';
import { below, pick, type Random, randomOf } from '../../../support/fuzz/seeded-random.ts';
import { readByGateway, readByNode } from '../../../support/upstreams/read-by-node.ts';

const OK = 'HTTP/1.1 200 OK\r\n';
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`;
const bytesOf = (text: string) => Buffer.from(text, 'latin1');
const read = (text: string) => readByGateway([bytesOf(text)]);

const USUAL: Readonly<Record<string, string>> = {
  'a length': `${OK}Content-Type: application/json\r\nContent-Length: 5\r\n\r\nhello`,
  'a length in other letters, with space around it': `${OK}CONTENT-LENGTH:  5  \r\n\r\nhello`,
  'no space before a value': `${OK}Content-Length:5\r\n\r\nhello`,
  'no body': `${OK}Content-Length: 0\r\n\r\n`,
  'no reason': 'HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok',
  'an empty reason': 'HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok',
  'a reason with two spaces before it': 'HTTP/1.1 200  OK\r\nContent-Length: 2\r\n\r\nok',
  'a reason in Latin letters': 'HTTP/1.1 200 D\xe9j\xe0\r\nContent-Length: 2\r\n\r\nok',
  'a refusal': 'HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}',
  '204, which has no body': 'HTTP/1.1 204 No Content\r\n\r\n',
  '204 with a length': 'HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n',
  '304, which has no body': 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n',
  chunks: `${CHUNKED}5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n`,
  'chunks in hexadecimal digits': `${CHUNKED}A\r\n0123456789\r\n0b\r\n0123456789a\r\n000\r\n\r\n`,
  'chunks with extensions': `${CHUNKED}5;one;two=2\r\nhello\r\n0;last\r\n\r\n`,
  'chunks with trailers': `${CHUNKED}2\r\nok\r\n0\r\nExpires: never\r\nX: \r\n\r\n`,
  'no chunks': `${CHUNKED}0\r\n\r\n`,
  'line ends in chunks': `${CHUNKED}4\r\n\r\n\r\n\r\n0\r\n\r\n`,
  'the end of the connection': `${OK}Content-Type: text/plain\r\n\r\nhello`,
  'no body at the end of the connection': `${OK}\r\n`,
  'a server of HTTP/1.0': 'HTTP/1.0 200 OK\r\n\r\nhello',
  'HTTP/1.0 with a length': 'HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello',
  'HTTP/1.0 that stays': 'HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok',
  'a connection that is closed': `${OK}Connection: close\r\nContent-Length: 2\r\n\r\nok`,
  'a connection with options': `${OK}Connection: x, Close\r\nContent-Length: 2\r\n\r\nok`,
  'what only informs': `HTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n${OK}Content-Length: 2\r\n\r\nok`,
  'what only informs, twice': `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n${OK}Content-Length: 2\r\n\r\nok`,
  'a header twice': `${OK}Warning: a\r\nWarning: b\r\nContent-Length: 2\r\n\r\nok`,
  'a header named like what objects inherit': `${OK}__proto__: a\r\nconstructor: b\r\ntoString: c\r\nContent-Length: 2\r\n\r\nok`,
  'an empty value': `${OK}X:\r\nY: \t \r\nContent-Length: 2\r\n\r\nok`,
  'bytes beyond ASCII': `${OK}X: \x80\xff\r\nContent-Length: 3\r\n\r\n\x00\x80\xff`,
  'Upgrade, which nobody asked for': `${OK}Connection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nok`,
  'another answer behind it': `${OK}Content-Length: 2\r\n\r\nok${OK}Content-Length: 2\r\n\r\nno`,
};

const REFUSED: Readonly<Record<string, string>> = {
  'another protocol': 'HTP/1.1 200 OK\r\n\r\n',
  'a protocol in small letters': 'http/1.1 200 OK\r\n\r\n',
  SSH: 'SSH-2.0-OpenSSH_9.2\r\n\r\n',
  'no version': 'HTTP/ 200 OK\r\n\r\n',
  'HTTP/2.0': 'HTTP/2.0 200 OK\r\n\r\n',
  'HTTP/0.9': 'HTTP/0.9 200 OK\r\n\r\n',
  'a version of two digits': 'HTTP/1.01 200 OK\r\n\r\n',
  'a tab behind the version': 'HTTP/1.1\t200 OK\r\n\r\n',
  'two spaces before the status': 'HTTP/1.1  200 OK\r\n\r\n',
  'a status of one digit': 'HTTP/1.1 2 OK\r\n\r\n',
  'a status of four digits': 'HTTP/1.1 2000 OK\r\n\r\n',
  'a status that begins with 0': 'HTTP/1.1 020 OK\r\n\r\n',
  'a reason right behind the status': 'HTTP/1.1 200OK\r\n\r\n',
  'a reason with a zero byte': 'HTTP/1.1 200 O\x00K\r\n\r\n',
  'a line end before it': `\r\n${OK}Content-Length: 0\r\n\r\n`,
  'line feeds alone': 'HTTP/1.1 200 OK\nContent-Length: 0\n\n',
  'a line feed alone behind the status': 'HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n',
  'a line feed alone behind a header': `${OK}X: a\nContent-Length: 0\r\n\r\n`,
  'a return alone between headers': `${OK}X: a\rContent-Length: 0\r\n\r\n`,
  'a return in a value': `${OK}X: a\rb\r\nContent-Length: 0\r\n\r\n`,
  'a zero byte in a value': `${OK}X: a\x00b\r\nContent-Length: 0\r\n\r\n`,
  'a space at the first header': `${OK} Host: foo\r\nContent-Length: 0\r\n\r\n`,
  'a folded header': `${OK}X: a\r\n b\r\nContent-Length: 0\r\n\r\n`,
  'a space before a colon': `${OK}Content-Length : 0\r\n\r\n`,
  'a header without a colon': `${OK}Content-Length\r\n\r\n`,
  'a header without a name': `${OK}: 0\r\nContent-Length: 0\r\n\r\n`,
  'a name that is no token': `${OK}Content(Length): 0\r\nContent-Length: 0\r\n\r\n`,
  'a name beyond ASCII': `${OK}Cont\xe9nt: 0\r\nContent-Length: 0\r\n\r\n`,
  'two lengths': `${OK}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!`,
  'the same length twice': `${OK}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello`,
  'lengths in a list': `${OK}Content-Length: 5, 5\r\n\r\nhello`,
  'a length below zero': `${OK}Content-Length: -5\r\n\r\nhello`,
  'a length with a plus': `${OK}Content-Length: +5\r\n\r\nhello`,
  'a length in hexadecimal digits': `${OK}Content-Length: 0x5\r\n\r\nhello`,
  'a length with a point': `${OK}Content-Length: 5.0\r\n\r\nhello`,
  'a tab behind a length': `${OK}Content-Length: 5\t\r\n\r\nhello`,
  'a tab behind a coding': `${OK}Transfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n`,
  'an empty length': `${OK}Content-Length:\r\n\r\nhello`,
  'a length that no number can hold': `${OK}Content-Length: 99999999999999999999\r\n\r\nhello`,
  'a length and chunks': `${OK}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  'chunks and a length': `${OK}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n`,
  'an empty coding': `${OK}Transfer-Encoding:\r\nContent-Length: 5\r\n\r\nhello`,
  'a coding besides chunks': `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
  'chunks before another coding': `${OK}Transfer-Encoding: chunked, deflate\r\n\r\nWorld`,
  'chunks twice': `${OK}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  'chunks and identity': `${OK}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n`,
  'a coding called chunkedchunked': `${OK}Transfer-Encoding: chunkedchunked\r\n\r\n0\r\n\r\n`,
  'chunks in HTTP/1.0': 'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'a chunk without a size': `${CHUNKED}\r\nhello\r\n0\r\n\r\n`,
  'a chunk whose size is no number': `${CHUNKED}x\r\nhello\r\n0\r\n\r\n`,
  'a chunk whose size begins with 0x': `${CHUNKED}0x5\r\nhello\r\n0\r\n\r\n`,
  'a chunk whose size is below zero': `${CHUNKED}-1\r\nhello\r\n0\r\n\r\n`,
  'a chunk whose size no number can hold': `${CHUNKED}fffffffffffffffff\r\nhello\r\n0\r\n\r\n`,
  'a space behind the size of a chunk': `${CHUNKED}5  \r\nhello\r\n0\r\n\r\n`,
  'an extension without a semicolon': `${CHUNKED}5 x\r\nhello\r\n0\r\n\r\n`,
  'an extension without a name': `${CHUNKED}5;\r\nhello\r\n0\r\n\r\n`,
  'an extension with a return': `${CHUNKED}5;a\rb\r\nhello\r\n0\r\n\r\n`,
  'an extension in quotes': `${CHUNKED}5;a="b\r\nc"\r\nhello\r\n0\r\n\r\n`,
  'a line feed alone behind the size of a chunk': `${CHUNKED}5\nhello\r\n0\r\n\r\n`,
  'a chunk that is longer than it says': `${CHUNKED}5\r\nhello!\r\n0\r\n\r\n`,
  'a chunk that is shorter than it says': `${CHUNKED}6\r\nhello\r\n0\r\n\r\n`,
  'a line feed alone behind a chunk': `${CHUNKED}5\r\nhello\n0\r\n\r\n`,
  'a trailer that is no header': `${CHUNKED}0\r\nno trailer\r\n\r\n`,
  'a folded trailer': `${CHUNKED}0\r\nX: a\r\n b\r\n\r\n`,
  'a change of the protocol':
    'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n',
  'headers of 20,000 bytes': `${OK}X: ${'a'.repeat(20_000)}\r\nContent-Length: 0\r\n\r\n`,
  'headers without end': `${OK}${'X: a\r\n'.repeat(4000)}`,
  'trailers without end': `${CHUNKED}0\r\n${'X: a\r\n'.repeat(4000)}`,
  'the size of a chunk without end': `${CHUNKED}${'0'.repeat(300)}`,
  'what only informs, without end': `${'HTTP/1.1 100 Continue\r\n\r\n'.repeat(1001)}${OK}Content-Length: 0\r\n\r\n`,
  'half a head': 'HTTP/1.1 200 OK\r\nContent-Le',
  'half a body': `${OK}Content-Length: 6\r\n\r\nhello`,
  'half a chunk': `${CHUNKED}6\r\nhello`,
  'chunks without their end': `${CHUNKED}5\r\nhello\r\n`,
  'an end of chunks without its line': `${CHUNKED}5\r\nhello\r\n0\r\n`,
};

test.each(Object.entries(USUAL))('RFC 9112: %s is read as Node reads it', async (_what, text) => {
  const understood = read(text);
  expect(understood).toBeDefined();
  const byNode = await readByNode(bytesOf(text));
  expect(understood).toEqual({ ...byNode, isReusable: understood?.isReusable });
  if (understood?.isReusable) expect(byNode?.isReusable).toBe(true);
});

test.each(Object.entries(REFUSED))('RFC 9112: %s is refused', (_what, text) => {
  expect(read(text)).toBeUndefined();
});

const LINE_FEEDS: Readonly<Record<string, string>> = {
  'behind the status': 'HTTP/1.1 200 OK\n',
  'behind a header': `${OK}Content-Length: 5\n`,
  'at the end of the head': `${OK}Content-Length: 5\r\n\n`,
  'behind the size of a chunk': `${CHUNKED}5\n`,
  'behind a chunk': `${CHUNKED}5\r\nhello\n`,
  'at the end of chunks': `${CHUNKED}0\r\n\n`,
  'behind a trailer': `${CHUNKED}0\r\nExpires: never\n`,
};

test.each(Object.entries(LINE_FEEDS))(
  'RFC 9112 §2.2: a line feed alone %s is refused at once, in one piece or in many',
  (_what, text) => {
    for (const pieces of [[text], text.split('')]) {
      const reader = new ResponseReader({ onHead() {}, onBody() {}, onComplete() {} });
      reader.begin();
      const last = bytesOf(pieces.pop() ?? '');
      for (const piece of pieces) reader.read(bytesOf(piece));
      // The connection stays, and nothing else comes.
      expect(() => reader.read(last)).toThrow('a line ends with a line feed alone');
    }
  },
);

test.each([
  ['a length', USUAL['a length'], true],
  ['chunks', USUAL.chunks, true],
  ['204', USUAL['204, which has no body'], true],
  ['the end of the connection', USUAL['the end of the connection'], false],
  ['HTTP/1.0', USUAL['HTTP/1.0 with a length'], false],
  ['Connection: close', USUAL['a connection that is closed'], false],
  ['close among other options', USUAL['a connection with options'], false],
  ['bytes behind the answer', USUAL['another answer behind it'], false],
])('RFC 9112 §9.3: after an answer with %s', (_what, text, isReusable) => {
  expect(read(text ?? '')).toMatchObject({ isReusable });
});

test.each(Object.entries(USUAL))(
  'RFC 9112: %s is the same in pieces of any size',
  (_what, text) => {
    const bytes = bytesOf(text);
    const whole = readByGateway([bytes]);
    for (let size = 1; size < bytes.length; size += 1) {
      const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
        bytes.subarray(at * size, (at + 1) * size),
      );
      // Whoever has read all of an answer does not know what else will come.
      expect(readByGateway(pieces)).toEqual({ ...whole, isReusable: expect.any(Boolean) });
    }
  },
);

test('RFC 9112: what is read twice is the same twice: no more than the reader’s own is told', () => {
  const text = `${CHUNKED}${'3\r\nabc\r\n'.repeat(3)}0\r\n\r\n`;
  expect(read(text)?.body).toBe('abcabcabc');
  expect(readByGateway([bytesOf(text.slice(0, 60)), bytesOf(text.slice(60))])?.body).toBe(
    'abcabcabc',
  );
});

test('RFC 9112: whoever keeps the few bytes of chunks with long extensions keeps no more than those', () => {
  const kept: Buffer[] = [];
  const reader = new ResponseReader({
    onHead() {},
    onBody: (bytes) => void kept.push(bytes),
    onComplete() {},
  });
  reader.begin();
  reader.read(bytesOf(CHUNKED));
  reader.read(bytesOf(`1;${'a'.repeat(250)}\r\nx\r\n`.repeat(250)));
  expect(Buffer.concat(kept).toString()).toBe('x'.repeat(250));
  // Small ones are parts of a buffer that Node shares among them.
  for (const { buffer } of kept) expect(buffer.byteLength).toBeLessThanOrEqual(Buffer.poolSize);
});

const MUTATIONS = 6000;
const SEED = 20_261_127;
const ODD = [
  '\r',
  '\n',
  '\r\n',
  '\r\n\r\n',
  ' ',
  '\t',
  ':',
  ';',
  ',',
  '\x00',
  '\x0b',
  '\x7f',
  '\x80',
  '\xff',
  '0',
  '1',
  '5',
  '-',
  '+',
  'x',
  'a',
  'F',
  '"',
  '=',
  '\r\n ',
  ' \r\n',
  '\n\n',
  'chunked',
  'Content-Length: 5\r\n',
  'Content-Length: 0\r\n',
  'Transfer-Encoding: chunked\r\n',
  'Connection: close\r\n',
  'HTTP/1.1 100 Continue\r\n\r\n',
  '0\r\n\r\n',
  '5\r\nhello\r\n',
  OK,
];

function mutateText(random: Random): string {
  let text = pick(random, [
    ...Object.values(USUAL),
    ...Object.values(REFUSED).filter(({ length }) => length < 1000),
  ]);
  for (let count = 1 + below(random, 3); count > 0; count -= 1) {
    const at = below(random, text.length + 1);
    const removed = random() < 0.5 ? 0 : 1 + below(random, 4);
    text = text.slice(0, at) + (random() < 0.7 ? pick(random, ODD) : '') + text.slice(at + removed);
  }
  return text;
}

function cut(random: Random, bytes: Buffer): readonly Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const size = 1 + below(random, random() < 0.5 ? 4 : bytes.length);
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return pieces;
}

test('RFC 9112: of thousands of answers that are almost right none is read in another way than Node reads it', async () => {
  let accepted = 0;
  for (let index = 0; index < MUTATIONS; index += 1) {
    const random = randomOf(SEED, index);
    const text = mutateText(random);
    const bytes = bytesOf(text);
    const understood = readByGateway([bytes]);
    const inPieces = readByGateway(cut(random, bytes));
    expect({ text, ...inPieces, isReusable: undefined }).toEqual({
      text,
      ...understood,
      isReusable: undefined,
    });
    if (understood === undefined) continue;
    accepted += 1;
    const byNode = await readByNode(bytes);
    expect({ text, status: byNode?.status, body: byNode?.body, headers: byNode?.headers }).toEqual({
      text,
      status: understood.status,
      body: understood.body,
      headers: understood.headers,
    });
    if (understood.isReusable)
      expect({ text, isReusable: byNode?.isReusable }).toEqual({ text, isReusable: true });
  }
  expect(accepted).toBeGreaterThan(MUTATIONS / 10);
}, 120_000);
