// §12: what the transport refuses before any route looks at a request.
import { once } from 'node:events';
import { connect } from 'node:net';
import { beforeAll, describe, expect, test } from 'vitest';
import { sendRaw, statusesOf } from '../../support/gateway/raw-http.ts';
import { useGateway } from '../../support/gateway/use-gateway.ts';

const gateway = useGateway({ env: { MAX_TOKEN_BYTES: '8192' } });
let port: number;
beforeAll(async () => {
  port = await gateway.listen();
});

const HOST = 'Host: localhost\r\n';
const NEXT = `GET /health HTTP/1.1\r\n${HOST}\r\n`;
const CHUNKED_BODY = '2\r\n{}\r\n0\r\n\r\n';

const bodyOf = (received: string) =>
  JSON.parse(received.slice(received.indexOf('\r\n\r\n') + 4) || 'null');

describe('Transfer-Encoding', () => {
  test('§4.1 HTTP/1.0 has none: 400, then nothing', async () => {
    const received = await sendRaw(
      port,
      `POST /mcp HTTP/1.0\r\n${HOST}Connection: keep-alive\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${CHUNKED_BODY}${NEXT}`,
    );
    expect(received).toMatch(/^HTTP\/1\.1 400 /);
    expect(received.match(/HTTP\/1\.1 \d/g)).toHaveLength(1);
  });

  const requests = [
    'POST /mcp',
    'GET /mcp',
    'DELETE /mcp',
    'POST /oauth/token',
    'POST /oauth/register',
    'GET /oauth/authorize',
    'GET /health',
    'HEAD /health',
    'GET /',
    'PUT /nope',
    'OPTIONS /mcp',
  ];
  const codings = [
    'Transfer-Encoding: identity, chunked',
    'Transfer-Encoding: gzip, chunked',
    'Transfer-Encoding: chunked, chunked',
    'Transfer-Encoding: identity\r\nTransfer-Encoding: chunked',
    'Transfer-Encoding: , chunked',
    'Transfer-Encoding: chunked;q=1',
    'Transfer-Encoding: xchunked',
    'Transfer-Encoding: chunked, identity',
    'Transfer-Encoding: identity',
    'Transfer-Encoding:',
  ];

  test.each(requests)('§4.1 %s with any other than chunked: 400, then nothing', async (line) => {
    for (const coding of codings) {
      const received = await sendRaw(
        port,
        `${line} HTTP/1.1\r\n${HOST}Content-Type: application/json\r\n${coding}\r\n\r\n${CHUNKED_BODY}${NEXT}${NEXT}`,
      );
      const [head = ''] = received.split('\r\n\r\n', 1);
      expect(head, coding).toMatch(/^HTTP\/1\.1 400 /);
      expect(head, coding).toMatch(/^Connection: close$/m);
      expect(head, coding).toMatch(/^X-Content-Type-Options: nosniff$/m);
      expect(received.match(/HTTP\/1\.1/g), coding).toHaveLength(1);
    }
  });

  test.each([
    ['before', 'Content-Length: 4\r\nTransfer-Encoding: identity, chunked'],
    ['after', 'Transfer-Encoding: identity, chunked\r\nContent-Length: 4'],
    ['beside', 'Transfer-Encoding: chunked\r\nContent-Length: 4'],
  ])('§4.1 a Content-Length %s it: 400, then nothing', async (_where, headers) => {
    const received = await sendRaw(
      port,
      `POST /mcp HTTP/1.1\r\n${HOST}${headers}\r\n\r\n${CHUNKED_BODY}${NEXT}`,
    );
    expect(received).toMatch(/^HTTP\/1\.1 400 /);
    expect(received.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  test('§4.1 the refusal says what is allowed, in JSON-RPC form', async () => {
    const received = await sendRaw(
      port,
      `POST /mcp HTTP/1.1\r\n${HOST}Transfer-Encoding: identity, chunked\r\n\r\n${CHUNKED_BODY}`,
    );
    expect(bodyOf(received)).toMatchObject({
      error: { code: -32000, message: 'Bad Request', data: { details: expect.any(String) } },
      id: null,
    });
    expect(received).toContain('chunked');
  });

  test('§4.1 what comes behind it is not run', async () => {
    const { log } = gateway;
    const before = log.filter(({ path }) => path === '/health/ready').length;
    const behind = `GET /health/ready HTTP/1.1\r\n${HOST}\r\n`;
    await sendRaw(
      port,
      `POST /mcp HTTP/1.1\r\n${HOST}Transfer-Encoding: identity, chunked\r\n\r\n${CHUNKED_BODY}${behind}`,
    );
    await sendRaw(port, `GET /health HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`);
    expect(log.filter(({ path }) => path === '/health/ready')).toHaveLength(before);
  });

  test.each(['chunked', 'Chunked', 'CHUNKED'])('§4.1 %s is taken', async (coding) => {
    const token = await gateway.issuer.sign();
    const body = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
    const received = await sendRaw(
      port,
      [
        'POST /mcp HTTP/1.1',
        'Host: localhost',
        `Authorization: Bearer ${token}`,
        'Content-Type: application/json',
        `Transfer-Encoding: ${coding}`,
        'Connection: close',
        '',
        `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
      ].join('\r\n'),
    );
    // Past the transport: this call lacks its session.
    expect(received).toContain('missing_session_id');
  });
});

describe('header sections', () => {
  /** A request whose header section has this many bytes. */
  function withHeaders(path: string, bytes: number, connection = ''): string {
    const headers = `${HOST}${connection}`;
    const frame = 'X-Filler: \r\n'.length;
    const filler = 'x'.repeat(bytes - headers.length - frame);
    return `GET ${path} HTTP/1.1\r\n${headers}X-Filler: ${filler}\r\n\r\n`;
  }
  const LIMIT = 8192 + 16_384;

  test('§4.12 one of MAX_TOKEN_BYTES and 16 KiB is taken', async () => {
    const raw = withHeaders('/health', LIMIT, 'Connection: close\r\n');
    expect(statusesOf(await sendRaw(port, raw))).toEqual([200]);
  });

  test.each([LIMIT + 256, 40_000, 200_000])(
    '§4.12 one of %i bytes: 431 with the headers of every answer, then closed',
    async (bytes) => {
      const received = await sendRaw(port, withHeaders('/health', bytes) + NEXT);
      expect(received).toMatch(/^HTTP\/1\.1 431 Request Header Fields Too Large\r\n/);
      expect(received).toMatch(/^Connection: close\r$/m);
      expect(received).toMatch(/^X-Content-Type-Options: nosniff\r$/m);
      expect(received.match(/HTTP\/1\.1/g)).toHaveLength(1);
      expect(bodyOf(received)).toMatchObject({
        error: { code: -32000, message: 'Request Header Fields Too Large' },
        id: null,
      });
    },
  );

  test('§4.12 on a connection that has had answers: 431 all the same', async () => {
    const socket = connect(port, '127.0.0.1');
    let received = '';
    socket.setEncoding('latin1').on('data', (text) => {
      received += text;
    });
    socket.write(NEXT);
    await expect.poll(() => received).toMatch(/"ok"/);
    socket.write(withHeaders('/health', 40_000));
    await once(socket, 'close');
    expect(received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 431']);
  });

  test('§4.12 behind a request whose answer is owed: closed, and never mixed into the answer', async () => {
    const received = await sendRaw(port, NEXT + NEXT + withHeaders('/health', 40_000));
    const statuses = statusesOf(received);
    expect([[], [200], [200, 200], [200, 200, 431]]).toContainEqual(statuses);
  });
});
