// §13, RFC 6749 §4.1.2.1, §5.2: whose matter it is when the provider refuses.
import { beforeEach, describe, expect, test } from 'vitest';
import { useShared } from '../../support/lifetimes.ts';
import { type Broker, startBroker } from '../../support/oauth/broker.ts';
import type { Client } from '../../support/oauth/login-steps.ts';

const broker = useShared(startBroker);
let client: Client;
beforeEach(async () => {
  client = await broker.steps.register();
});

const lastLine = (of: Broker, at: string) =>
  of.gateway.log.filter(({ path }) => path === at).at(-1);

describe('the provider refuses a request of the gateway', () => {
  test.each([
    ['invalid_request', 'DPoP proof is missing'],
    ['invalid_dpop_proof', 'no proof'],
    ['invalid_target', 'The requested resource is unknown'],
    ['unsupported_grant_type', 'not for this client'],
    ['not_allowed', 'Offline tokens not allowed for the user or client'],
  ])('§4.7 broker: %s is the operator’s matter: 502, and a warning', async (error, words) => {
    const { steps, answer } = broker;
    const token = await broker.refreshTokenOf(client, `r-${error}`);
    const back = await steps.logIn(client);
    answer(400, { error, error_description: `${words}.` });
    for (const ask of [() => steps.redeem(client, back), () => steps.refresh(client, token)]) {
      const { status, json } = await ask();
      expect([status, json.error]).toEqual([502, 'server_error']);
      expect(json.error_description).toContain('The gateway is misconfigured');
      expect(json.error_description).toMatch(new RegExp(`${error}: ${words}\\.$`));
      expect(lastLine(broker, '/oauth/token')).toMatchObject({
        level: 'warn',
        error: 'gateway_request_refused',
        details: expect.stringContaining(`${error}: ${words}`),
        client: client.id,
      });
    }
    broker.clock.advance(2000);
    answer(200, { access_token: await broker.sign() });
    expect((await steps.refresh(client, token)).status).toBe(200);
  });

  test('§4.7 broker: what it repeats of the request is told to nobody', async () => {
    const token = await broker.refreshTokenOf(client, 'r-to-be-repeated');
    broker.answer(400, { error: 'invalid_request', error_description: `no use: ${token}` });
    const { status, text } = await broker.steps.refresh(client, token);
    expect(status).toBe(502);
    expect(text).not.toContain(token);
    expect(JSON.stringify(broker.gateway.log)).not.toContain(token);
  });

  test.each([
    'invalid_grant',
    'invalid_scope',
    'access_denied',
    'login_required',
    'interaction_required',
    'consent_required',
    'temporarily_unavailable',
    'server_error',
  ])('§4.7 broker: %s goes on as it came', async (error) => {
    const { steps, answer } = broker;
    const token = await broker.refreshTokenOf(client, `r-${error}`);
    const back = await steps.logIn(client);
    answer(400, { error, error_description: 'why' });
    for (const ask of [() => steps.redeem(client, back), () => steps.refresh(client, token)]) {
      const { status, json } = await ask();
      expect([status, json]).toEqual([400, { error, error_description: 'why' }]);
    }
  });

  test('§4.7 broker: an answer without an error code goes on as it came', async () => {
    const token = await broker.refreshTokenOf(client, 'r-no-code');
    for (const status of [400, 403, 500, 503]) {
      broker.answer(status, { message: 'no OAuth' });
      const answer = await broker.steps.refresh(client, token);
      expect([answer.status, answer.json]).toEqual([status, { message: 'no OAuth' }]);
      broker.clock.advance(20_000);
    }
  });
});

describe('dex answers invalid_request to a spent refresh token', () => {
  const dex = useShared(() =>
    startBroker({ OIDC_PROVIDER: 'dex', OIDC_AUDIENCE: 'https://gw.example/mcp' }),
  );

  const spent = {
    error: 'invalid_request',
    error_description: 'Refresh token is invalid or has already been claimed by another client.',
  };

  test('§4.7 broker: clients hear invalid_grant, after which they log in anew', async () => {
    const own = await dex.steps.register();
    const token = await dex.refreshTokenOf(own, 'spent');
    dex.answer(400, spent);
    const { status, json, headers } = await dex.steps.refresh(own, token);
    expect([status, json]).toEqual([400, { ...spent, error: 'invalid_grant' }]);
    expect(headers['cache-control']).toBe('no-store');
    expect(lastLine(dex, '/oauth/token')).toMatchObject({
      level: 'info',
      error: 'refused_by_provider',
      details: expect.stringContaining('invalid_request: Refresh token is invalid'),
    });
  });

  test('§4.7 broker: of a code it is the operator’s matter there, too', async () => {
    const own = await dex.steps.register();
    const back = await dex.steps.logIn(own);
    dex.answer(400, { error: 'invalid_request' });
    expect((await dex.steps.redeem(own, back)).status).toBe(502);
  });
});

describe('the provider refuses the login', () => {
  const callBack = async (answer: Readonly<Record<string, string>>) => {
    const { cookie, asked } = await broker.steps.approve(client);
    const state = asked.searchParams.get('state') ?? '';
    const { headers } = await broker.steps.callback({ ...answer, state }, cookie);
    const { searchParams } = new URL(headers.location ?? '');
    return {
      error: searchParams.get('error'),
      words: searchParams.get('error_description'),
      line: lastLine(broker, '/oauth/callback'),
    };
  };

  test.each([
    ['unauthorized_client', 'Standard flow is disabled for the client.'],
    ['invalid_client', 'The client does not exist.'],
  ])('§13 broker: %s is about the gateway’s own client: server_error', async (error, said) => {
    const answer = await callBack({ error, error_description: said });
    expect(answer.error).toBe('server_error');
    expect(answer.words).toBe(
      `The gateway is misconfigured; this is not the user's fault. The identity provider said ${error}: ${said}`,
    );
    expect(answer.line).toMatchObject({ level: 'warn', error: 'gateway_refused_by_provider' });
    expect(answer.line?.details).toContain(said);
  });

  test.each([
    ['invalid_request', 'Pushed Authorization Request is only allowed.'],
    ['invalid_scope', 'Invalid scopes: openid offline_access'],
    ['access_denied', 'no'],
  ])('§13 broker: %s goes on as it came, and into the log', async (error, said) => {
    const answer = await callBack({ error, error_description: said });
    expect([answer.error, answer.words]).toEqual([error, said]);
    expect(answer.line).toMatchObject({ level: 'info', error: 'refused_by_provider' });
    expect(answer.line?.details).toContain(`${error}: ${said.replace(/\.$/, '')}`);
    expect(answer.line?.details).not.toContain('..');
  });
});
