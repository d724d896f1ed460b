// §12: what a registration may cost, and for how long.
import { describe, expect, test } from 'vitest';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { BASE, type Broker, startBroker } from '../../support/oauth/broker.ts';
import { documentAnswer, startDocumentHost } from '../../support/oauth/document-host.ts';
import { type Client, REDIRECT } from '../../support/oauth/login-steps.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

let broker: Broker;

const register = (metadata: object) =>
  broker.gateway.request({
    method: 'POST',
    path: '/oauth/register',
    body: { redirect_uris: [REDIRECT], ...metadata },
  });
const isKnown = async (client: Client) =>
  (await broker.steps.authorize(client, {}, undefined, 'text/html')).status === 200;

/** The refresh token of the client that logged in last. */
let token: string;

async function logIn(client: Client): Promise<void> {
  ({ refresh_token: token } = await broker.logIn(client));
}

async function refresh(client: Client): Promise<void> {
  const { status, json } = await broker.steps.refresh(client, token);
  expect(status).toBe(200);
  token = json.refresh_token;
}

describe('the size of a registration', () => {
  test.each(['broker', 'proxy'])(
    '§4.8 register: a record has at most 8 KiB, in %s mode',
    async (mode) => {
      broker = closeAfterTest(await startBroker({ OAUTH_MODE: mode }));
      const filled = (length: number) => ({
        redirect_uris: [1, 2, 3, 4].map((n) => `https://client.example/${n}`.padEnd(1900, 'x')),
        client_name: 'x'.repeat(length),
      });
      const small = await register(filled(0));
      expect(small.status).toBe(201);
      const room = 8192 - Buffer.byteLength(small.text);
      expect(room).toBeGreaterThan(0);
      expect((await register(filled(room))).status).toBe(201);
      const { status, json } = await register(filled(room + 1));
      expect([status, json.error]).toEqual([400, 'invalid_client_metadata']);
      expect(json.error_description).toContain('8192');
      // Bytes, not characters.
      expect((await register({ ...filled(0), client_name: 'é'.repeat(room / 2 + 1) })).status).toBe(
        400,
      );
    },
  );
});

describe('how long a registration lasts', () => {
  test('§4.8 register: in broker mode one day, until its client gets a token', async () => {
    broker = closeAfterTest(await startBroker());
    const [unused, used] = [await broker.steps.register(), await broker.steps.register()];
    broker.clock.sleep(DAY - HOUR);
    expect(await isKnown(unused)).toBe(true);
    await logIn(used);
    broker.clock.advance(HOUR);
    expect([await isKnown(unused), await isKnown(used)]).toEqual([false, true]);
    broker.clock.sleep(29 * DAY);
    expect(await isKnown(used)).toBe(true);
    await refresh(used);
    broker.clock.sleep(29 * DAY);
    expect(await isKnown(used)).toBe(true);
    broker.clock.sleep(2 * DAY);
    expect(await isKnown(used)).toBe(false);
  });

  test('§4.8 register: each token counts, but for a hundredth of DCR_CLIENT_TTL after one that counted', async () => {
    broker = closeAfterTest(await startBroker());
    const client = await broker.steps.register();
    await logIn(client);
    broker.clock.sleep(6 * HOUR);
    await refresh(client);
    broker.clock.sleep(2 * HOUR);
    await refresh(client);
    broker.clock.sleep(30 * DAY - HOUR);
    expect(await isKnown(client)).toBe(true);
    broker.clock.sleep(2 * HOUR);
    expect(await isKnown(client)).toBe(false);
  });

  test('§4.8 register: DCR_RENEW=false counts from the first token', async () => {
    broker = closeAfterTest(await startBroker({ DCR_RENEW: 'false' }));
    const client = await broker.steps.register();
    broker.clock.sleep(DAY / 2);
    await logIn(client);
    broker.clock.sleep(20 * DAY);
    await logIn(client);
    broker.clock.sleep(9 * DAY);
    expect(await isKnown(client)).toBe(true);
    broker.clock.sleep(2 * DAY);
    expect(await isKnown(client)).toBe(false);
  });

  test('§4.8 register: a login that comes to no token is none', async () => {
    broker = closeAfterTest(await startBroker());
    const { steps, clock } = broker;
    const client = await steps.register();
    broker.answer(200, { access_token: 'opaque' });
    const { searchParams } = await steps.logIn(client);
    expect(searchParams.get('error')).toBe('server_error');
    clock.sleep(DAY);
    expect(await isKnown(client)).toBe(false);
  });

  test('§4.8 register: DCR_CLIENT_TTL of less than a day holds from the beginning', async () => {
    broker = closeAfterTest(await startBroker({ DCR_CLIENT_TTL: '7200' }));
    const client = await broker.steps.register();
    broker.clock.advance(2 * HOUR);
    expect(await isKnown(client)).toBe(false);
  });

  test('§4.8 register: in proxy mode DCR_CLIENT_TTL, from the registration on', async () => {
    broker = closeAfterTest(await startBroker({ OAUTH_MODE: 'proxy' }));
    const { steps, clock, gateway } = broker;
    const client = await steps.register();
    const isRedirected = async () => (await steps.authorize(client)).status === 302;
    clock.sleep(29 * DAY);
    broker.answer(200, { access_token: 'a' });
    const { status } = await steps.refresh(client, 'r');
    expect([status, await isRedirected()]).toEqual([200, true]);
    clock.sleep(2 * DAY);
    expect(await isRedirected()).toBe(false);
    expect(gateway.log.at(-1)).toMatchObject({ error: 'unknown_client' });
  });
});

test.each([
  {
    mode: 'broker',
    allowed:
      'https, and http with the host localhost, 127.0.0.1 or [::1], without a fragment, and the schemes cursor (OAUTH_REDIRECT_SCHEMES).',
  },
  {
    mode: 'proxy',
    allowed:
      'https, and http with the host localhost or 127.0.0.1, without a fragment, and the schemes cursor (OAUTH_REDIRECT_SCHEMES).',
  },
])('§4.8 register: a refusal names what $mode mode allows', async ({ mode, allowed }) => {
  const env = { OAUTH_MODE: mode, OAUTH_REDIRECT_SCHEMES: 'cursor' };
  broker = closeAfterTest(await startBroker(env));
  const { json } = await register({ redirect_uris: ['http://192.0.2.1/cb'] });
  expect(json.error_description).toContain(`Allowed are ${allowed}`);
});

describe('redirect URIs of the gateway’s own origin', () => {
  test.each([
    { base: BASE, uri: `${BASE}/callback` },
    { base: BASE, uri: `${BASE}:443/oauth/callback` },
    { base: BASE, uri: 'https://GW.example' },
    { base: 'http://localhost:3000', uri: 'http://localhost:3000/cb' },
    { base: 'http://localhost:3000', uri: 'http://127.0.0.1:3000/cb' },
    { base: 'http://localhost:3000', uri: 'http://[::1]:3000/cb' },
  ])('§4.8 register: $uri at $base: 400 invalid_redirect_uri', async ({ base, uri }) => {
    broker = closeAfterTest(await startBroker({ BASE_URL: base }));
    const { status, json } = await register({ redirect_uris: [uri] });
    expect([status, json.error]).toEqual([400, 'invalid_redirect_uri']);
    expect(json.error_description).toContain('own origin');
  });

  test('§4.8 register: neighbours are others, and no port leads to the gateway', async () => {
    broker = closeAfterTest(await startBroker({ BASE_URL: 'http://localhost:3000' }));
    const { steps } = broker;
    const native = await steps.register({
      redirect_uris: [
        'http://localhost/cb',
        'http://127.0.0.1:3001/cb',
        'https://localhost:3000/cb',
      ],
    });
    const ask = async (redirect_uri: string) =>
      (await steps.authorize(native, { redirect_uri })).status;
    expect(await ask('http://localhost:3001/cb')).toBe(200);
    expect(await ask('https://localhost:3000/cb')).toBe(200);
    expect(await ask('http://localhost:3000/cb')).toBe(400);
    expect(await ask('http://127.0.0.1:3000/cb')).toBe(400);
  });

  test('§4.8 register: a client document cannot name it either', async () => {
    const host = await startDocumentHost({ names: ['client.example'] });
    const id = 'https://client.example/client.json';
    broker = closeAfterTest(
      await startBroker({ CIMD_ALLOWED_HOSTS: 'client.example' }, { network: host.network }),
    );
    const { steps } = broker;
    const client = { id, verifier: '', challenge: 'x'.repeat(43) };
    for (const [uri, status] of [
      ['https://app.example/cb', 200],
      [`${BASE}/cb`, 400],
    ] as const) {
      host.answer(documentAnswer({ client_id: id, redirect_uris: [uri] }));
      expect([uri, (await steps.authorize(client, { redirect_uri: uri })).status]).toEqual([
        uri,
        status,
      ]);
      broker.clock.sleep(DAY);
    }
    await host.close();
  });
});
