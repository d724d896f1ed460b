// Client ID metadata documents: the client_id is the https URL of the client's own description.
import { beforeEach, expect, test } from 'vitest';
import * as sdk1 from '../support/clients/sdk-1-client.ts';
import * as sdk2 from '../support/clients/sdk-2-client.ts';
import { REDIRECT_URI, type Service, startService } from '../support/gateway/service.ts';
import { closeAfterTest, useFresh } from '../support/lifetimes.ts';
import { documentAnswer, startDocumentHost } from '../support/oauth/document-host.ts';

const HOST = 'client.example';
const CLIENT_ID = `https://${HOST}/oauth/client.json`;

let service: Service;
const host = useFresh(() => startDocumentHost({ names: [HOST] }));
beforeEach(() => {
  // Nobody knows the port beforehand (RFC 8252 §7.3).
  host.answer(documentAnswer({ redirect_uris: ['http://127.0.0.1/callback'] }));
});

async function start(allowedHosts: string): Promise<URL> {
  service = closeAfterTest(
    await startService({
      mode: 'broker',
      env: { CIMD_ALLOWED_HOSTS: allowedHosts },
      deps: { network: host.network },
    }),
  );
  return service.mcpUrl;
}

/** Connects, and says which ids were used. */
const CLIENTS = [
  [
    '1.x',
    async (url: URL, clientMetadataUrl = CLIENT_ID) => {
      const memory = { ...sdk1.createMemory(), clientMetadataUrl };
      const { client } = await sdk1.connect(url, memory);
      return { memory, ping: () => client.ping() };
    },
  ],
  [
    '2.x',
    async (url: URL, clientMetadataUrl = CLIENT_ID) => {
      const memory = { ...sdk2.createMemory(), clientMetadataUrl };
      const { client } = await sdk2.connect(url, memory);
      return { memory, ping: () => client.ping() };
    },
  ],
] as const;

test.each(CLIENTS)(
  '§4.6 broker: official client %s logs in by its metadata document, calls and refreshes',
  async (_version, connect) => {
    const { memory, ping } = await connect(await start(HOST));
    await expect(ping()).resolves.toEqual({});

    const [authorization] = memory.saved.authorizations;
    expect(Object.fromEntries(authorization?.searchParams ?? [])).toMatchObject({
      client_id: CLIENT_ID,
      redirect_uri: REDIRECT_URI,
    });
    const [kept] = memory.saved.clients;
    expect(kept).toMatchObject({ client_id: CLIENT_ID });
    // Nothing that a registration would have answered.
    expect(kept).not.toHaveProperty('client_id_issued_at');
    expect(host.requests.map(({ path }) => path)).toEqual(['/oauth/client.json']);

    sdk1.spoil(memory);
    await expect(ping()).resolves.toEqual({});
    expect(memory.saved.authorizations).toHaveLength(1);
    expect(host.strays()).toBe(0);
  },
);

test.each(CLIENTS)(
  '§4.8 broker: official client %s registers where metadata documents are switched off',
  async (_version, connect) => {
    const { memory, ping } = await connect(await start('none'));
    await expect(ping()).resolves.toEqual({});
    expect(memory.saved.clients[0]?.client_id).toMatch(/^svc-/);
    expect(host.requests).toEqual([]);
  },
);

test.each(CLIENTS)(
  '§4.6 broker: the login of official client %s from a foreign host is refused, and says why',
  async (_version, connect) => {
    const url = await start(HOST);
    await expect(connect(url, 'https://other.example/client.json')).rejects.toThrow(
      'The host other.example of the client_id is not allowed here.',
    );
    expect(host.resolved).toEqual([]);
  },
);

test('§4.6 broker: a redirect URI that the document does not name is refused', async () => {
  host.answer(documentAnswer({ redirect_uris: ['http://127.0.0.1/elsewhere'] }));
  const [, connect] = CLIENTS[0];
  await expect(connect(await start(HOST))).rejects.toThrow('invalid_redirect_uri');
});

test('§4.7 broker: a client refreshes while the host of its document is down', async () => {
  const redirect_uris = ['http://127.0.0.1/callback'];
  host.answer(documentAnswer({ redirect_uris }, { 'Cache-Control': 'no-store' }));
  const [, connect] = CLIENTS[0];
  const { memory } = await connect(await start(HOST));
  host.answer((res) => void res.writeHead(503).end());
  const body = new URLSearchParams({
    grant_type: 'refresh_token',
    client_id: CLIENT_ID,
    refresh_token: memory.saved.tokens.at(-1)?.refresh_token ?? '',
  });
  const { status } = await fetch(`${service.baseUrl}/oauth/token`, { method: 'POST', body });
  expect(status).toBe(200);
});
