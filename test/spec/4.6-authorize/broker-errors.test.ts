// §13, RFC 6749 §4.1.2.1: what is wrong with a request, and who is told.
import { beforeAll, describe, expect, test } from 'vitest';
import { useShared } from '../../support/lifetimes.ts';
import { BASE, startBroker } from '../../support/oauth/broker.ts';
import { type Client, REDIRECT, STATE } from '../../support/oauth/login-steps.ts';

const LOOPBACK = 'http://127.0.0.1/callback';
const PRIVATE = 'cursor://anysphere.cursor-mcp/oauth/callback';
const HTML = 'text/html,application/xhtml+xml,*/*;q=0.8';

const broker = useShared(startBroker);
let client: Client;
beforeAll(async () => {
  client = await broker.steps.register({ redirect_uris: [REDIRECT, LOOPBACK, PRIVATE] });
});

type Change = Readonly<Record<string, string | undefined>>;

/** Comes as a browser. */
const visit = (change: Change, cookie?: string) =>
  broker.steps.authorize(client, change, cookie, HTML);

function answerOf(location: string | undefined): [string, Record<string, string>] {
  const url = new URL(location ?? '');
  return [url.href.split('?')[0] ?? '', Object.fromEntries(url.searchParams)];
}

describe('the state parameter', () => {
  test('§13 broker: a client may leave state out, and it is left out of every answer', async () => {
    const { steps } = broker;
    const expected = { code: expect.any(String), iss: BASE };
    for (const state of [undefined, '']) {
      const back = await steps.logIn(client, { state });
      expect(Object.fromEntries(back.searchParams)).toEqual(expected);
      expect((await steps.redeem(client, back)).status).toBe(200);
    }
    const denied = await steps.decide(await steps.ask(client, { state: undefined }), 'deny');
    expect(answerOf(denied.headers.location)[1]).toEqual({
      error: 'access_denied',
      error_description: expect.any(String),
      iss: BASE,
    });
  });
});

const WRONG: readonly { what: string; change: Change; error: string }[] = [
  { what: 'no response_type', change: { response_type: undefined }, error: 'invalid_request' },
  {
    what: 'another response_type',
    change: { response_type: 'token' },
    error: 'unsupported_response_type',
  },
  { what: 'no challenge', change: { code_challenge: undefined }, error: 'invalid_request' },
  { what: 'no method', change: { code_challenge_method: undefined }, error: 'invalid_request' },
  { what: 'plain', change: { code_challenge_method: 'plain' }, error: 'invalid_request' },
  { what: 'a short challenge', change: { code_challenge: 'x' }, error: 'invalid_request' },
  { what: 'a broken scope', change: { scope: 'a  b' }, error: 'invalid_request' },
  {
    what: 'a foreign resource',
    change: { resource: 'https://other.example' },
    error: 'invalid_target',
  },
];

describe('a wrong request of a known client', () => {
  test.each(WRONG)('§13 broker: $what, on loopback: redirected', async ({ change, error }) => {
    for (const redirect_uri of [LOOPBACK, 'http://127.0.0.1:50123/callback']) {
      const { status, headers } = await visit({ ...change, redirect_uri });
      expect([status, headers['cache-control']]).toEqual([303, 'no-store']);
      expect(answerOf(headers.location)).toEqual([
        redirect_uri,
        {
          error,
          error_description: expect.stringMatching(/^[\x20-\x7E]+$/),
          state: STATE,
          iss: BASE,
        },
      ]);
    }
  });

  test.each(WRONG)('§13 broker: $what, elsewhere: a page with a way back', async (row) => {
    const { status, headers, text } = await visit(row.change);
    expect([status, headers.location]).toEqual([400, undefined]);
    const link = /<a class="button" href="([^"]+)"/.exec(text)?.[1]?.replaceAll('&amp;', '&');
    expect(answerOf(link)).toEqual([
      REDIRECT,
      { error: row.error, error_description: expect.any(String), state: STATE, iss: BASE },
    ]);
    expect(text).toContain('Go back to <code>client.example</code>');
    const program = await broker.steps.authorize(client, row.change);
    expect([program.status, program.json.error]).toEqual([400, row.error]);
  });

  test('§13 broker: without state the answer has none', async () => {
    const { headers } = await visit({
      response_type: 'x',
      state: undefined,
      redirect_uri: LOOPBACK,
    });
    expect(answerOf(headers.location)[1]).not.toHaveProperty('state');
  });

  test('§13 broker: a private scheme is asked about, and shown whole', async () => {
    const { status, text } = await visit({ response_type: 'x', redirect_uri: PRIVATE });
    expect(status).toBe(400);
    expect(text).toContain(`<code>${PRIVATE}</code>`);
    expect(text).toContain(`href="${PRIVATE}?error=unsupported_response_type&amp;`);
  });

  test('§13 broker: redirected by itself where this browser approved the client before', async () => {
    const { steps } = broker;
    const { cookie, asked } = await steps.approve(client);
    await steps.callback({ code: 'c', state: asked.searchParams.get('state') ?? '' }, cookie);
    const wrong = { response_type: 'x', scope: 'email' };
    expect((await visit(wrong, cookie)).status).toBe(303);
    for (const [change, jar] of [
      [wrong, undefined],
      [wrong, (await steps.ask(client)).cookie],
      [{ ...wrong, redirect_uri: PRIVATE }, cookie],
    ] as const) {
      expect((await visit(change, jar)).status).toBe(400);
    }
    const other = await steps.register();
    expect((await steps.authorize(other, wrong, cookie, HTML)).status).toBe(400);
  });

  test.each<{ what: string; change: Change }>([
    { what: 'an unknown client', change: { client_id: 'svc-AAAAAAAAAAAA' } },
    { what: 'no client', change: { client_id: undefined } },
    { what: 'no redirect URI', change: { redirect_uri: undefined } },
    { what: 'another redirect URI', change: { redirect_uri: 'http://127.0.0.1/other' } },
    { what: 'a request object', change: { request: 'x' } },
    { what: 'the gateway’s own client', change: { client_id: 'provider-client' } },
  ])('§13 broker: $what: nobody is redirected anywhere', async ({ change }) => {
    const { status, headers, text } = await visit({
      redirect_uri: LOOPBACK,
      ...change,
      response_type: 'x',
    });
    expect([status, headers.location]).toEqual([400, undefined]);
    expect(text).not.toContain('<a ');
  });

  test('§13 broker: the log says so of a redirect, too', async () => {
    await visit({ response_type: 'x', redirect_uri: LOOPBACK });
    expect(broker.gateway.log.at(-1)).toMatchObject({
      path: '/oauth/authorize',
      status: 303,
      error: 'unsupported_response_type',
    });
  });
});
