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

async function connect(version: (typeof ROWS)[number], url: URL, token: string) {
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  if (version === '1.x') {
    const client = new Client1({ name: 'test', version: '1' });
    await client.connect(new Transport1(url, { requestInit }));
    return client;
  }
  const client = new Client2({ name: 'test', version: '1' });
  await client.connect(new Transport2(url, { requestInit }));
  return client;
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
    const answering = client.callTool({ name: 'wait', arguments: { name: 'a' } });
    await expect.poll(() => calls.has('a'), PATIENT).toBe(true);
    // Until its stream has begun, and its client has read that.
    await new Promise((resolve) => setTimeout(resolve, 2000));
    proxy.reset();
    calls.get('a')?.answer('late');
    expect(await answering).toMatchObject({ content: [{ type: 'text', text: 'late' }] });
    await client.close();
  },
);
