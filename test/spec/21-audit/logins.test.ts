// §21.1: logins, registrations and revocations: one line each, and no secret in any.
import { beforeEach, describe, expect, test } from 'vitest';
import { type AuditLog, createAuditLog } from '../../support/gateway/audit-log.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { type Broker, startBroker } from '../../support/oauth/broker.ts';
import { type Client, REDIRECT } from '../../support/oauth/login-steps.ts';

let audit: AuditLog;
let broker: Broker;

beforeEach(async () => {
  audit = await createAuditLog();
});

async function start(mode: string): Promise<void> {
  broker = closeAfterTest(await startBroker({ OAUTH_MODE: mode, ...audit.env }));
}

/** What was written since the test began, without what differs each time. */
const said = () =>
  audit.lines().map(({ time, duration, ip, ...line }) => {
    expect(new Date(time).toISOString()).toBe(time);
    expect(duration).toEqual(expect.any(Number));
    expect(ip).toBe('127.0.0.1');
    return line;
  });

/** By way of the provider's page, which proxy mode leaves to the client. */
async function logIn(client: Client, mode: string) {
  const { steps } = broker;
  const back =
    mode === 'broker' ? await steps.logIn(client) : new URL(`${REDIRECT}?code=provider-code`);
  return back.searchParams.has('code') ? steps.redeem(client, back) : undefined;
}

describe.each(['broker', 'proxy'])('what is written of logins in %s mode', (mode) => {
  test('§21.1 audit: a registration, a login, a refresh and a revocation are a line each', async () => {
    await start(mode);
    const { steps } = broker;
    const client = await steps.register();
    const access = await broker.sign({ sub: 'ada' });
    const tokens = { access_token: access, refresh_token: 'the-refresh-token' };
    if (mode === 'broker') broker.answerLogins({ sub: 'ada' }, tokens);
    else broker.answer(200, tokens);
    const { refresh_token: token } = (await logIn(client, mode))?.json ?? {};
    await steps.refresh(client, token);
    await steps.post('/oauth/revoke', { token, client_id: client.id });
    const by = { client: client.id, outcome: 'success' };
    expect(said()).toMatchObject([
      { event: 'registration', ...by },
      { event: 'login', user: 'ada', ...by },
      { event: 'refresh', user: 'ada', ...by },
      { event: 'revocation', ...by },
    ]);
    for (const secret of [access, 'the-refresh-token', token, client.verifier, 'provider-secret']) {
      expect(audit.text()).not.toContain(secret);
    }
  });

  test('§21.1 audit: what fails is a line, too, with its reason', async () => {
    await start(mode);
    const { steps, gateway } = broker;
    await gateway.request({ method: 'POST', path: '/oauth/register', body: { redirect_uris: [] } });
    const client = await steps.register();
    await steps.authorize(client, { redirect_uri: 'https://evil.example/' });
    broker.answer(400, { error: 'invalid_grant', error_description: 'the-code is used' });
    await logIn(client, mode);
    await steps.refresh({ ...client, id: 'svc-unknown' }, 'the-refresh-token');
    await steps.post('/oauth/revoke', { client_id: client.id });
    await steps.post('/oauth/token', { grant_type: 'password', password: 'hunter2' });
    const failed = { outcome: 'failure', client: client.id };
    expect(said()).toEqual([
      { event: 'registration', outcome: 'failure', reason: 'invalid_client_metadata' },
      { event: 'registration', outcome: 'success', client: client.id },
      { event: 'login', ...failed, reason: 'unregistered_redirect_uri' },
      {
        event: 'login',
        ...failed,
        reason: mode === 'broker' ? 'upstream_failed' : 'refused_by_provider',
      },
      {
        event: 'refresh',
        ...failed,
        client: 'svc-unknown',
        reason: mode === 'broker' ? 'invalid_grant' : 'unauthenticated_client',
      },
      { event: 'revocation', ...failed, reason: 'oauth_invalid_request' },
      { event: 'login', outcome: 'failure', reason: 'unsupported_grant_type' },
    ]);
    expect(audit.text()).not.toMatch(/hunter2|the-code|the-refresh-token/);
  });
});

test('§21.1 audit: a login that the user, or the provider, does not let go on is one line', async () => {
  await start('broker');
  const { steps } = broker;
  const client = await steps.register();
  await steps.decide(await steps.ask(client), 'deny');
  const { cookie, asked } = await steps.approve(client);
  const state = asked.searchParams.get('state') ?? '';
  await steps.callback({ error: 'access_denied', state }, cookie);
  await steps.callback({ code: 'provider-code', state }, cookie);
  expect(said().slice(1)).toEqual([
    { event: 'login', outcome: 'failure', client: client.id, reason: 'access_denied' },
    { event: 'login', outcome: 'failure', client: client.id, reason: 'refused_by_provider' },
    { event: 'login', outcome: 'failure', reason: 'oauth_invalid_request' },
  ]);
});

test('§21.1 audit: a line has the trace of its request, and an address as TRUST_PROXY says', async () => {
  broker = closeAfterTest(await startBroker({ ...audit.env, TRUST_PROXY: 'all' }));
  await broker.gateway.request({
    method: 'POST',
    path: '/oauth/register',
    body: { redirect_uris: [REDIRECT] },
    headers: {
      traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
      'x-forwarded-for': '192.0.2.7',
    },
  });
  expect(audit.lines()).toMatchObject([
    { trace: '4bf92f3577b34da6a3ce929d0e0e4736', ip: '192.0.2.7' },
  ]);
});

test('§21.1 audit: requests that a limit refuses, and documents, are no lines', async () => {
  broker = closeAfterTest(await startBroker({ ...audit.env, DCR_RATE_LIMIT_MAX: '1' }));
  const { gateway, steps } = broker;
  const client = await steps.register();
  const request = { method: 'POST', path: '/oauth/register', body: { redirect_uris: [REDIRECT] } };
  expect((await gateway.request(request)).status).toBe(429);
  await gateway.request({ path: '/.well-known/oauth-authorization-server' });
  await steps.authorize(client);
  expect(said()).toEqual([{ event: 'registration', outcome: 'success', client: client.id }]);
});
