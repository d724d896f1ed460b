// METRICS_PORT: the metrics on a port of their own, which a proxy in front does not pass on.
import { afterEach, expect, test } from 'vitest';
import { describeListenError } from '../../src/cli/command-line/errors.ts';
import { startInside } from '../support/gateway/gateway-inside.ts';
import { freePort } from '../support/gateway/ports.ts';
import { endPosterns } from '../support/gateway/process.ts';

afterEach(endPosterns);

const OPEN = { AUTH_REQUIRED: 'false' };

const getStatus = async (url: string) => (await fetch(url)).status;

test('§4.11 METRICS_PORT: serves /metrics alone, and PORT answers 404 for it', async () => {
  const port = await freePort();
  const gateway = await startInside({ ...OPEN, METRICS_PORT: String(port) });
  expect(await getStatus(`${gateway.url}/metrics`)).toBe(404);
  expect(await getStatus(`${gateway.url}/health`)).toBe(200);
  const own = `http://127.0.0.1:${port}`;
  const answer = await fetch(`${own}/metrics`);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toMatch(/^application\/openmetrics-text/);
  const text = await answer.text();
  expect(text).toContain('http_requests_total{method="GET",route="/health",status_code="200"} 1');
  expect(text).toMatch(/# EOF\n$/);
  for (const path of ['/', '/health', '/mcp', '/site.json'])
    expect([path, await getStatus(`${own}${path}`)]).toEqual([path, 404]);
  await gateway.close();
  await expect(fetch(`${own}/metrics`)).rejects.toThrow();
});

test('§4.11 METRICS_PORT: METRICS_ENABLED=false serves no metrics at all', async () => {
  const port = await freePort();
  const env = { ...OPEN, METRICS_PORT: String(port), METRICS_ENABLED: 'false' };
  const { url } = await startInside(env);
  expect(await getStatus(`${url}/metrics`)).toBe(404);
  expect(await getStatus(`http://127.0.0.1:${port}/metrics`)).toBe(404);
});

test('§10 METRICS_PORT: the start says which port is taken', async () => {
  const { port: taken } = await startInside(OPEN);
  const port = await freePort();
  const server = { host: '127.0.0.1', port, metricsPort: taken };
  const env = { ...OPEN, PORT: String(port), METRICS_PORT: String(taken) };
  const error = await startInside(env).catch((cause: unknown) => cause);
  expect(describeListenError(error, server, (other) => `postern start --port ${other}`)).toBe(
    `METRICS_PORT: port ${taken} on 127.0.0.1 is in use by another process. Stop that process, or choose another port: METRICS_PORT=${taken + 10}`,
  );
});
