// §15.1: official clients come back for their answers by themselves.
import {
  Client as Client2,
  StreamableHTTPClientTransport as Transport2,
} from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { expect, test } from 'vitest';
import { startTcpProxy } from '../../scripts/chaos/servers/tcp-proxy.ts';
import { createWaitingCatalog } from '../support/catalogs/waiting-catalog.ts';
import { startGateway } from '../support/gateway/gateway.ts';
import { closeAfterTest } from '../support/lifetimes.ts';

/** On a busy machine; nothing here asserts by the clock. */
const PATIENT = { timeout: 20_000 } as const;

const ROWS = ['1.x', '2.x'] as const;

/** `onEventId` is called with each id that the client has read. */
type CallTool = (onEventId: (id: string) => void) => Promise<unknown>;

async function connect(version: (typeof ROWS)[number], url: URL, token: string) {
  const params = { name: 'wait', arguments: { name: 'a' } };
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  if (version === '1.x') {
    const client = new Client1({ name: 'test', version: '1' });
    await client.connect(new Transport1(url, { requestInit }));
    const callTool: CallTool = (onEventId) =>
      client.callTool(params, undefined, { onresumptiontoken: onEventId });
    return { callTool, close: () => client.close() };
  }
  const client = new Client2({ name: 'test', version: '1' });
  await client.connect(new Transport2(url, { requestInit }));
  const callTool: CallTool = (onEventId) =>
    client.callTool(params, { onresumptiontoken: onEventId });
  return { callTool, close: () => client.close() };
}

test.for(ROWS)(
  '§15.1 official client %s: all connections are cut, and the answer arrives',
  {
    timeout: 60_000,
  },
  async (version) => {
    const { catalog, calls } = createWaitingCatalog();
    const gateway = closeAfterTest(await startGateway({ deps: { catalog } }));
    const proxy = closeAfterTest(await startTcpProxy(await gateway.listen()));
    const url = new URL(`http://127.0.0.1:${proxy.port}/mcp`);
    const client = await connect(version, url, await gateway.issuer.sign());
    const ids: string[] = [];
    const answering = client.callTool((id) => ids.push(id));
    // Its stream has begun, and its client has read that.
    await expect.poll(() => ids.length, PATIENT).toBe(1);
    proxy.reset();
    calls.get('a')?.answer('late');
    expect(await answering).toMatchObject({ content: [{ type: 'text', text: 'late' }] });
    await client.close();
  },
);
