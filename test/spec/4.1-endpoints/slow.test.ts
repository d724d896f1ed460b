import { connect, type Socket } from 'node:net';
import { beforeAll, expect, test } from 'vitest';
import { useGateway } from '../../support/gateway/use-gateway.ts';

const gateway = useGateway();
let port: number;
beforeAll(async () => {
  port = await gateway.listen();
});

interface Slow {
  readonly socket: Socket;
  /** Resolves to the milliseconds after which the server closed the connection. */
  readonly closed: Promise<number>;
  received: string;
}

/** A connection that sends its first bytes and then nothing more. */
function openSlow(first: string): Slow {
  const started = performance.now();
  const socket = connect(port, '127.0.0.1', () => socket.write(first));
  const slow: Slow = {
    socket,
    received: '',
    closed: new Promise((resolve) => {
      socket.on('close', () => resolve(performance.now() - started));
    }),
  };
  socket.on('data', (chunk) => {
    slow.received += chunk.toString('latin1');
  });
  socket.on('error', () => {});
  return slow;
}

const ask = async () => (await fetch(`http://127.0.0.1:${port}/health`)).status;

test.concurrent('§12 heads that never end are closed, others are served meanwhile', {
  timeout: 30_000,
}, async () => {
  const slow = Array.from({ length: 300 }, (_, at) =>
    openSlow(
      at % 3 === 0 ? '' : at % 3 === 1 ? 'GET /he' : 'GET /health HTTP/1.1\r\nHost: localhost\r\n',
    ),
  );
  expect(await ask()).toBe(200);
  const times = await Promise.all(slow.map(({ closed }) => closed));
  expect(Math.max(...times)).toBeLessThan(20_000);
  for (const { received } of slow) expect(received).toMatch(/^($|HTTP\/1\.1 408 )/);
  expect(await ask()).toBe(200);
});

test.concurrent('§12 bodies that never end are closed, others are served meanwhile', {
  timeout: 60_000,
}, async () => {
  const token = await gateway.issuer.sign();
  const head = [
    'POST /mcp HTTP/1.1',
    'Host: localhost',
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    'Content-Length: 1000',
  ].join('\r\n');
  const slow = Array.from({ length: 100 }, () => openSlow(`${head}\r\n\r\n{"json`));
  expect(await ask()).toBe(200);
  const times = await Promise.all(slow.map(({ closed }) => closed));
  expect(Math.max(...times)).toBeLessThan(45_000);
  for (const { received } of slow)
    expect(received.match(/HTTP\/1\.1/g)?.length ?? 0).toBeLessThanOrEqual(1);
  expect(await ask()).toBe(200);
});
