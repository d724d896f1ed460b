// W3C Baggage of clients: what they say there of a user or tenant is nobody's word, and servers must not take it for ours.
import { expect, test } from 'vitest';
import { openClient } from '../../support/clients/session-client.ts';
import { callTool } from '../../support/clients/stateless.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startRecorder } from '../../support/upstreams/recorder.ts';
import { startRelayGateway } from '../../support/upstreams/relay-gateway.ts';
import { startRelayServer1 } from '../../support/upstreams/relay-server-1.ts';
import { startRelayServer2 } from '../../support/upstreams/relay-server-2.ts';

const BAGGAGE = 'user.id=root,tenant=other';
const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

test.each([
  { era: 'session', start: startRelayServer1 },
  { era: 'stateless', start: startRelayServer2 },
])(
  '§18.6 baggage reaches no server of the $era era, by header or `_meta`; the trace does',
  async ({ start }) => {
    const server = closeAfterTest(await start());
    const recorder = closeAfterTest(await startRecorder(server.url));
    const gateway = closeAfterTest(await startRelayGateway({ servers: { one: recorder.url } }));
    const meta = { baggage: BAGGAGE, traceparent: TRACEPARENT, 'a.b/own': 1 };
    await callTool(gateway, 'one__echo', undefined, { meta, headers: { baggage: BAGGAGE } });
    const client = await openClient(gateway);
    await client.ask('tools/call', { name: 'one__echo', _meta: meta });
    const calls = recorder.received.filter(({ body }) => body.includes('"tools/call"'));
    expect(calls).toHaveLength(2);
    for (const { body } of calls) expect(body).toContain(TRACEPARENT);
    expect(JSON.stringify(recorder.received)).not.toMatch(/baggage|tenant=other/);
  },
);
