// §4.6, §4.7, RFC 6749 §3.1: a parameter without a value counts as omitted, in every mode.
import { describe, expect, test } from 'vitest';
import { useShared } from '../../support/lifetimes.ts';
import { type Broker, startBroker } from '../../support/oauth/broker.ts';
import { type Client, questionOf, REDIRECT, STATE } from '../../support/oauth/login-steps.ts';

/** None of them has to be there. */
const OPTIONAL = ['resource', 'request', 'request_uri', 'registration', 'scope', 'prompt', 'x'];

const authorizeQuery = (client: Client) => ({
  client_id: client.id,
  redirect_uri: REDIRECT,
  response_type: 'code',
  state: STATE,
  code_challenge: client.challenge,
  code_challenge_method: 'S256',
});

const tokenForm = (client: Client) => ({
  grant_type: 'refresh_token',
  refresh_token: 'r',
  client_id: client.id,
});

/** Each parameter without a value before and behind itself: no repetition. */
const surround = (form: Readonly<Record<string, string>>): string =>
  [
    ...Object.keys(form).map((name) => `${name}=`),
    new URLSearchParams(form),
    ...Object.keys(form),
  ].join('&');

const EMPTY = OPTIONAL.map((name) => `${name}=`).join('&');

const authorize = (broker: Broker, query: string) => broker.steps.get(`/oauth/authorize?${query}`);
const post = (broker: Broker, path: string, text: string) =>
  broker.gateway.request({
    method: 'POST',
    path,
    body: text,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });

describe('in proxy mode', () => {
  const broker = useShared(() => startBroker({ OAUTH_MODE: 'proxy' }));

  test('§4.6 parameters: at authorize one without a value is not forwarded, and no repetition', async () => {
    const client = await broker.steps.register();
    const query = authorizeQuery(client);
    for (const id of [client.id, 'a-client-of-the-provider']) {
      const asked = { ...query, client_id: id };
      const { status, headers } = await authorize(broker, `${EMPTY}&${surround(asked)}`);
      expect(status).toBe(302);
      const sent = [...new URL(headers.location ?? '').searchParams];
      expect(sent).toEqual(
        Object.entries({ ...asked, client_id: id === client.id ? 'provider-client' : id }),
      );
    }
  });

  test.each(Object.keys(authorizeQuery({ id: '', verifier: '', challenge: '' })))(
    '§7.3 parameters: %s without a value is missing at authorize',
    async (name) => {
      const query = authorizeQuery(await broker.steps.register());
      const form = new URLSearchParams({ ...query, [name]: '' });
      const { status, json } = await authorize(broker, `${form}`);
      expect([status, json.error, json.error_description]).toEqual([
        400,
        'invalid_request',
        `${name} is missing.`,
      ]);
    },
  );

  test('§4.7 parameters: of a form and of JSON one without a value is not forwarded', async () => {
    broker.answer(200, {});
    const client = await broker.steps.register();
    const sent = {
      ...tokenForm(client),
      client_id: 'provider-client',
      client_secret: 'provider-secret',
    };
    await post(broker, '/oauth/token', `${EMPTY}&${surround(tokenForm(client))}`);
    expect(broker.upstream.received.at(-1)?.form.toString()).toBe(`${new URLSearchParams(sent)}`);
    const body = {
      ...Object.fromEntries(OPTIONAL.map((name) => [name, ''])),
      ...tokenForm(client),
    };
    await broker.gateway.request({ method: 'POST', path: '/oauth/token', body });
    expect(broker.upstream.received.at(-1)?.form.toString()).toBe(`${new URLSearchParams(sent)}`);
  });

  test('§4.7 parameters: nor for a client of the provider', async () => {
    broker.answer(200, {});
    const form = { ...tokenForm({ id: 'my-app', verifier: '', challenge: '' }), token: '' };
    await post(broker, '/oauth/token', `${new URLSearchParams(form)}&client_secret=&${EMPTY}`);
    expect(broker.last()).toEqual({
      grant_type: 'refresh_token',
      refresh_token: 'r',
      client_id: 'my-app',
    });
  });

  test('§4.1 parameters: a revocation goes on without them, too', async () => {
    broker.respond((res) => void res.writeHead(200).end());
    const { id } = await broker.steps.register();
    const form = `token=&token_type_hint=&token=t&client_id=${id}&client_id=&${EMPTY}`;
    expect((await post(broker, '/oauth/revoke', form)).status).toBe(200);
    expect(broker.last()).toEqual({
      token: 't',
      client_id: 'provider-client',
      client_secret: 'provider-secret',
    });
  });
});

describe('in broker mode', () => {
  const broker = useShared(startBroker);

  test('§4.6 parameters: at authorize one without a value is as if it were left out', async () => {
    const client = await broker.steps.register();
    const query = authorizeQuery(client);
    const page = await authorize(broker, `${EMPTY}&${surround(query)}`);
    const { status, headers } = await broker.steps.decide(questionOf(page));
    expect(status).toBe(303);
    const asked = new URL(headers.location ?? '').searchParams;
    const plain = await broker.steps.decide(
      questionOf(await authorize(broker, `${new URLSearchParams(query)}`)),
    );
    const expected = new URL(plain.headers.location ?? '').searchParams;
    for (const fresh of ['state', 'nonce', 'code_challenge']) {
      asked.delete(fresh);
      expected.delete(fresh);
    }
    expect([...asked]).toEqual([...expected]);
  });

  test('§7.3 parameters: what is required is missing without a value, and state is not required', async () => {
    const client = await broker.steps.register();
    const query = authorizeQuery(client);
    const ask = (name: string) =>
      authorize(broker, `${new URLSearchParams({ ...query, [name]: '' })}`);
    expect((await ask('state')).status).toBe(200);
    const { status, json } = await ask('client_id');
    expect([status, json.error_description]).toEqual([400, 'client_id is missing.']);
    for (const path of ['/oauth/token', '/oauth/revoke']) {
      const missing = await post(broker, path, `client_id=${client.id}&token=&grant_type=`);
      expect([missing.status, missing.json.error]).toEqual([400, 'invalid_request']);
      expect(missing.json.error_description).toMatch(/is missing/);
    }
  });

  test('§4.7 parameters: a code is redeemed, and its refresh token used, as without them', async () => {
    const client = await broker.steps.register();
    const empty = Object.fromEntries(OPTIONAL.map((name) => [name, '']));
    const back = await broker.steps.logIn(client, empty);
    const { status, json } = await broker.steps.redeem(client, back, empty);
    expect(status).toBe(200);
    expect((await broker.steps.refresh(client, json.refresh_token, empty)).json).toEqual(json);
  });
});

test('§8 parameters: a refresh counts as one, whatever stands before its grant_type without a value', async () => {
  const broker = await startBroker({
    OAUTH_MODE: 'proxy',
    OAUTH_TOKEN_RATE_LIMIT_MAX: '1',
  });
  try {
    broker.answer(200, {});
    const client = await broker.steps.register();
    const refresh = () =>
      post(
        broker,
        '/oauth/token',
        `grant_type=&client_id=&${new URLSearchParams(tokenForm(client))}`,
      );
    for (const { status } of [await refresh(), await refresh()]) expect(status).toBe(200);
    expect(broker.gateway.log.filter(({ msg }) => msg === 'Answered.').at(-1)).toMatchObject({
      client: client.id,
      grant: 'refresh_token',
    });
  } finally {
    await broker.close();
  }
});
