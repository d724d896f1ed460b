// §12: a provider that stalls must not keep more than a hundred of our requests.
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import {
  startGateway,
  type TestGateway,
  type TestResponse,
} from '../../support/gateway/gateway.ts';
import { closeAfterTest, useShared } from '../../support/lifetimes.ts';
import { createLoginSteps } from '../../support/oauth/login-steps.ts';
import { startUpstream } from '../../support/oauth/upstream.ts';

const MAX = 100;

let gateway: TestGateway;
let stalled: ServerResponse[] = [];

const upstream = useShared(startUpstream);

async function start(env: Readonly<Record<string, string>>): Promise<void> {
  stalled = [];
  upstream.answer((res) => void stalled.push(res));
  gateway = closeAfterTest(
    await startGateway({
      env: {
        OAUTH_AUTHORIZATION_URL: 'https://id.example/authorize',
        OAUTH_TOKEN_URL: `${upstream.url}/token`,
        OAUTH_REVOCATION_URL: `${upstream.url}/revoke`,
        OAUTH_CLIENT_ID: 'provider-client',
        OAUTH_TOKEN_RATE_LIMIT_MAX: '10000',
        ...env,
      },
    }),
  );
}

const post = (path: string, fields: Readonly<Record<string, string>>): Promise<TestResponse> =>
  gateway.request({ method: 'POST', path, body: new URLSearchParams(fields) });
const refresh = (n: number) =>
  post('/oauth/token', {
    grant_type: 'refresh_token',
    refresh_token: `token-${n}`,
    client_id: 'my-app',
  });
const revoke = (n: number) => post('/oauth/revoke', { token: `token-${n}`, client_id: 'my-app' });

/** As many calls as there may be, all waiting for the provider. */
async function fill<Answer>(
  ask: (n: number) => Promise<Answer>,
): Promise<readonly Promise<Answer>[]> {
  const asked = Array.from({ length: MAX }, (_, n) => ask(n));
  await expect.poll(() => stalled.length).toBe(MAX);
  return asked;
}

async function answerAll(): Promise<void> {
  const body = JSON.stringify({ access_token: await gateway.issuer.sign() });
  for (const res of stalled.splice(0)) res.end(body);
}

function expectBusy({ status, headers, json }: TestResponse): void {
  expect(status).toBe(503);
  expect(Number(headers['retry-after'])).toBeGreaterThan(0);
  expect(json).toEqual({
    error: 'server_error',
    error_description: expect.stringMatching(/identity provider/),
  });
}

describe('calls of the provider in proxy mode', () => {
  test('§12 provider calls: the 101st is refused at once, at token and at revoke', async () => {
    await start({});
    const before = upstream.received.length;
    const waiting = await fill(refresh);
    expectBusy(await refresh(MAX));
    expectBusy(await revoke(MAX));
    expect(upstream.received.length).toBe(before + MAX);
    await answerAll();
    for (const answer of await Promise.all(waiting)) expect(answer.status).toBe(200);
  });

  test('§12 provider calls: a place is free again after an answer, and after a connection that broke', async () => {
    await start({});
    const waiting = await fill(refresh);
    let ended = 0;
    for (const answer of waiting) void answer.then(() => (ended += 1));
    stalled.shift()?.end('{}');
    stalled.shift()?.destroy();
    await expect.poll(() => ended).toBe(2);
    const next = [refresh(MAX), revoke(MAX)];
    await expect.poll(() => stalled.length).toBe(MAX);
    expectBusy(await refresh(MAX + 1));
    await answerAll();
    await Promise.all([...waiting, ...next]);
    upstream.answer((res) => void res.end('{}'));
    expect((await refresh(0)).status).toBe(200);
  });
});

describe('calls of the provider in broker mode', () => {
  const steps = createLoginSteps({ request: (request) => gateway.request(request) });

  test('§12 provider calls: logins over a hundred come back at once, and with nothing', async () => {
    await start({
      OAUTH_MODE: 'broker',
      OAUTH_CONSENT_RATE_LIMIT_MAX: '10000',
      OAUTH_CALLBACK_RATE_LIMIT_MAX: '10000',
    });
    const client = await steps.register();
    const waiting = await fill(() => steps.logIn(client));
    const { searchParams } = await steps.logIn(client);
    expect(searchParams.get('error')).toBe('server_error');
    expect(searchParams.get('error_description')).toMatch(/identity provider/);
    expect(stalled).toHaveLength(MAX);
    await answerAll();
    await Promise.all(waiting);
  });
});
