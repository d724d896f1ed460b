// §13: the log says who logged in by which client, and of which client a refusal is.
import { describe, expect, test } from 'vitest';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { type Broker, startBroker } from '../../support/oauth/broker.ts';
import { documentAnswer, startDocumentHost } from '../../support/oauth/document-host.ts';
import { type Client, REDIRECT } from '../../support/oauth/login-steps.ts';

let broker: Broker;

const linesOf = (msg: string) => broker.gateway.log.filter((line) => line.msg === msg);
const last = () => broker.gateway.log.at(-1);

/** By way of the provider's page, which proxy mode leaves to the client. Resolves to the refresh token. */
async function redeem(client: Client, mode: string): Promise<string> {
  const { steps } = broker;
  const back =
    mode === 'broker' ? await steps.logIn(client) : new URL(`${REDIRECT}?code=provider-code`);
  const { status, json } = await steps.redeem(client, back);
  expect([status, json]).toEqual([200, expect.anything()]);
  return json.refresh_token;
}

/** The provider's tokens for Ada. */
async function answerAda(mode: string, tokens: object): Promise<void> {
  if (mode === 'broker') return broker.answerLogins({ sub: 'ada' }, tokens);
  broker.answer(200, { access_token: await broker.sign({ sub: 'ada' }), ...tokens });
}

describe('what is logged of a login', () => {
  test.each(['broker', 'proxy'])(
    '§4.7 log: a login has client and user, in %s mode',
    async (mode) => {
      broker = closeAfterTest(await startBroker({ OAUTH_MODE: mode }));
      const { steps, gateway } = broker;
      const client = await steps.register({ client_name: `Ada’s editor${'x'.repeat(500)}` });
      const access = await broker.sign({ sub: 'ada' });
      await answerAda(mode, { access_token: access, refresh_token: 'the-refresh-token' });
      const refreshToken = await redeem(client, mode);
      const facts = {
        client: client.id,
        clientName: `Ada’s editor${'x'.repeat(88)}`,
        user: 'ada',
      };
      expect(linesOf('Logged in.')).toMatchObject([{ level: 'info', ...facts }]);
      await steps.refresh(client, refreshToken);
      expect(linesOf('Refreshed.')).toMatchObject([{ level: 'debug', ...facts }]);
      expect(linesOf('Logged in.')).toHaveLength(1);
      const log = JSON.stringify(gateway.log);
      for (const secret of [access, 'the-refresh-token', refreshToken, client.verifier]) {
        expect(log).not.toContain(secret);
      }
    },
  );

  test('§4.7 log: a refresh in proxy mode that got the last answer again says so', async () => {
    broker = closeAfterTest(await startBroker({ OAUTH_MODE: 'proxy' }));
    const client = await broker.steps.register({ client_name: 'Editor' });
    const access = await broker.sign({ sub: 'ada' });
    const tokens = { access_token: access, expires_in: 300, refresh_token: 'r-0' };
    broker.answer(200, tokens);
    await redeem(client, 'proxy');
    await broker.steps.refresh(client, 'r-0');
    await broker.steps.refresh(client, 'r-0');
    broker.answer(200, { ...tokens, refresh_token: 'r-1' });
    await broker.steps.refresh(client, 'r-0', { scope: 'openid' });
    const facts = { client: client.id, clientName: 'Editor', user: 'ada' };
    const [again, renewed] = linesOf('Refreshed.').slice(-2);
    expect(again).toMatchObject({ level: 'debug', ...facts, isLastAnswer: true });
    expect(renewed).toMatchObject(facts);
    expect(renewed).not.toHaveProperty('isLastAnswer');
  });

  test.each(['broker', 'proxy'])(
    '§4.7 log: the line of a token request has client, user and grant, in %s mode',
    async (mode) => {
      broker = closeAfterTest(await startBroker({ OAUTH_MODE: mode }));
      const client = await broker.steps.register();
      expect(last()).toMatchObject({ msg: 'Answered.', client: client.id });
      await answerAda(mode, { expires_in: 300, refresh_token: 'r-0' });
      const refreshToken = await redeem(client, mode);
      const facts = { msg: 'Answered.', path: '/oauth/token', client: client.id, user: 'ada' };
      expect(last()).toMatchObject({ ...facts, grant: 'authorization_code' });
      // Once with the last answer of the grant, once with a new one.
      for (const scope of [undefined, 'openid']) {
        await broker.steps.refresh(client, refreshToken, scope === undefined ? {} : { scope });
        expect(last()).toMatchObject({ ...facts, grant: 'refresh_token' });
      }
      await broker.steps.post('/oauth/revoke', { token: 'made-up', client_id: client.id });
      expect(last()).not.toHaveProperty('user');
    },
  );

  test('§4.7 log: a client that a document describes has its name, too', async () => {
    const host = await startDocumentHost({ names: ['client.example'] });
    const id = 'https://client.example/client.json';
    broker = closeAfterTest(
      await startBroker({ CIMD_ALLOWED_HOSTS: 'client.example' }, { network: host.network }),
    );
    host.answer(
      documentAnswer({ client_id: id, client_name: 'Described', redirect_uris: [REDIRECT] }),
    );
    await redeem({ ...(await broker.steps.register()), id }, 'broker');
    expect(linesOf('Logged in.')).toMatchObject([{ client: id, clientName: 'Described' }]);
    await host.close();
  });

  test('§4.7 log: an opaque token of proxy mode names nobody', async () => {
    broker = closeAfterTest(await startBroker({ OAUTH_MODE: 'proxy' }));
    broker.answer(200, { access_token: 'opaque' });
    const client = await broker.steps.register();
    await redeem(client, 'proxy');
    expect(linesOf('Logged in.')).toMatchObject([{ client: client.id }]);
    expect(linesOf('Logged in.')[0]).not.toHaveProperty('user');
  });

  test('§4.7 log: what was denied, failed or refused has its client', async () => {
    broker = closeAfterTest(await startBroker());
    const { steps } = broker;
    const client = await steps.register();

    await steps.decide(await steps.ask(client), 'deny');
    expect(last()).toMatchObject({ level: 'info', error: 'access_denied', client: client.id });

    const failed = await steps.approve(client);
    const state = failed.asked.searchParams.get('state') ?? '';
    await steps.callback({ error: 'access_denied', state }, failed.cookie);
    expect(last()).toMatchObject({ error: 'refused_by_provider', client: client.id });
    expect(last()?.details).toContain('access_denied');

    const stolen = await steps.approve(client);
    await steps.callback({ code: 'c', state: stolen.asked.searchParams.get('state') ?? '' });
    expect(last()).toMatchObject({ error: 'oauth_invalid_request', client: client.id });

    await steps.authorize(client, { response_type: 'x' });
    expect(last()).toMatchObject({ error: 'unsupported_response_type', client: client.id });

    for (const ask of [
      () => steps.redeem(client, new URL(`${REDIRECT}?code=none`)),
      () => steps.refresh(client, 'r'),
    ]) {
      expect((await ask()).status).toBe(400);
      expect(last()).toMatchObject({ msg: 'Refused.', client: client.id });
    }
    const unknown = { ...client, id: `svc-${'x'.repeat(500)}` };
    const back = new URL(`${REDIRECT}?code=none`);
    expect((await steps.redeem(unknown, back)).status).toBe(401);
    expect(last()?.client).toBe(unknown.id.slice(0, 200));
    await broker.gateway.request({
      method: 'POST',
      path: '/oauth/token',
      body: { grant_type: 'x', client_id: client.id },
    });
    expect(last()).toMatchObject({ error: 'unsupported_grant_type', client: client.id });
  });
});
