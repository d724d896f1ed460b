// §4.6: names that another platform would read differently go nowhere.
import { expect, test } from 'vitest';
import { useShared } from '../../support/lifetimes.ts';
import { type Broker, startBroker } from '../../support/oauth/broker.ts';
import type { Client } from '../../support/oauth/login-steps.ts';

const NAMES = [
  'redirect.uri',
  'redirect_uri[]',
  'redirect-uri',
  'redirect uri',
  'Redirect_URI',
  'REQUEST_URI',
  'request.uri',
  'Request',
  'registration[]',
  'Registration',
  'CLIENT_ID',
  'code-challenge',
  'Scope',
  'resource[]',
  'grant.type',
  'Token',
  'state ',
  '',
  'x y',
  'x[y]',
  'x%y',
  'naïve',
  'request',
  'request_uri',
  'registration',
];
const HARMLESS = [
  'x-vendor:name.1',
  'X_CLIENT',
  'redirect_uris',
  'client-request-id',
  'login_hint',
];

interface Mode {
  readonly broker: Broker;
  readonly client: Client;
  /** One that is good. */
  readonly refreshToken: string;
  close(): Promise<void>;
}

const ours = useShared(() => start({}));
const literal = useShared(() => start({ OAUTH_MODE: 'proxy' }));

async function start(env: Readonly<Record<string, string>>): Promise<Mode> {
  const broker = await startBroker(env);
  const client = await broker.steps.register();
  const { refresh_token: refreshToken } =
    env.OAUTH_MODE === 'proxy' ? { refresh_token: 'r' } : await broker.logIn(client);
  return { broker, client, refreshToken, close: broker.close };
}

/** Every endpoint that takes parameters of a client, asked with one more. */
function requests(
  { broker: { steps, gateway }, client: { id }, refreshToken }: Mode,
  name: string,
) {
  const refresh = { grant_type: 'refresh_token', refresh_token: refreshToken, client_id: id };
  return [
    [
      'authorize',
      () => steps.authorize({ id, verifier: '', challenge: 'x'.repeat(43) }, { [name]: 'x' }),
    ],
    ['token', () => steps.post('/oauth/token', { ...refresh, [name]: 'x' })],
    [
      'token as JSON',
      () =>
        gateway.request({
          method: 'POST',
          path: '/oauth/token',
          body: { ...refresh, [name]: 'x' },
        }),
    ],
    ['revoke', () => steps.post('/oauth/revoke', { token: 't', client_id: id, [name]: 'x' })],
  ] as const;
}

test.each(NAMES)(
  '§4.6 parameters: the name “%s” is refused everywhere, in both modes',
  async (name) => {
    for (const mode of [ours, literal]) {
      const { broker } = mode;
      const before = broker.asked();
      for (const [where, ask] of requests(mode, name)) {
        const { status, json, headers } = await ask();
        expect([where, status, json.error]).toEqual([where, 400, 'invalid_request']);
        expect(headers.location).toBeUndefined();
      }
      expect(broker.asked()).toBe(before);
    }
  },
);

test.each(HARMLESS)('§4.6 parameters: the name “%s” is let pass', async (name) => {
  for (const mode of [ours, literal]) {
    const { broker } = mode;
    broker.answer(200, { access_token: await broker.sign() });
    for (const [where, ask] of requests(mode, name)) {
      expect([where, (await ask()).status < 400]).toEqual([where, true]);
    }
  }
});

test('§4.6 parameters: the consent form knows its own fields and no others like them', async () => {
  const { steps } = ours.broker;
  const question = await steps.ask(ours.client);
  for (const name of ['Request', 'redirect.uri', 'client id']) {
    const form = { ...question.form, decision: 'approve', [name]: 'x' };
    expect((await steps.post('/oauth/consent', form, question.cookie)).status).toBe(400);
  }
  expect((await steps.decide(question)).status).toBe(303);
});

test('§4.6 parameters: the provider’s own answer may have any names', async () => {
  const { steps } = ours.broker;
  const { cookie, asked } = await steps.approve(ours.client);
  const state = asked.searchParams.get('state') ?? '';
  const { status } = await steps.callback({ code: 'c', state, 'Session State': 'x' }, cookie);
  expect(status).toBe(303);
});
