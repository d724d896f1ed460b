// Official clients are asked by servers of both eras, with each request at another of two replicas.
import {
  Client as Client2,
  StreamableHTTPClientTransport as Transport2,
} from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { beforeAll, expect, test } from 'vitest';
import { closeAfterTest, useShared } from '../../support/lifetimes.ts';
import { startRedis } from '../../support/stores/redis.ts';
import { startRelayGateway } from '../../support/upstreams/relay-gateway.ts';
import { startRelayServer1 } from '../../support/upstreams/relay-server-1.ts';
import { startRelayServer2 } from '../../support/upstreams/relay-server-2.ts';

const ACCEPT = { action: 'accept' as const, content: { name: 'Ada' } };
const INFO = { name: 'test', version: '1' };
const CAPABILITIES = { capabilities: { elicitation: { form: {} } } };

const one = useShared(startRelayServer1);
const two = useShared(startRelayServer2);
const redis = useShared(startRedis);
const first = useShared(() => startReplica({}));
const second = useShared(() => startReplica({ OIDC_ISSUER: first.issuer.url }));
let url: URL;
let reach: { readonly fetch: typeof fetch; readonly requestInit: RequestInit };

const startReplica = (env: Readonly<Record<string, string>>) =>
  startRelayGateway({
    servers: { one: one.url, two: two.url },
    env: { REDIS_URL: redis.url, ...env },
  });

beforeAll(async () => {
  const ports = [await first.listen(), await second.listen()];
  let requests = 0;
  url = new URL(`http://127.0.0.1:${ports[0]}/mcp`);
  reach = {
    requestInit: { headers: { authorization: `Bearer ${await first.issuer.sign()}` } },
    fetch(input, init) {
      const target = new URL(input instanceof Request ? input.url : input);
      target.port = String(ports[requests++ % ports.length]);
      return fetch(target, init);
    },
  };
});

async function connect1(): Promise<Call> {
  const client = closeAfterTest(new Client1(INFO, CAPABILITIES));
  client.setRequestHandler(ElicitRequestSchema, () => ACCEPT);
  await client.connect(new Transport1(url, reach));
  return (name) => client.callTool({ name });
}

async function connect2(): Promise<Call> {
  const versionNegotiation = { mode: { pin: '2026-07-28' } };
  const client = closeAfterTest(new Client2(INFO, { ...CAPABILITIES, versionNegotiation }));
  client.setRequestHandler('elicitation/create', () => ACCEPT);
  await client.connect(new Transport2(url, reach));
  expect(client.getNegotiatedProtocolVersion()).toBe('2026-07-28');
  return (name) => client.callTool({ name });
}

type Call = (name: string) => Promise<unknown>;

const CLIENTS = { '1.x, session era': connect1, '2.x, stateless era': connect2 } as const;

const CALLS = [
  { tool: 'one__ask', said: ACCEPT },
  { tool: 'one__ask-twice', said: [ACCEPT, ACCEPT] },
  { tool: 'one__ask-both', said: [ACCEPT, ACCEPT] },
  { tool: 'two__ask', said: { inputResponses: { who: ACCEPT }, requestState: 'state-1' } },
  {
    tool: 'two__rounds',
    said: { inputResponses: { 'round-1': ACCEPT }, requestState: 'round-0,round-1' },
  },
];

test.each(
  Object.entries(CLIENTS).flatMap(([client, connect]) =>
    CALLS.map((call) => ({ client, connect, ...call })),
  ),
)('§18.3 the official client $client is asked by $tool', async ({ connect, tool, said }) => {
  const call = await connect();
  const text = JSON.stringify(said);
  for (let round = 0; round < 2; round += 1) {
    expect(await call(tool)).toMatchObject({ content: [{ type: 'text', text }] });
  }
});
