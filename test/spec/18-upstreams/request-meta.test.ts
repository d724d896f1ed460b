// What a client writes into `_meta` of a request for the server, and not for the gateway.
import { expect, test } from 'vitest';
import { openClient } from '../../support/clients/session-client.ts';
import { CLIENT_CAPABILITIES, callTool } from '../../support/clients/stateless.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startRecorder } from '../../support/upstreams/recorder.ts';
import { startRelayGateway } from '../../support/upstreams/relay-gateway.ts';
import { startRelayServer1 } from '../../support/upstreams/relay-server-1.ts';
import { startRelayServer2 } from '../../support/upstreams/relay-server-2.ts';

const OWN = {
  'com.example/tenant': { id: 7, tags: ['a', null] },
  'example.com/mcp': 'its own',
  plain: 'x',
};

async function startRelay(start: typeof startRelayServer1 | typeof startRelayServer2) {
  const server = closeAfterTest(await start());
  const recorder = closeAfterTest(await startRecorder(server.url));
  const gateway = closeAfterTest(await startRelayGateway({ servers: { one: recorder.url } }));
  const listMetas = (method: string) =>
    recorder.received
      .filter(({ body }) => body.includes(`"method":"${method}"`))
      .map(({ body }) => JSON.parse(body).params._meta);
  return { gateway, listMetas };
}

const ERAS = [
  { era: 'session', start: startRelayServer1 },
  { era: 'stateless', start: startRelayServer2 },
];

test.each(ERAS)(
  '§18.3 foreign members of `_meta` reach a server of the $era era, from clients of both',
  async ({ start }) => {
    const { gateway, listMetas } = await startRelay(start);
    await callTool(gateway, 'one__echo', undefined, { meta: OWN });
    const client = await openClient(gateway);
    await client.ask('tools/call', { name: 'one__echo', _meta: OWN });
    expect(listMetas('tools/call')).toMatchObject([OWN, OWN]);
  },
);

test('§18.3 foreign members of `_meta` reach the server with prompts and resources, too', async () => {
  const { gateway, listMetas } = await startRelay(startRelayServer1);
  const client = await openClient(gateway);
  await client.ask('prompts/get', { name: 'one__plain', _meta: OWN });
  await client.ask('resources/read', { uri: 'test://a', _meta: OWN });
  expect([...listMetas('prompts/get'), ...listMetas('resources/read')]).toMatchObject([OWN, OWN]);
});

test.each(ERAS)(
  '§18.3 members of `_meta` that are about the client’s own connection reach no server of the $era era',
  async ({ start }) => {
    const { gateway, listMetas } = await startRelay(start);
    const client = await openClient(gateway);
    await client.ask('tools/call', {
      name: 'one__echo',
      _meta: {
        ...OWN,
        progressToken: 'the client’s own',
        'io.modelcontextprotocol/clientInfo': { name: 'forged' },
        'io.modelcontextprotocol/related-task': { taskId: 'forged' },
        tracestate: 'forged=1',
        baggage: 'forged=1',
        Baggage: 'forged=1',
        Traceparent: 'forged',
        b3: 'forged',
        'X-B3-TraceId': 'forged',
        'uber-trace-id': 'forged',
        'uberctx-user': 'forged',
        'modelcontextprotocol.io/x': 'forged',
        'dev.mcp.tools/x': 'forged',
        'IO.ModelContextProtocol/x': 'forged',
        ...JSON.parse('{"__proto__": {"forged": true}}'),
      },
    });
    const [meta] = listMetas('tools/call');
    expect(meta).toMatchObject(OWN);
    expect(JSON.stringify(meta)).not.toMatch(/forged|the client’s own/);
  },
);

test.each([
  { what: 'over 8 KiB', value: 'é'.repeat(4_100) },
  { what: 'deeper than 16 levels', value: JSON.parse('['.repeat(17) + ']'.repeat(17)) },
])(
  '§18.3 foreign members of `_meta` that are $what are left out, and the call goes on',
  async ({ value }) => {
    const { gateway, listMetas } = await startRelay(startRelayServer1);
    const client = await openClient(gateway);
    const { result } = await client.ask('tools/call', {
      name: 'one__echo',
      _meta: { 'com.example/big': value },
    });
    expect(result.content).toHaveLength(1);
    expect(listMetas('tools/call')[0]?.['com.example/big']).toBeUndefined();
    const fitting = JSON.parse('['.repeat(15) + ']'.repeat(15));
    await client.ask('tools/call', {
      name: 'one__echo',
      _meta: { fitting, text: 'é'.repeat(4_000) },
    });
    expect(listMetas('tools/call')[1]).toMatchObject({ fitting, text: 'é'.repeat(4_000) });
  },
);

test('§18.3 a server is told that its client’s model may call tools when it is sampled, for that client alone', async () => {
  const { gateway, listMetas } = await startRelay(startRelayServer2);
  for (const sampling of [{}, { tools: {} }])
    await callTool(gateway, 'one__echo', undefined, {
      meta: { [CLIENT_CAPABILITIES]: { sampling } },
    });
  expect(listMetas('tools/call').map((meta) => meta[CLIENT_CAPABILITIES].sampling)).toEqual([
    {},
    { tools: {} },
  ]);
});
