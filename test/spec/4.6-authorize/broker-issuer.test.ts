// §13, RFC 9207: whether the provider must name itself is settled when the login begins.
import { describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway/gateway.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { type Broker, startBroker } from '../../support/oauth/broker.ts';
import { type Client, createLoginSteps } from '../../support/oauth/login-steps.ts';

const SECRET = 'the secret of all replicas which is long enough';
const SENDS = { authorization_response_iss_parameter_supported: true };

let broker: Broker;
let replica: TestGateway;
let isDown: boolean;

/** Discovery fails while `isDown`; the endpoints are set by variables. */
const fetchUnlessDown: typeof fetch = async (url, init) => {
  if (isDown && String(url).includes('/.well-known/')) throw new TypeError('fetch failed');
  return fetch(url, init);
};

async function start(down: boolean): Promise<Client> {
  isDown = down;
  broker = closeAfterTest(
    await startBroker({ OAUTH_STATE_SECRET: SECRET }, { fetch: fetchUnlessDown }),
  );
  return broker.steps.register();
}

/** A second process over the same store, which never reached the provider's discovery. */
async function startReplica() {
  const { clock, store, gateway, upstream } = broker;
  replica = closeAfterTest(
    await startGateway({
      deps: {
        clock,
        store: { ...store, close: async () => {} },
        fetch: async (url, init) =>
          String(url).includes('/.well-known/')
            ? Promise.reject(new TypeError())
            : fetch(url, init),
      },
      env: {
        OAUTH_MODE: 'broker',
        BASE_URL: gateway.baseUrl,
        OIDC_ISSUER: gateway.issuer.url,
        OAUTH_AUTHORIZATION_URL: 'https://id.example/authorize',
        OAUTH_TOKEN_URL: `${upstream.url}/token`,
        OAUTH_CLIENT_ID: 'provider-client',
        OAUTH_STATE_SECRET: SECRET,
      },
    }),
  );
  return createLoginSteps(replica);
}

async function begin(client: Client) {
  const { cookie, asked } = await broker.steps.approve(client);
  return { cookie, state: asked.searchParams.get('state') ?? '' };
}

describe('the iss parameter of the provider', () => {
  test('§13 broker: promised at the beginning, it is demanded by a replica that cannot ask', async () => {
    const client = await start(false);
    broker.gateway.issuer.document = SENDS;
    broker.clock.advance(300_000);
    const steps = await startReplica();
    const first = await begin(client);
    const refused = await steps.callback({ code: 'c', state: first.state }, first.cookie);
    expect([refused.status, refused.headers.location]).toEqual([400, undefined]);
    const second = await begin(client);
    const iss = broker.gateway.issuer.url;
    const { status } = await steps.callback({ code: 'c', state: second.state, iss }, second.cookie);
    expect(status).toBe(303);
  });

  test('§13 broker: not promised at the beginning, it is not demanded later', async () => {
    const client = await start(false);
    const { cookie, state } = await begin(client);
    broker.gateway.issuer.document = SENDS;
    broker.clock.advance(300_000);
    expect((await broker.steps.callback({ code: 'c', state }, cookie)).status).toBe(303);
  });

  test('§13 broker: promised meanwhile, where it was not known at the beginning: demanded', async () => {
    const client = await start(true);
    const { cookie, state } = await begin(client);
    broker.gateway.issuer.document = SENDS;
    isDown = false;
    broker.clock.advance(2000);
    expect((await broker.steps.callback({ code: 'c', state }, cookie)).status).toBe(400);
  });

  test('§13 broker: never known, it may be missing but not wrong', async () => {
    const client = await start(true);
    const good = await begin(client);
    const answer = { code: 'c', state: good.state };
    expect((await broker.steps.callback(answer, good.cookie)).status).toBe(303);
    const mixed = await begin(client);
    const wrong = { code: 'c', state: mixed.state, iss: 'https://evil.example' };
    expect((await broker.steps.callback(wrong, mixed.cookie)).status).toBe(400);
  });
});
