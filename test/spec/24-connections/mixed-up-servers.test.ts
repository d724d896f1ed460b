// RFC 9700 §2.1, §4.4: a hostile server, to get at what is another server's: its codes, its tokens, and assertions that are good there.
// The other's authorization server sends no `iss`: nothing of what comes back says whose it is.
import { decodeJwt } from 'jose';
import { expect, test } from 'vitest';
import { createBrowser } from '../../support/connections/browser.ts';
import { connect, GO_ON } from '../../support/connections/connect-steps.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import { KEEPS_TO_MCP, WORKERS } from '../../support/connections/habits.ts';
import {
  type HostileServer,
  startHostileServer,
} from '../../support/connections/hostile-server.ts';
import { ADA, openKeeper, toConnectionServer } from '../../support/connections/keeper.ts';
import { openKeeperStore } from '../../support/connections/keeper-store.ts';
import {
  MADE_CLIENT,
  type ProtectedServer,
  startProtectedServer,
} from '../../support/connections/protected-server.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { listenOnLoopback } from '../../support/upstreams/listen.ts';

/** Requests go to two replicas in turns. */
async function start({
  configure = (honest: ProtectedServer): object => honest.configure(),
  baitAuth = {},
} = {}) {
  const honest = closeAfterTest(
    await startProtectedServer({ habits: { ...WORKERS, iss: 'none', resource: 'ignored' } }),
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

test.for(['there', 'at another host'] as const)(
  '§24.2 those of one that the configuration names, %s, are no other’s, either, before anybody has logged in there',
  async (where) => {
    const issuer = closeAfterTest(await startHostileServer());
    const { honest, hostile, gateway, connectBait } = await start({
      configure: (server) =>
        server.configure({
          clientId: MADE_CLIENT.id,
          clientSecret: MADE_CLIENT.secret,
          authorizationServer: where === 'there' ? server.issuer : issuer.issuer,
        }),
    });
    nameEndpointsOf(honest, issuer, MADE_CLIENT.id);
    // A client of its own at the other: that it is not the gateway's alone keeps nobody out.
    nameEndpointsOf(honest, hostile, 'a-client-of-its-own');
    const page = await connectBait('ada');
    await (await gateway.logIn('ada')).call('bait__anything');
    expectNothingLeaked(honest, hostile);
    const refused = [502, expect.stringContaining('"authorizationServer"')];
    expect([page.status, page.text]).toEqual(refused);
    expect(honest.seen('authorize')).toEqual([]);
  },
);

test('§24.2 nor are those that the provider of the gateway’s own logins has at another host', async () => {
  const elsewhere = 'https://login.known.example';
  const provider = closeAfterTest(
    await listenOnLoopback((_req, res) => {
      const issuer = provider.url;
      const document = { issuer, jwks_uri: `${issuer}/keys`, token_endpoint: `${elsewhere}/token` };
      res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document));
    }),
  );
  const hostile = closeAfterTest(await startHostileServer());
  hostile.document = { token_endpoint: `${elsewhere}/other` };
  const bait = toConnectionServer(hostile, 'bait');
  const { store } = closeAfterTest(await openKeeperStore());
  const keeper = openKeeper(store, { servers: [bait], provider: provider.url });
  const { connecting } = closeAfterTest(keeper);
  await expect(connecting.findLoginHosts(bait)).rejects.toThrow(`those of ${provider.url}`);
});

test('§24.2 nor are they another’s when their host is written with the dot of the DNS root, which leads to the same', async () => {
  const { hostile, connectBait } = await start({
    configure: (server) =>
      server.configure({ clientId: 'c', authorizationServer: 'https://login.known.example' }),
  });
  const endpoint = 'https://login.known.example./authorize';
  hostile.document = { authorization_endpoint: endpoint };
  const page = await connectBait('ada');
  expect(page.status).toBe(502);
  expect(page.text).toContain(`"${endpoint}", whose host ends in a dot`);
});

test.for(['issuer', 'endpoint'] as const)(
  '§24.2 private_key_jwt: with the audience "%s" an assertion names nobody but the one that it is sent to',
  async (assertionAudience) => {
    const { hostile, gateway, browserOf } = await start({
      baitAuth: { clientAuth: 'private_key_jwt', assertionAudience },
    });
    hostile.registered = {
      client_id: 'its-own-client',
      token_endpoint_auth_method: 'private_key_jwt',
    };
    hostile.leadOn = (asked) => {
      const back = new URL(asked.get('redirect_uri') ?? '');
      back.search = new URLSearchParams({ code: 'c', state: asked.get('state') ?? '' }).toString();
      return back;
    };
    const ada = browserOf('ada');
    await connect(gateway, ada, 'bait');
    await ada.press(await ada.open(`${gateway.baseUrl}/connections`), /^Disconnect bait$/);
    const audiences = ['/token', '/revoke'].flatMap((path) =>
      hostile.forms(path).map((form) => decodeJwt(form.get('client_assertion') ?? '').aud),
    );
    const { issuer } = hostile;
    expect(audiences).toEqual(
      assertionAudience === 'issuer' ? [issuer, issuer] : [`${issuer}/token`, `${issuer}/revoke`],
    );
  },
);

test.for(['registered', 'configured', 'named alone', 'of the gateway’s own logins'] as const)(
  '§24.2 a registration that answers with a client that the gateway has at another authorization server, %s, is refused',
  async (which) => {
    const { honest, hostile, gateway, browserOf, connectBait } = await start({
      configure: (server) =>
        server.configure({
          ...(['configured', 'named alone'].includes(which) && { clientId: MADE_CLIENT.id }),
          ...(which === 'configured' && { authorizationServer: server.issuer }),
        }),
    });
    if (which === 'registered') await connect(gateway, browserOf('mallory'), 'wiki');
    const id = {
      registered: readClientId(honest),
      configured: MADE_CLIENT.id,
      'named alone': MADE_CLIENT.id,
      'of the gateway’s own logins': gateway.provider.env.OAUTH_CLIENT_ID,
    }[which];
    hostile.registered = { client_id: id, token_endpoint_auth_method: 'none' };
    const page = await connectBait('ada');
    expect([page.status, page.text]).toEqual([
      502,
      expect.stringContaining('answered with the client that this gateway has at'),
    ]);
    // It is another's failure: the one whose client it is works on.
    hostile.registered = { client_id: 'its-own-client', token_endpoint_auth_method: 'none' };
    if (!(which === 'configured' || which === 'named alone'))
      await connect(gateway, browserOf('bob'), 'wiki');
  },
);

test('§24.2 nor is the gateway’s client document a registration of anybody', async () => {
  const hostile = closeAfterTest(await startHostileServer());
  const bait = toConnectionServer(hostile, 'bait');
  const baseUrl = 'https://gw.example';
  const { store } = closeAfterTest(await openKeeperStore());
  const { connecting } = closeAfterTest(openKeeper(store, { servers: [bait], baseUrl }));
  hostile.registered = { client_id: `${baseUrl}/oauth/connections-client.json` };
  const page = { hash: 'a-browser', requestId: undefined, shownHosts: undefined };
  await expect(
    connecting.begin({ owner: ADA, server: bait.name, scopes: undefined }, bait, page),
  ).rejects.toThrow('by its client document');
});

/** A gateway of a public address, as far as its connections: authorization servers know it by its client document. */
async function startDocumented(iss: 'right' | 'none') {
  const habits = { ...KEEPS_TO_MCP, iss, resource: 'ignored', takesClientDocuments: true } as const;
  const honest = closeAfterTest(await startProtectedServer({ habits }));
  const hostile = closeAfterTest(await startHostileServer());
  const servers = [toConnectionServer(honest, 'wiki'), toConnectionServer(hostile, 'bait')];
  const { store } = closeAfterTest(await openKeeperStore());
  const baseUrl = 'https://gw.example';
  const { connecting } = closeAfterTest(openKeeper(store, { servers, baseUrl }));
  const document = JSON.parse(JSON.stringify(connecting.getClientDocument()));
  const find = (name: string) => servers.find((server) => server.name === name);
  return {
    honest,
    hostile,
    document,
    async begin(name: 'wiki' | 'bait') {
      const server = find(name) ?? servers[0];
      const request = { owner: ADA, server: name, scopes: undefined };
      const page = { hash: 'a-browser', requestId: undefined, shownHosts: undefined };
      return new URL((server && (await connecting.begin(request, server, page))) ?? '');
    },
    /** At the authorization server, and as far as it sends the browser back to this address. */
    async finish(login: URL, redirectUri: string, change = (_answer: URLSearchParams) => {}) {
      const answer = await createBrowser({ person: 'ada' }).openAsFar(login, redirectUri);
      change(answer.searchParams);
      const back = { redirectUri, browserHash: 'a-browser', owner: ADA, isOperator: false };
      const isStillLoggedIn = async () => true;
      return connecting.finish(new Map(answer.searchParams), { ...back, isStillLoggedIn }, find);
    },
  };
}

test('§24.2 the client document is known also to an authorization server that sends no iss: no code of it comes back to a login that another one began', async () => {
  const { honest, hostile, document, begin, finish } = await startDocumented('none');
  for (const redirectUri of document.redirect_uris) {
    const next = new URL(`${honest.issuer}/authorize`);
    next.search = (await begin('bait')).search;
    next.searchParams.set('client_id', document.client_id);
    next.searchParams.set('redirect_uri', redirectUri);
    await expect(finish(next, redirectUri)).rejects.toThrow('RFC 9700 §4.4');
  }
  expect(honest.seen('authorize')).not.toEqual([]);
  expectNothingLeaked(honest, hostile);
});

test('§24.2 a login by the client document comes back to the redirect URI of all servers, and never without iss', async () => {
  const { honest, document, begin, finish } = await startDocumented('right');
  const redirectUri = 'https://gw.example/connections/callback';
  expect(document.redirect_uris).toEqual([redirectUri]);
  const login = await begin('wiki');
  expect(login.searchParams.get('client_id')).toBe(document.client_id);
  const withoutIssuer = finish(login, redirectUri, (answer) => answer.delete('iss'));
  await expect(withoutIssuer).rejects.toThrow('RFC 9207');
  expect(honest.seen('token')).toEqual([]);
  const { info } = await finish(await begin('wiki'), redirectUri);
  expect(info.state).toBe('active');
});

/** An authorization server that the gateway does not know. */
async function startElsewhere() {
  const elsewhere = closeAfterTest(await startHostileServer());
  return { ...elsewhere, host: new URL(elsewhere.issuer).host };
}

test('§24.3 endpoints at another host than the issuer: nobody is sent there before the page has shown that host, nor to another than it has shown', async () => {
  const { hostile, gateway, browserOf } = await start();
  const [one, other] = [await startElsewhere(), await startElsewhere()];
  const tokens = 'tokens.known.example';
  hostile.document = {
    authorization_endpoint: `${one.issuer}/authorize`,
    token_endpoint: `https://${tokens}/token`,
  };
  const ada = browserOf('ada');
  const list = await ada.open(`${gateway.baseUrl}/connections`);
  const page = await ada.press(list, /^Connect bait$/);
  expect(page.url.href).toBe(`${gateway.baseUrl}/connections/bait`);
  expect(page.text).toContain(`Login at ${one.host} the result also goes to ${tokens} and `);

  hostile.document = { authorization_endpoint: `${other.issuer}/authorize` };
  await gateway.restart();
  const again = await ada.press(page, GO_ON);
  expect(again.url.origin).toBe(gateway.baseUrl);
  expect(again.text).toContain(other.host);
  expect(again.text).not.toContain(one.host);
  const login = await ada.press(again, GO_ON);
  expect(login.url.host).toBe(other.host);
});

test('§24.3 a host is shown to its end, which says whose it is, however long it is', async () => {
  const { hostile, gateway, browserOf } = await start();
  const host = `login.known.example.${'a.'.repeat(100)}elsewhere.example`;
  hostile.document = { authorization_endpoint: `https://${host}/authorize` };
  expect((await browserOf('ada').open(`${gateway.baseUrl}/connections/bait`)).text).toContain(host);
});

test.for(['of nobody else', 'of another server’s authorization server'] as const)(
  '§24.2 an operator who names the issuer has read where its endpoints are: they may be those %s, and nobody is asked twice',
  async (whose) => {
    const { honest, hostile, gateway, browserOf } = await start();
    await connect(gateway, browserOf('mallory'), 'wiki');
    const { issuer } = whose === 'of nobody else' ? await startElsewhere() : honest;
    hostile.document = { authorization_endpoint: `${issuer}/authorize` };
    const auth = { type: 'oauth', authorizationServer: hostile.issuer };
    await gateway.restart({ wiki: honest.configure(), bait: { url: hostile.url, auth } });
    const ada = browserOf('ada');
    const list = await ada.open(`${gateway.baseUrl}/connections`);
    expect((await ada.press(list, /^Connect bait$/)).url.origin).toBe(issuer);
  },
);

test('§24.2 a server that has another authorization server than before, which sends no iss: the former one knows its redirect URI, so an operator has to name the new one', async () => {
  const { honest, hostile, gateway, browserOf, connectBait } = await start();
  const lead = async (person = 'ada') => {
    const page = await connectBait(person);
    return page.url.origin === gateway.baseUrl ? page.text : page.url.origin;
  };
  expect(await lead()).toBe(hostile.issuer);
  // The same server, by its name; the other one is as good an example as any.
  const moved = (auth = {}) => gateway.restart({ bait: honest.configure(auth) });
  await moved();
  expect(await lead()).toContain('set "authorizationServer" of bait to it');
  expect(honest.seen('register')).toEqual([]);
  await moved({ authorizationServer: honest.issuer });
  await connect(gateway, browserOf('ada'), 'bait');
  // It has to go on naming it, and the former one would be another again.
  for (const again of [moved, gateway.restart]) {
    await again();
    expect(await lead('bob')).toContain('set "authorizationServer" of bait to it');
  }
});
