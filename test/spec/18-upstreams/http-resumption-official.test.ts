// Servers of the official SDKs behind the gateway, whose streams break or are closed early.
import { once } from 'node:events';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { expect, test } from 'vitest';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startCuttingProxy } from '../../support/upstreams/cutting-proxy.ts';
import { startRelayGateway } from '../../support/upstreams/relay-gateway.ts';
import {
  type ResumableServer,
  startResumableServer1,
  startResumableServer2,
} from '../../support/upstreams/resumable-servers.ts';

const SERVERS = [
  ['1.x', startResumableServer1],
  ['2.x', startResumableServer2],
] as const;

const DONE = { content: [{ type: 'text', text: 'done' }] };

async function start(open: () => Promise<ResumableServer>) {
  const server = closeAfterTest(await open());
  const proxy = closeAfterTest(await startCuttingProxy(server.port));
  const url = new URL(server.url);
  url.port = String(proxy.port);
  const gateway = closeAfterTest(await startRelayGateway({ servers: { behind: url.href } }));
  const port = await gateway.listen();
  const client = closeAfterTest(new Client({ name: 'test', version: '1' }));
  const headers = { authorization: `Bearer ${await gateway.issuer.sign()}` };
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`), {
      requestInit: { headers },
    }),
  );
  const heard: number[] = [];
  const call = (name: string) =>
    client.callTool({ name: `behind__${name}` }, undefined, {
      onprogress: ({ progress }) => void heard.push(progress),
    });
  const resumed = () =>
    server.received.filter(({ method, after }) => method === 'GET' && after !== undefined);
  return { server, proxy, heard, call, resumed };
}

test.each(SERVERS)(
  '§18.3 the official server %s: a call whose connection is cut is answered on another one',
  async (_, open) => {
    const { server, proxy, heard, call, resumed } = await start(open);
    const begun = once(server.events, 'begun');
    const calling = call('slow');
    await begun;
    await expect.poll(() => heard).toEqual([1]);
    proxy.cut();
    server.events.emit('step');
    expect(await calling).toMatchObject(DONE);
    expect(heard).toEqual([1, 2]);
    expect(resumed()).toHaveLength(1);
  },
);

test.each(SERVERS)(
  '§18.3 the official server %s: a call whose stream the server closes at once is answered',
  async (_, open) => {
    const { heard, call, resumed } = await start(open);
    expect(await call('polled')).toMatchObject(DONE);
    expect(heard).toEqual([1]);
    expect(resumed()).toHaveLength(1);
  },
);
