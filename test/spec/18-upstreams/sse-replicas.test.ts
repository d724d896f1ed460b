// §18.3: a client's session that was ended at another replica keeps no connection to a server open here.
import { expect, test } from 'vitest';
import { type ManualClock, manualClock } from '../../support/gateway/clock.ts';
import { INITIALIZE_REQUEST, type TestGateway } from '../../support/gateway/gateway.ts';
import { flushLoopback } from '../../support/gateway/manual-connection.ts';
import { startTwoReplicas } from '../../support/gateway/two-replicas.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { parseServers } from '../../support/upstreams/catalog-gateway.ts';
import { startSdk1Sse } from '../../support/upstreams/sdk-1-sse.ts';

async function startReplicas(server: object) {
  const clock = manualClock();
  const file = await parseServers({ mcpServers: { one: server }, builtIn: false });
  const { one, other } = closeAfterTest(
    await startTwoReplicas({ deps: { clock, file }, env: { MCP_STREAMS: 'true' } }),
  );
  const token = await one.issuer.sign({ exp: Math.floor(clock.now() / 1000) + 86_400 });
  return { clock, one, other, token };
}

const openSession = async (gateway: TestGateway, token: string): Promise<string> => {
  const { headers } = await gateway.rpc(INITIALIZE_REQUEST, { token });
  return headers['mcp-session-id'] ?? '';
};

const callEcho = async (gateway: TestGateway, session: string, token: string) => {
  const params = { name: 'one__echo', arguments: { text: 'x' } };
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
  return (await gateway.rpc(message, { session, token })).json.result.content[0].text;
};

const endSession = ({ request }: TestGateway, session: string, token: string) =>
  request({
    method: 'DELETE',
    path: '/mcp',
    headers: { authorization: `Bearer ${token}`, 'mcp-session-id': session },
  });

async function passMinutes(clock: ManualClock, minutes: number): Promise<void> {
  for (let minute = 0; minute < minutes; minute += 1) {
    clock.advance(60_000);
    await flushLoopback(100);
  }
}

test('§18.3 HTTP+SSE: the connection of a session that was ended at another replica ends, and no other', async () => {
  const server = closeAfterTest(await startSdk1Sse());
  const { clock, one, other, token } = await startReplicas({ url: server.url, type: 'sse' });
  const ended = await openSession(one, token);
  const lasting = await openSession(one, token);
  expect(await callEcho(one, ended, token)).toBe('x');
  const before = server.sessions();
  expect(await callEcho(one, lasting, token)).toBe('x');
  expect(server.sessions()).toBe(before + 1);
  expect((await endSession(other, ended, token)).status).toBeLessThan(300);
  await passMinutes(clock, 6);
  await expect.poll(server.sessions).toBe(before);
  expect(await callEcho(one, lasting, token)).toBe('x');
  await passMinutes(clock, 20);
  expect(server.sessions()).toBeGreaterThan(0);
});
