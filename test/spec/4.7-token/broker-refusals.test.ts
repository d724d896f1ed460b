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

describe('the provider refuses to redeem its code', () => {
  /** What the client is told of a login. */
  const logIn = async () => {
    const back = await broker.steps.logIn(client);
    return {
      error: back.searchParams.get('error'),
      words: back.searchParams.get('error_description'),
      line: lastLine(broker, '/oauth/callback'),
    };
  };

  test.each([
    ['invalid_request', 'DPoP proof is missing'],
    ['invalid_dpop_proof', 'no proof'],
    ['invalid_target', 'The requested resource is unknown'],
    ['unsupported_grant_type', 'not for this client'],
    ['not_allowed', 'Offline tokens not allowed for the user or client'],
  ])(
    '§13 broker: %s is the operator’s matter: server_error, and a warning',
    async (error, said) => {
      broker.answer(400, { error, error_description: `${said}.` });
      const told = await logIn();
      expect(told.error).toBe('server_error');
      expect(told.words).toContain('The gateway is misconfigured');
      expect(told.words).toMatch(new RegExp(`${error}: ${said}\\.$`));
      expect(told.line).toMatchObject({
        level: 'warn',
        error: 'gateway_request_refused',
        details: expect.stringContaining(`${error}: ${said}`),
        client: client.id,
      });
    },
  );

  test('§13 broker: what it repeats of the request is told to nobody', async () => {
    broker.answer(400, { error: 'invalid_request', error_description: 'no use: provider-code' });
    const told = await logIn();
    expect(told.words).toContain('no use');
    expect(told.words).not.toContain('provider-code');
    expect(JSON.stringify(broker.gateway.log)).not.toContain('provider-code');
  });

  test.each([
    'invalid_grant',
    'access_denied',
    'login_required',
    'temporarily_unavailable',
    'server_error',
  ])('§13 broker: of %s nobody has to mend anything here', async (error) => {
    broker.answer(400, { error, error_description: 'why' });
    const { words, line } = await logIn();
    expect(words).toContain(`${error}: why`);
    expect(words).not.toContain('misconfigured');
    expect(line).toMatchObject({ error: 'upstream_failed' });
  });

  test.each([
    { status: 401, body: { error: 'invalid_client', error_description: 'secret is wrong' } },
    { status: 400, body: { error: 'unauthorized_client' } },
    { status: 400, body: { error: 'invalid_client' } },
    { status: 401, body: {} },
    { status: 401, body: { error: 'invalid_grant' } },
  ])('§13 broker: $status $body is about the gateway’s own client', async ({ status, body }) => {
    broker.answer(status, body);
    const { error, words, line } = await logIn();
    expect(error).toBe('server_error');
    expect(words).toContain('The gateway is misconfigured');
    expect(line).toMatchObject({ level: 'warn', error: 'gateway_refused_by_provider' });
    for (const variable of ['OAUTH_CLIENT_ID', 'OAUTH_CLIENT_SECRET', 'OAUTH_CLIENT_AUTH']) {
      expect(JSON.stringify(line)).toContain(variable);
    }
  });

  test('§13 broker: its silence comes to no login', async () => {
    broker.respond((res) => void res.destroy());
    expect((await logIn()).error).toBe('server_error');
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
