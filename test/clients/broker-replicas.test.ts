// Three gateways over one Redis: whichever a request comes to, it is served.
import { expect, test } from 'vitest';
import { logInAs } from '../../scripts/demo/login.ts';
import { spoil } from '../support/clients/sdk-1-client.ts';
import { connect, createMemory } from '../support/clients/sdk-2-client.ts';
import { INITIALIZE_REQUEST } from '../support/gateway/gateway.ts';
import { startReplicas } from '../support/gateway/replicas.ts';
import { useShared } from '../support/lifetimes.ts';
import type { Client, Question } from '../support/oauth/login-steps.ts';

const replicas = useShared(startReplicas);

const none = () => Promise.resolve();

/** Each step on another replica; `between` runs before each but the first. */
async function logIn(client: Client, between: () => Promise<void> = none): Promise<URL> {
  const question: Question = await replicas.on(0).ask(client);
  await between();
  const approved = await replicas.on(1).decide(question);
  await between();
  const asked = new URL(approved.headers.location ?? '');
  const back = await logInAs('ada', asked, `${replicas.baseUrl}/oauth/callback`);
  await between();
  const parameters = Object.fromEntries(back?.searchParams ?? []);
  const called = await replicas.on(2).callback(parameters, question.cookie);
  await between();
  return new URL(called.headers.location ?? '');
}

/** Other than what was asked for at the login, whose tokens would be given again. */
const ANEW = { scope: 'openid' };

/** A client that is logged in. */
async function loggedIn() {
  const client = await replicas.on(1).register();
  const { json } = await replicas.on(0).redeem(client, await logIn(client));
  return { client, refreshToken: String(json.refresh_token) };
}

async function isAccepted(accessToken: string): Promise<boolean> {
  const answer = await fetch(`${replicas.baseUrl}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${accessToken}` },
    body: JSON.stringify(INITIALIZE_REQUEST),
  });
  return answer.status === 200;
}

test('§4.6 broker: a login goes over three replicas, a step on each', async () => {
  const client = await replicas.on(2).register();
  const since = replicas.served.length;
  const back = await logIn(client);
  expect(Object.fromEntries(back.searchParams)).toMatchObject({ iss: replicas.baseUrl });
  const tokens = await replicas.on(0).redeem(client, back);
  expect(tokens.status).toBe(200);
  const refreshed = await replicas.on(1).refresh(client, tokens.json.refresh_token);
  expect(refreshed.status).toBe(200);
  expect(replicas.served.slice(since)).toEqual([
    'GET /oauth/authorize 0',
    'POST /oauth/consent 1',
    'GET /oauth/callback 2',
    'POST /oauth/token 0',
    'POST /oauth/token 1',
  ]);
  expect(await isAccepted(refreshed.json.access_token)).toBe(true);
});

test('§4.6 broker: a login survives a restart of all replicas before each of its steps', async () => {
  const client = await replicas.on(0).register();
  const back = await logIn(client, replicas.restart);
  const { status, json } = await replicas.on(0).redeem(client, back);
  expect(status).toBe(200);
  await replicas.restart();
  expect((await replicas.on(1).refresh(client, json.refresh_token)).status).toBe(200);
});

test('§4.6 broker: official client 2.x logs in, calls and refreshes, each request on the next replica', async () => {
  const memory = createMemory();
  const { client, transport } = await connect(new URL(`${replicas.baseUrl}/mcp`), memory);
  for (let turn = 0; turn < 3; turn += 1) {
    spoil(memory);
    const calls = Array.from({ length: 3 }, () => client.ping());
    await expect(Promise.all(calls)).resolves.toEqual(Array(3).fill({}));
  }
  await transport.terminateSession();
  expect(memory.saved.authorizations).toHaveLength(1);
});

test('§4.6 broker: what the provider sends to one browser is worth nothing in another, on any replica', async () => {
  const client = await replicas.on(0).register();
  const { asked } = await replicas.on(0).approve(client);
  const stranger = await replicas.on(2).approve(client);
  const back = await logInAs('ada', asked, `${replicas.baseUrl}/oauth/callback`);
  const parameters = Object.fromEntries(back?.searchParams ?? []);
  const { status, json } = await replicas.on(1).callback(parameters, stranger.cookie);
  expect([status, json.error]).toEqual([400, 'invalid_request']);
});

test('§4.7 broker: a refresh token used on all replicas at the same moment has one answer, and the user stays logged in', async () => {
  const { client, refreshToken } = await loggedIn();
  const answers = await Promise.all(
    [0, 1, 2, 0, 1, 2].map((at) => replicas.on(at).refresh(client, refreshToken, ANEW)),
  );
  const [first] = answers;
  expect(first?.status).toBe(200);
  expect(first?.json.refresh_token).not.toBe(refreshToken);
  const answer = { ...first?.json, expires_in: expect.any(Number) };
  for (const { status, json } of answers) expect([status, json]).toEqual([200, answer]);

  // Whoever lost the answer comes again, on whatever replica.
  const again = await replicas.on(2).refresh(client, refreshToken, ANEW);
  expect(again.json).toEqual({ ...first?.json, expires_in: expect.any(Number) });
  const later = await replicas.on(1).refresh(client, first?.json.refresh_token);
  expect(later.status).toBe(200);
  expect(await isAccepted(later.json.access_token)).toBe(true);
});

test("§4.7 broker: another client's refresh is refused on every replica, and the owner's still works", async () => {
  const { client, refreshToken } = await loggedIn();
  const thief = await replicas.on(2).register();
  for (const at of [0, 1, 2]) {
    const { status, json } = await replicas.on(at).refresh(thief, refreshToken);
    expect([status, json.error]).toEqual([400, 'invalid_grant']);
  }
  const [stolen, own] = await Promise.all([
    replicas.on(0).refresh(thief, refreshToken),
    replicas.on(1).refresh(client, refreshToken),
  ]);
  expect([stolen.status, own.status]).toEqual([400, 200]);
  const next = own.json.refresh_token;
  expect((await replicas.on(0).refresh(thief, next)).json.error).toBe('invalid_grant');
  expect((await replicas.on(2).refresh(client, next)).status).toBe(200);
});

test('§4.6 broker: neither codes nor tokens lie in the log of any replica', async () => {
  const client = await replicas.on(1).register();
  const back = await logIn(client);
  const { json } = await replicas.on(0).redeem(client, back);
  const log = JSON.stringify(replicas.log);
  expect(log).toContain('/oauth/callback');
  for (const secret of [back.searchParams.get('code'), json.access_token, json.refresh_token]) {
    expect(log).not.toContain(secret);
  }
});
