// RFC 9700 §2.1, §4.4: a hostile server, to get at what is another server's: its codes, its tokens, and assertions that are good there.
// The other's authorization server sends no `iss`: nothing of what comes back says whose it is.
import { decodeJwt } from 'jose';
import { expect, test } from 'vitest';
import { connect, GO_ON } from '../../support/connections/connect-steps.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import { WANTS_KEYS, WORKERS } from '../../support/connections/habits.ts';
import {
  type HostileServer,
  startHostileServer,
} from '../../support/connections/hostile-server.ts';
import {
  MADE_CLIENT,
  type ProtectedServer,
  startProtectedServer,
} from '../../support/connections/protected-server.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

/** Requests go to two replicas in turns. */
async function start({
  habits = WORKERS,
  configure = (honest: ProtectedServer): object => honest.configure(),
  baitAuth = {},
} = {}) {
  const honest = closeAfterTest(
    await startProtectedServer({ habits: { ...habits, iss: 'none', resource: 'ignored' } }),
  );
  const hostile = closeAfterTest(await startHostileServer());
  const gateway = closeAfterTest(
    await startConnectingGateway({
      servers: {
        wiki: configure(honest),
        bait: { url: hostile.url, auth: { type: 'oauth', ...baitAuth } },
      },
      replicas: 2,
    }),
  );
  const browserOf = (person: string) =>
    gateway.createBrowser({ person, account: `${person}@work` });
  return {
    honest,
    hostile,
    gateway,
    browserOf,
    connectBait: async (person: string) => {
      const browser = browserOf(person);
      const page = await browser.open(`${gateway.baseUrl}/connections/bait`);
      return browser.press(page, GO_ON);
    },
  };
}

/** By which the honest authorization server knows the gateway: whoever logs in there once reads it in the address. */
const readClientId = (honest: ProtectedServer): string =>
  honest.seen('authorize')[0]?.query.get('client_id') ?? '';

function expectNothingLeaked(honest: ProtectedServer, hostile: HostileServer): void {
  const leaked = honest.issued.filter((secret) => hostile.text().includes(secret));
  expect(leaked).toEqual([]);
}

test.for([
  ['its own', undefined],
  ['the other’s', '/connections/callback/wiki'],
  ['the one of all', '/connections/callback'],
] as const)(
  '§24.3 mix-up: a hostile login leads on to an honest one, with %s redirect URI: the code and the verifier go nowhere',
  async ([, path]) => {
    const { honest, hostile, gateway, browserOf, connectBait } = await start();
    await connect(gateway, browserOf('mallory'), 'wiki');
    const clientId = readClientId(honest);
    hostile.leadOn = (asked) => {
      const next = new URL(`${honest.issuer}/authorize`);
      next.search = asked.toString();
      next.searchParams.set('client_id', clientId);
      next.searchParams.set('resource', honest.url);
      if (path !== undefined) next.searchParams.set('redirect_uri', gateway.baseUrl + path);
      return next;
    };
    const page = await connectBait('ada');
    expect(page.status).toBeGreaterThanOrEqual(400);
    expect(honest.seen('authorize').length).toBeGreaterThan(1);
    expectNothingLeaked(honest, hostile);
    expect(hostile.forms('/token')).toEqual([]);
    // Her own login at the honest server is as good as before.
    await connect(gateway, browserOf('ada'), 'wiki');
    expect((await (await gateway.logIn('ada')).call('wiki__whoami')).text).toBe('ada@work');
  },
);

/** Its metadata has the endpoints of the other, and its registration the gateway's own client there. */
function nameEndpointsOf(honest: ProtectedServer, hostile: HostileServer, clientId: string) {
  hostile.document = {
    authorization_endpoint: `${honest.issuer}/authorize`,
    token_endpoint: `${honest.issuer}/token`,
    token_endpoint_auth_methods_supported: honest.habits.clientAuth,
  };
  hostile.registered = { client_id: clientId, token_endpoint_auth_method: 'none' };
}

test('§24.2 the endpoints of an authorization server that the gateway knows are no other’s: nobody is sent there, and no token of it goes to who named them', async () => {
  const { honest, hostile, gateway, browserOf, connectBait } = await start();
  await connect(gateway, browserOf('mallory'), 'wiki');
  nameEndpointsOf(honest, hostile, readClientId(honest));
  const before = honest.requests.length;
  const page = await connectBait('ada');
  await (await gateway.logIn('ada')).call('bait__anything');
  expectNothingLeaked(honest, hostile);
  expect(honest.requests.slice(before)).toEqual([]);
  expect(page.status).toBe(502);
  expect(page.text).toContain(new URL(honest.issuer).host);
  expect(page.text).toContain('"authorizationServer"');
});

test('§24.2 those of one that the configuration names are no other’s, either, before anybody has logged in there', async () => {
  const { honest, hostile, gateway, connectBait } = await start({
    configure: (honest) =>
      honest.configure({
        clientId: MADE_CLIENT.id,
        clientSecret: MADE_CLIENT.secret,
        authorizationServer: honest.issuer,
      }),
  });
  nameEndpointsOf(honest, hostile, MADE_CLIENT.id);
  const page = await connectBait('ada');
  await (await gateway.logIn('ada')).call('bait__anything');
  expectNothingLeaked(honest, hostile);
  expect([page.status, honest.seen('authorize')]).toEqual([502, []]);
});

test('§24.2 private_key_jwt: an assertion that is good at one authorization server is sent to no other, to revoke at neither', async () => {
  const { honest, hostile, gateway, browserOf, connectBait } = await start({
    habits: WANTS_KEYS,
    baitAuth: { clientAuth: 'private_key_jwt' },
  });
  await connect(gateway, browserOf('mallory'), 'wiki');
  nameEndpointsOf(honest, hostile, readClientId(honest));
  hostile.registered = { ...hostile.registered, token_endpoint_auth_method: 'private_key_jwt' };
  await connectBait('ada');
  const ada = browserOf('ada');
  const list = await ada.open(`${gateway.baseUrl}/connections`);
  if (list.html.includes('Disconnect bait')) await ada.press(list, /^Disconnect bait$/);
  const sent = hostile.forms('/revoke').map((form) => form.get('client_assertion') ?? '');
  const audiences = sent.map((assertion) => String(decodeJwt(assertion).aud));
  expect(audiences.filter((audience) => audience.startsWith(honest.issuer))).toEqual([]);
  expectNothingLeaked(honest, hostile);
});
