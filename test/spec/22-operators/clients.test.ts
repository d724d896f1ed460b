// §22.1: by which clients operators come: an operator's token for another client is in other hands, too.
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { startGateway } from '../../support/gateway/gateway.ts';
import { type Operators, SCRIPT, startOperators } from '../../support/gateway/operators.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { BASE, MCP } from '../../support/oauth/broker.ts';
import {
  type Client,
  createLoginSteps,
  newPkce,
  REDIRECT,
} from '../../support/oauth/login-steps.ts';
import { startUpstream } from '../../support/oauth/upstream.ts';

const PAGE = 'postern-operators';
const CALLBACK = `${BASE}/playground/callback`;
const OLGA = { sub: 'olga', groups: ['operators'] };
const OPERATOR = { ...OLGA, aud: MCP };

const newClient = (id: string): Client => ({ id, ...newPkce() });

describe('in broker mode', () => {
  /** A token that the gateway hands out to the client, whose redirect URI it is. */
  async function logIn(
    { broker }: Operators,
    client: Client,
    redirectUri: string,
  ): Promise<string> {
    broker.answerLogins(OLGA);
    const uri = { redirect_uri: redirectUri };
    const { status, json } = await broker.steps.redeem(
      client,
      await broker.steps.logIn(client, uri),
      uri,
    );
    expect(status).toBe(200);
    return json.access_token;
  }

  const ask = ({ broker }: Operators, token: string, path = '/sessions', method = 'GET') =>
    broker.gateway.request({
      method,
      path: `/admin/api${path}`,
      headers: { authorization: `Bearer ${token}` },
    });

  test('§22.1 operators: a token that the page got is taken, and its client is in the audit log', async () => {
    const operators = await startOperators();
    const token = await logIn(operators, newClient(PAGE), CALLBACK);
    expect((await ask(operators, token)).status).toBe(200);
    expect(operators.audit.lines().at(-1)).toMatchObject({ outcome: 'success', client: PAGE });
  });

  test('§22.1 operators: a token that an MCP client got, or the playground, ends nothing and reads nothing', async () => {
    const operators = await startOperators();
    const session = await operators.open('ada');
    const registered = await operators.broker.steps.register();
    const tokens = [
      await logIn(operators, registered, REDIRECT),
      await logIn(operators, newClient('postern-playground'), CALLBACK),
    ];
    for (const token of tokens) {
      for (const [method, path] of [
        ['GET', '/sessions'],
        ['GET', '/clients'],
        ['DELETE', `/sessions/${session}`],
        ['DELETE', `/clients/${registered.id}`],
      ] as const) {
        const { status, json } = await ask(operators, token, path, method);
        expect(status).toBe(403);
        expect(json.error.data.reason).toBe('operators_client_only');
        expect(json.error.data.details).toMatch(/Log in at \/admin, .* ADMIN_CLIENTS/);
      }
    }
    expect((await operators.show('/sessions?user=ada')).json.sessions).toHaveLength(1);
    expect(operators.audit.lines().filter(({ outcome }) => outcome === 'denied')).toMatchObject([
      { reason: 'operators_client_only', client: registered.id, user: 'olga' },
      ...Array.from({ length: 7 }, () => ({ reason: 'operators_client_only' })),
    ]);
  });

  test.each([
    ['from the provider itself, for the gateway’s own client', { azp: 'provider-client' }],
    ['of another client of the provider', { azp: 'someone-else' }],
    ['that claims to be the page’s', { azp: PAGE, client_id: PAGE }],
    [
      'of a script whose name is not the first that says the client',
      { azp: 'x', client_id: SCRIPT },
    ],
    ['without a client', { azp: undefined }],
  ])('§22.1 operators: a token %s is refused', async (_what, claims) => {
    const { show } = await startOperators();
    const { status, json } = await show('/sessions', { claims });
    expect([status, json.error?.data.reason]).toEqual([403, 'operators_client_only']);
  });

  test('§22.1 operators: nobody gets a token of the page by a refresh token that the gateway does not know', async () => {
    const operators = await startOperators();
    const { broker } = operators;
    for (const id of [PAGE, 'postern-playground']) {
      const asked = broker.asked();
      const { status, json } = await broker.steps.refresh(newClient(id), 'from-elsewhere');
      expect([status, json.error]).toEqual([400, 'invalid_grant']);
      expect(broker.asked()).toBe(asked);
    }
  });

  test('§22.1 operators: the code of another client, or another redirect URI, brings no token of the page', async () => {
    const { broker } = await startOperators();
    const rogue = await broker.steps.register();
    const stolen = await broker.steps.redeem(rogue, await broker.steps.logIn(rogue), {
      client_id: PAGE,
    });
    expect(stolen.json.error).toBe('invalid_grant');
    const elsewhere = await broker.steps.authorize(newClient(PAGE));
    expect(elsewhere.json.error).toBe('invalid_redirect_uri');
  });

  test('§22.1 operators: the page’s user is asked, and told what it is for', async () => {
    const { broker } = await startOperators();
    const { text } = await broker.steps.authorize(newClient(PAGE), { redirect_uri: CALLBACK });
    expect(text).toContain('See and end sessions, and delete clients');
    expect(text).not.toContain('Use tools and data as you');
  });

  test('§22.1 operators: without ADMIN_GROUPS nobody knows the client', async () => {
    const { broker } = await startOperators({ ADMIN_GROUPS: '', ADMIN_CLIENTS: '' });
    const { json } = await broker.steps.authorize(newClient(PAGE), { redirect_uri: CALLBACK });
    expect(json.error).toBe('invalid_client');
  });

  test('§22.1 operators: everybody may ask whether they are one, by any client', async () => {
    const { show } = await startOperators();
    const access = async (claims: object) =>
      (await show('/access', { claims: { azp: 'any', ...claims } })).json;
    expect(await access({})).toEqual({ isOperator: true });
    expect(await access({ groups: ['staff'] })).toEqual({ isOperator: false });
  });
});

describe('in proxy mode', () => {
  async function startProxy() {
    const upstream = closeAfterTest(await startUpstream());
    const gateway = closeAfterTest(
      await startGateway({
        env: {
          BASE_URL: BASE,
          OAUTH_AUTHORIZATION_URL: 'https://id.example/authorize',
          OAUTH_TOKEN_URL: `${upstream.url}/token`,
          OAUTH_CLIENT_ID: 'provider-client',
          OAUTH_CLIENT_SECRET: 'provider-secret',
          ADMIN_GROUPS: 'operators',
        },
      }),
    );
    const steps = createLoginSteps(gateway);
    const hour = Math.floor(Date.now() / 1000) + 3600;
    return {
      steps,
      /** What the provider answers to the next request for tokens. */
      async issue(): Promise<string> {
        const token = await gateway.issuer.sign({ ...OPERATOR, azp: 'provider-client', exp: hour });
        const body = JSON.stringify({ access_token: token });
        upstream.answer((res) => void res.writeHead(200).end(body));
        return token;
      },
      ask: (token: string) =>
        gateway.request({
          path: '/admin/api/sessions',
          headers: { authorization: `Bearer ${token}` },
        }),
    };
  }
  const BACK = new URL(`${CALLBACK}?code=the-code`);

  test('§22.1 operators: a token that the page got for a code is taken', async () => {
    const { steps, issue, ask } = await startProxy();
    const token = await issue();
    await steps.redeem(newClient(PAGE), BACK, { redirect_uri: CALLBACK });
    expect((await ask(token)).status).toBe(200);
  });

  test('§22.1 operators: one that was refreshed, or that another client got, is not', async () => {
    const { steps, issue, ask } = await startProxy();
    const refreshed = await issue();
    expect((await steps.refresh(newClient(PAGE), 'of-another-client')).status).toBe(200);
    const registered = await steps.register();
    const ofClient = await issue();
    expect((await steps.redeem(registered, new URL(`${REDIRECT}?code=c`))).status).toBe(200);
    const ofPlayground = await issue();
    await steps.redeem(newClient('postern-playground'), BACK, { redirect_uri: CALLBACK });
    for (const token of [refreshed, ofClient, ofPlayground]) {
      const { status, json } = await ask(token);
      expect([status, json.error?.data.reason]).toEqual([403, 'operators_client_only']);
    }
  });
});

describe('settings', () => {
  const BROKER = {
    OIDC_ISSUER: 'https://id.example',
    OAUTH_MODE: 'broker',
    OAUTH_CLIENT_ID: 'gateway',
    BASE_URL: BASE,
    ADMIN_GROUPS: 'operators',
  };

  test.each([
    [
      { ADMIN_CLIENTS: 'gateway' },
      /ADMIN_CLIENTS: "gateway" is the client through which all MCP clients/,
    ],
    [
      { ADMIN_CLIENTS: 'a,svc-AAAAAAAAAAAA' },
      /ADMIN_CLIENTS: "svc-AAAAAAAAAAAA" is a client that registered itself/,
    ],
    [
      { ADMIN_CLIENTS: 'gateway,svc-AAAAAAAAAAAA', ADMIN_GROUPS: '' },
      /ADMIN_CLIENTS: "gateway" .*\nADMIN_CLIENTS: "svc-AAAAAAAAAAAA" .*\nADMIN_GROUPS is missing/,
    ],
    [
      { ADMIN_CLIENTS: 'a', ADMIN_GROUPS: '' },
      /ADMIN_GROUPS is missing: ADMIN_CLIENTS names .* ADMIN_GROUPS=operators$/,
    ],
    [{ OAUTH_MODE: 'proxy' }, /ADMIN_GROUPS: no user can log in .*ADMIN_CLIENTS/],
    [
      { ADMIN_GROUPS: 'CN=Ops,OU=Groups,DC=example' },
      /ADMIN_GROUPS: .*one name with commas: write it as a JSON array/,
    ],
    [
      { ADMIN_GROUPS: '["a",1]' },
      /ADMIN_GROUPS: .*or a JSON array of them if one has a comma, such as/,
    ],
    [{ ADMIN_GROUPS: '["a"' }, /ADMIN_GROUPS: /],
    [{ ADMIN_GROUPS: '[]' }, /ADMIN_GROUPS: /],
    [{ ADMIN_GROUPS: '[""]' }, /ADMIN_GROUPS: /],
  ])('§22.1 operators: %j ends the start, with what to change', (env, problem) => {
    expect(() => loadConfig({ ...BROKER, ...env })).toThrow(problem);
  });

  test.each([
    ['operators, /sre', ['operators', '/sre']],
    ['CN=ops', ['CN=ops']],
    ['["CN=Ops,OU=Groups", "/sre"]', ['CN=Ops,OU=Groups', '/sre']],
  ])('§22.1 operators: ADMIN_GROUPS=%s', (text, groups) => {
    expect(loadConfig({ ...BROKER, ADMIN_GROUPS: text }).admin.groups).toEqual(groups);
  });

  test('§22.1 operators: a group whose name has commas opens the page', async () => {
    const { show } = await startOperators({ ADMIN_GROUPS: '["CN=Ops,OU=Groups,DC=example"]' });
    const access = (groups: string[]) => show('/sessions', { claims: { groups } });
    expect((await access(['CN=Ops,OU=Groups,DC=example'])).status).toBe(200);
    expect((await access(['CN=Ops', 'OU=Groups'])).status).toBe(403);
  });
});
