// What somebody tries who has what he should not have, or nothing at all: no client is kept out by it, and no process troubled.
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { assertUser, bringAssertion, ID_JAG_ENV } from '../../support/oauth/id-jag.ts';
import {
  ASSERTION_TYPE,
  askForToken,
  assertionOf,
  basic,
  fileOf,
  getToken,
  newKey,
  SECRET,
  withSecret,
} from '../../support/oauth/machine-clients.ts';
import { ask, startOperatedGateways } from '../../support/oauth/operator-logins.ts';
import { BASE, type OwnTokenOptions, startOwnTokens } from '../../support/oauth/own-tokens.ts';

const start = async (clients: readonly object[], options: OwnTokenOptions = {}) =>
  closeAfterTest(await startOwnTokens({ ...options, deps: { file: await fileOf(clients) } }));

const byKey = (assertion: string) => ({
  form: { client_assertion: assertion, client_assertion_type: ASSERTION_TYPE },
});

test.each([{ isReplicated: false }, { isReplicated: true }])(
  'RFC 7009, §5.11 machine clients: whoever revokes without the right secret is refused, and no rejection goes unhandled ($isReplicated)',
  async ({ isReplicated }) => {
    const own = await start([withSecret('ci')], { isReplicated });
    const unhandled: unknown[] = [];
    const note = (cause: unknown) => void unhandled.push(cause);
    const others = process.listeners('unhandledRejection');
    process.removeAllListeners('unhandledRejection').on('unhandledRejection', note);
    try {
      for (const token of ['made-up', 'psr_made-up', 'pst_made-up']) {
        const { status } = await askForToken(own.gateway, {
          path: '/oauth/revoke',
          form: { token },
          authorization: basic('ci', 'a-guess'),
        });
        expect(status).toBe(401);
      }
    } finally {
      process.off('unhandledRejection', note);
      for (const listener of others) process.on('unhandledRejection', listener);
    }
    expect(unhandled).toEqual([]);
  },
);

test('§8, §5.11 machine clients: an assertion that was used counts for whoever sends it again, not for its client', async () => {
  const key = newKey('ES256');
  const own = await start([{ id: 'signs', jwks: { keys: [key.jwk] } }], {
    env: {
      OAUTH_CLIENT_CREDENTIALS_GRANT_RATE_LIMIT_MAX: '5',
      OAUTH_CLIENT_CREDENTIALS_RATE_LIMIT_MAX: '5',
    },
  });
  const create = () => assertionOf('signs', key, own.clock.now());
  const send = (assertion: string, remoteAddress: string) =>
    askForToken(own.gateway, { ...byKey(assertion), remoteAddress });
  const used = create();
  const statuses: number[] = [];
  for (let at = 0; at < 50; at += 1) statuses.push((await send(used, '192.0.2.1')).status);
  expect(statuses.slice(0, 6)).toEqual([200, 401, 401, 401, 401, 401]);
  expect(new Set(statuses.slice(6))).toEqual(new Set([429]));
  expect((await send(create(), '192.0.2.2')).status).toBe(200);
});

test('RFC 7517, §5.11 machine clients: of the keys of a client few are tried for one assertion: a kid finds the right one among many', async () => {
  const keys = Array.from({ length: 17 }, () => newKey('ES256'));
  const own = await start([{ id: 'signs', jwks: { keys: keys.map(({ jwk }) => jwk) } }]);
  async function sendBy(at: number, header: object): Promise<number> {
    const key = keys[at] ?? newKey();
    const assertion = assertionOf('signs', key, own.clock.now(), { header: { ...header } });
    return (await askForToken(own.gateway, byKey(assertion))).status;
  }
  expect(await sendBy(16, {})).toBe(200);
  expect(await sendBy(15, { kid: undefined })).toBe(200);
  expect(await sendBy(16, { kid: undefined })).toBe(401);
  expect(own.gateway.log.map((line) => JSON.stringify(line)).join()).toContain('16 keys');
});

test('RFC 8017 §3.1, §5.11 machine clients: a key whose exponent makes each signature dear to check is none', async () => {
  const { jwk } = newKey('RS256');
  const e = randomBytes(255);
  e[0] = 1;
  e[254] = 1;
  const costly = { ...jwk, e: e.toString('base64url') };
  const clients = [{ id: 'signs', jwks: { keys: [costly] } }];
  await expect(fileOf(clients)).rejects.toThrow('no key that can be used');
  await fileOf([{ id: 'signs', jwks: { keys: [costly, jwk] } }]);
});

test('RFC 8707, §22.1, §5.11 machine clients: one whose resources leave out /admin is no operator, and its user never is, whatever else says so', async () => {
  const operators = { groups: ['operators'] };
  const named = [
    withSecret('free', operators),
    withSecret('listed', { ...operators, resources: ['/mcp', `${BASE}/admin/`] }),
    withSecret('servers', { ...operators, resources: ['/mcp'] }),
    withSecret('similar', { ...operators, resources: ['/mcp', '/mcp/admin'] }),
  ];
  const file = await fileOf(named, { mcpServers: { admin: { url: 'http://127.0.0.1:9/mcp' } } });
  const env = { ADMIN_CLIENTS: 'free,listed,servers,similar', ...ID_JAG_ENV };
  const own = closeAfterTest(await startOperatedGateways({ env, deps: { file } }));
  async function show(id: string) {
    const itself = await ask(own, await getToken(own.gateway, id), '/grants');
    const claims = { client_id: id, ...operators };
    const assertion = await assertUser(own.provider.issuer, own.clock.now(), { claims });
    const authorization = basic(id, SECRET);
    const { json } = await bringAssertion(own.gateway, assertion, { authorization });
    expect((await own.call(json.access_token)).status).toBe(200);
    return [itself.status, (await ask(own, json.access_token, '/grants')).status];
  }
  for (const id of ['free', 'listed']) expect(await show(id)).toEqual([200, 401]);
  for (const id of ['servers', 'similar']) expect(await show(id)).toEqual([401, 401]);
});

test('§18.1, §5.11 machine clients: a jwksUri that is not valid is not shown, as it may have a password', async () => {
  for (const jwksUri of [
    'https://me:hidden@keys.example/jwks',
    'http://keys.example/?key=hidden',
  ]) {
    const reading = fileOf([{ id: 'signs', jwksUri }]);
    await expect(reading).rejects.toThrow('clients[0].jwksUri');
    await expect(reading).rejects.not.toThrow('hidden');
  }
});
