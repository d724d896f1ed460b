// §13, RFC 8707: what the provider is asked to make tokens for.
import { expect, test } from 'vitest';
import { hashSha256 } from '../../../src/platform/ids.ts';
import { buildOAuthKey } from '../../../src/store/keys.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { type Broker, MCP, startBroker } from '../../support/oauth/broker.ts';

const API = 'https://api.example';
let broker: Broker;

const NAMES = [
  { name: 'resource', env: {} },
  { name: 'audience', env: { OAUTH_RESOURCE_PARAMETER: 'audience' } },
];

test.each(NAMES)(
  '§4.7 broker: a client that names no resource gets tokens for this service: $name everywhere',
  async ({ name, env }) => {
    broker = closeAfterTest(await startBroker(env));
    const { steps, last } = broker;
    const client = await steps.register();
    const { asked } = await steps.approve(client);
    expect(asked.searchParams.getAll(name)).toEqual([MCP]);
    const token = await broker.refreshTokenOf(client, 'r-1');
    expect(last()).toMatchObject({ grant_type: 'authorization_code', [name]: MCP });
    expect((await steps.refresh(client, token)).status).toBe(200);
    expect(last()).toMatchObject({ grant_type: 'refresh_token', [name]: MCP });
  },
);

test('§4.7 broker: OAUTH_RESOURCE_PARAMETER=none tells the provider nothing', async () => {
  broker = closeAfterTest(await startBroker({ OAUTH_RESOURCE_PARAMETER: 'none' }));
  const { steps, last } = broker;
  const client = await steps.register();
  const { asked } = await steps.approve(client, { resource: MCP });
  const token = await broker.refreshTokenOf(client, 'r-1');
  const redeemed = last();
  await steps.refresh(client, token, { resource: MCP });
  for (const sent of [Object.fromEntries(asked.searchParams), redeemed, last()]) {
    expect(sent).not.toHaveProperty('resource');
    expect(sent).not.toHaveProperty('audience');
  }
});

test('§4.7 broker: a refresh is for what the grant was made with, and so are rotated tokens', async () => {
  broker = closeAfterTest(await startBroker({ OIDC_AUDIENCE: `${API},${MCP}` }));
  const { steps, last, sign, answer } = broker;
  const client = await steps.register();
  answer(200, { access_token: await sign(), refresh_token: 'r-1' });
  const { status } = await steps.redeem(client, await steps.logIn(client, { resource: MCP }));
  expect([status, last().resource]).toEqual([200, MCP]);
  answer(200, { access_token: await sign(), refresh_token: 'r-2' });
  await steps.refresh(client, 'r-1');
  expect(last()).toMatchObject({ refresh_token: 'r-1', resource: MCP });
  await steps.refresh(client, 'r-2');
  expect(last()).toMatchObject({ refresh_token: 'r-2', resource: MCP });

  // One that the gateway never saw.
  await steps.refresh(client, 'r-foreign');
  expect(last()).toMatchObject({ refresh_token: 'r-foreign', resource: API });
});

test('§4.7 broker: a refresh for another service: 400 invalid_target', async () => {
  broker = closeAfterTest(await startBroker());
  const { steps, asked } = broker;
  const client = await steps.register();
  const token = await broker.refreshTokenOf(client, 'r-1');
  const before = asked();
  const { status, json } = await steps.refresh(client, token, { resource: 'https://x.example' });
  expect([status, json.error, asked()]).toEqual([400, 'invalid_target', before]);
});

test('§4.7 broker: what 0.1.0 knew of a refresh token still counts, and it can read what is new', async () => {
  broker = closeAfterTest(await startBroker());
  const { steps, last, store } = broker;
  const [client, thief] = [await steps.register(), await steps.register()];
  const keyOf = (token: string) => buildOAuthKey('refresh', hashSha256(token));
  await store.set(keyOf('r-old'), client.id, 3600);
  await broker.refreshTokenOf(client, 'r-new');
  expect(await store.get(keyOf('r-new'))).toBe(client.id);
  expect((await steps.refresh(thief, 'r-old')).json.error).toBe('invalid_grant');
  expect((await steps.refresh(client, 'r-old')).status).toBe(200);
  expect(last()).toMatchObject({ refresh_token: 'r-old', resource: MCP });
});

test('§4.7 broker: a grant from before whose client names this service stays for the name that it has', async () => {
  broker = closeAfterTest(await startBroker());
  const { steps, last, asked } = broker;
  const client = await steps.register();
  broker.answer(200, { access_token: await broker.sign(), refresh_token: 'r-next' });
  expect((await steps.refresh(client, 'r-before', { resource: MCP })).status).toBe(200);
  expect(last()).not.toHaveProperty('resource');
  expect((await steps.refresh(client, 'r-next', { resource: MCP })).status).toBe(200);
  expect(last()).not.toHaveProperty('resource');
  expect(asked()).toBe(2);
});

test('§4.7 broker: where that brings a token for something else, it is asked for by name, too', async () => {
  broker = closeAfterTest(await startBroker());
  const { steps, last, asked } = broker;
  const client = await steps.register();
  const [good, bad] = [await broker.sign(), await broker.sign({ aud: 'https://other.example' })];
  broker.respond((res) => {
    const { resource, refresh_token: sent } = last();
    const access = resource === MCP ? good : bad;
    res.end(JSON.stringify({ access_token: access, refresh_token: `${sent}+` }));
  });
  const { status, json } = await steps.refresh(client, 'r-before', { resource: MCP });
  expect([status, json.access_token, json.refresh_token]).toEqual([200, good, 'r-before++']);
  expect([last().refresh_token, asked()]).toEqual(['r-before+', 2]);
  expect((await steps.refresh(client, 'r-before++')).status).toBe(200);
  expect(last()).toMatchObject({ refresh_token: 'r-before++', resource: MCP });
});
