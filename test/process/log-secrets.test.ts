// Threats: no token, code, verifier or secret in the log, the metrics, or the store.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { BASE_URL } from '../support/gateway/gateway.ts';
import { endPosterns, type RunningPostern, startPostern } from '../support/gateway/process.ts';
import { checkSession, endSession, openSession, rpc } from '../support/gateway/process-http.ts';
import {
  authorizationUrl,
  type LoggedIn,
  logIn,
  postForm,
} from '../support/gateway/process-login.ts';
import { closeAfterTest } from '../support/lifetimes.ts';
import { startProvider } from '../support/oauth/provider.ts';

afterEach(endPosterns);

const PROVIDER_SECRET = 'hunter2-of-the-provider';
/** Of a client that brings its own credentials. */
const OWN_SECRET = 'hunter2-of-another-client';
const BASIC = Buffer.from(`other:${OWN_SECRET}`).toString('base64');
const FORGED = ['eyJhbGciOiJSUzI1NiJ9', 'eyJzdWIiOiJtYWxsb3J5In0', 'Zm9yZ2VkLXNpZ25hdHVyZQ'];

/** Refreshes; resolves to the new tokens. */
async function refresh(url: string, { clientId, refreshToken }: LoggedIn) {
  const answer = await postForm(`${url}/oauth/token`, {
    grant_type: 'refresh_token',
    refresh_token: refreshToken,
    client_id: clientId,
  });
  expect(answer.status).toBe(200);
  return (await answer.json()) as { access_token: string; refresh_token: string };
}

/** What goes wrong at a provider that is there: each refusal is a line of the log. */
async function beRefused(url: string, { clientId, code, verifier, state }: LoggedIn) {
  const usedAgain = await postForm(`${url}/oauth/token`, {
    grant_type: 'authorization_code',
    ...{ code, client_id: clientId, code_verifier: verifier },
    redirect_uri: 'http://127.0.0.1:9/callback',
  });
  const elsewhere = await postForm(
    `${url}/oauth/token?code=${code}&state=${state}`,
    { grant_type: 'password', code, code_verifier: verifier, client_secret: OWN_SECRET },
    { Authorization: `Basic ${BASIC}` },
  );
  const other = await postForm(
    `${url}/oauth/token`,
    { grant_type: 'refresh_token', refresh_token: OWN_SECRET, client_id: 'other' },
    { Authorization: `Basic ${BASIC}` },
  );
  const authorization = await fetch(
    authorizationUrl(url, clientId, { state, code_challenge: verifier, response_type: 'token' }),
    { redirect: 'manual' },
  );
  const forged = await rpc(
    url,
    { jsonrpc: '2.0', id: 1, method: 'ping' },
    {
      token: FORGED.join('.'),
    },
  );
  return [usedAgain, elsewhere, other, authorization, forged].map(({ status }) => status);
}

async function revoke(url: string, { clientId }: LoggedIn, token: string): Promise<number> {
  return (await postForm(`${url}/oauth/revoke`, { token, client_id: clientId })).status;
}

/** The names of those that stand in the text. */
const leaked = (secrets: Readonly<Record<string, string>>, text: string | Buffer) =>
  Object.entries(secrets).flatMap(([name, secret]) => (text.includes(secret) ? [name] : []));

function expectTraces(postern: RunningPostern): void {
  // Proof that there was something to leak: everything that was asked is in the log.
  const seen = new Set(postern.log().map(({ path, status }) => `${status} ${path}`));
  for (const line of [
    ...['201 /oauth/register', '302 /oauth/authorize', '400 /oauth/authorize'],
    ...['200 /oauth/token', '400 /oauth/token', '401 /oauth/token', '502 /oauth/token'],
    ...[
      '200 /oauth/revoke',
      '502 /oauth/revoke',
      '200 /mcp',
      '401 /mcp',
      '204 /mcp',
      '200 /metrics',
    ],
  ]) {
    expect(seen).toContain(line);
  }
}

test.each(['post', 'basic'] as const)(
  '§5.8 log: nothing secret shows up anywhere (client_secret_%s)',
  async (auth) => {
    const client = { secret: PROVIDER_SECRET, auth };
    const provider = closeAfterTest(await startProvider({ gatewayUrl: BASE_URL, client }));
    const postern = await startPostern({
      ...provider.env,
      BASE_URL,
      LOG_LEVEL: 'debug',
      METRICS_ENABLED: 'true',
    });
    const { url } = postern;
    const ada = await logIn(url, 'ada');
    const session = await openSession(url, ada.accessToken);
    expect(await checkSession(url, { session, token: ada.accessToken })).toBe(200);
    const renewed = await refresh(url, ada);
    expect(await beRefused(url, ada)).toEqual([400, 400, 401, 400, 401]);
    const inQuery = await fetch(`${url}/mcp?access_token=${ada.accessToken}`, { method: 'POST' });
    expect(inQuery.status).toBe(401);
    expect(await endSession(url, { session, token: renewed.access_token })).toBe(204);
    expect(await revoke(url, ada, renewed.refresh_token)).toBe(200);
    const metrics = await (await fetch(`${url}/metrics`)).text();
    await provider.close();
    expect(await revoke(url, ada, renewed.refresh_token)).toBe(502);
    const late = { grant_type: 'refresh_token', refresh_token: ada.refreshToken };
    const answer = await postForm(`${url}/oauth/token`, { ...late, client_id: ada.clientId });
    expect(answer.status).toBe(502);
    postern.kill('SIGTERM');
    await postern.ended;

    expectTraces(postern);
    const secrets: Record<string, string> = {
      ...{ code: ada.code, verifier: ada.verifier, state: ada.state, session },
      ...{ refreshToken: ada.refreshToken, renewedRefreshToken: renewed.refresh_token },
      ...{ PROVIDER_SECRET, OWN_SECRET, BASIC },
      providerBasic: Buffer.from(`gateway:${PROVIDER_SECRET}`).toString('base64'),
    };
    const tokens = {
      ada: ada.accessToken,
      renewed: renewed.access_token,
      forged: FORGED.join('.'),
    };
    for (const [name, token] of Object.entries(tokens)) {
      // The head of a token says no more than its algorithm.
      for (const part of token.split('.').slice(1)) secrets[`${name} ${part.slice(0, 6)}`] = part;
    }
    for (const secret of Object.values(secrets)) expect(secret.length).toBeGreaterThan(15);
    expect(leaked(secrets, postern.stdout)).toEqual([]);
    expect(leaked(secrets, postern.stderr)).toEqual([]);
    expect(leaked(secrets, metrics)).toEqual([]);
    const stored = await readFile(join(postern.dataDir, 'store.mdb'));
    expect(stored.includes(ada.clientId)).toBe(true);
    const { session: _ofTheStore, ...others } = secrets;
    expect(leaked(others, stored)).toEqual([]);
  },
);
