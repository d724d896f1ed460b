// §21.1 where the gateway issues tokens of its own: every line names the grant by which somebody acts, and no token.
import { expect, test } from 'vitest';
import { useFresh } from '../../support/lifetimes.ts';
import {
  ask,
  listGrants,
  logInBy,
  PAGE,
  startOperatedGateways,
  tryCall,
} from '../../support/oauth/operator-logins.ts';
import { toTokens } from '../../support/oauth/own-tokens.ts';

const MINUTE_MS = 60_000;

const own = useFresh(() => startOperatedGateways());

const linesOf = (user: string) => own.audit.lines().filter((line) => line.user === user);

async function callTool(access: string): Promise<void> {
  await own.gateway.request({
    method: 'POST',
    path: '/mcp',
    headers: {
      authorization: `Bearer ${access}`,
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'no_such_tool',
    },
    body: {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: {
        name: 'no_such_tool',
        arguments: {},
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
          'io.modelcontextprotocol/clientCapabilities': {},
        },
      },
    },
  });
}

test('§21.1 audit: login, call, refresh and revocation name one grant; that of another login is another', async () => {
  const first = await own.logIn({ sub: 'ada' });
  const other = await own.logIn({ sub: 'bob' });
  await callTool(first.access);
  await callTool(other.access);
  own.clock.advance(31 * MINUTE_MS);
  const second = toTokens(first.client, await own.refresh(first));
  const form = { token: second.refresh, client_id: first.client.id };
  await own.steps.post('/oauth/revoke', form);
  await own.steps.post('/oauth/revoke', form);
  await own.refresh(second);
  const ada = linesOf('ada');
  const grant = ada[0]?.grant;
  expect(grant).toMatch(/^[\w-]{22}$/);
  const by = { user: 'ada', client: first.client.id, grant };
  expect(ada).toMatchObject([
    { event: 'login', outcome: 'success', ...by },
    { event: 'tool_call', outcome: 'failure', ...by },
    { event: 'refresh', outcome: 'success', ...by },
    { event: 'revocation', outcome: 'success', ...by },
  ]);
  // It has ended: whose it was nobody can say, but the first line does.
  const later = own.audit.lines().filter((line) => line.user === undefined && line.grant === grant);
  expect(later).toMatchObject([
    { event: 'revocation', outcome: 'success' },
    { event: 'refresh', outcome: 'failure', reason: 'invalid_grant' },
  ]);
  const bob = new Set(linesOf('bob').map((line) => line.grant));
  expect(bob.size).toBe(1);
  expect(bob).not.toContain(grant);
  for (const secret of ['pst_', 'psr_', 'opaque-', 'refresh-']) {
    expect(own.audit.text()).not.toContain(secret);
  }
});

test('§21.1 audit: a refresh token that was used after its successor ends the login, and the line says why and whose', async () => {
  const first = await own.logIn({ sub: 'ada' });
  own.clock.advance(31 * MINUTE_MS);
  const second = toTokens(first.client, await own.refresh(first));
  await own.refresh(second);
  own.clock.advance(61_000);
  expect((await own.refresh(first)).json.error).toBe('invalid_grant');
  expect(await tryCall(own, second)).toBe('token_revoked');
  const lines = linesOf('ada');
  expect(lines.at(-1)).toMatchObject({
    event: 'refresh',
    outcome: 'failure',
    reason: 'refresh_token_reused',
    client: first.client.id,
    grant: lines[0]?.grant,
  });
});

test('§21.1 audit: a refresh that the provider ends names user and grant; one by a stranger names no user', async () => {
  const ada = await own.logIn({ sub: 'ada' });
  const stranger = await own.steps.register();
  await own.steps.refresh(stranger, ada.refresh);
  own.provider.disable('ada');
  own.clock.advance(61 * MINUTE_MS);
  await own.refresh(ada);
  const failed = own.audit.lines().filter(({ outcome }) => outcome === 'failure');
  const grant = linesOf('ada')[0]?.grant;
  const refused = { event: 'refresh', reason: 'invalid_grant', grant };
  expect(failed).toMatchObject([
    { ...refused, client: stranger.id },
    { ...refused, client: ada.client.id, user: 'ada' },
  ]);
  expect(failed[0]).not.toHaveProperty('user');
});

test('§21.1 audit: what an operator does names the grant of the operator, and what it was done to as target', async () => {
  await own.logIn({ sub: 'ada' });
  const operator = await logInBy(own, PAGE);
  const [ada] = await listGrants(own, operator.access, '?user=ada');
  await ask(own, operator.access, `/grants/${ada?.id}`, 'DELETE');
  const [login, ...done] = linesOf('olga');
  expect(login).toMatchObject({ event: 'login', client: PAGE });
  const by = { event: 'admin', outcome: 'success', client: PAGE, grant: login?.grant };
  expect(done).toMatchObject([
    { ...by, action: 'show', target: 'grants of ada' },
    { ...by, action: 'end_grant', target: linesOf('ada')[0]?.grant },
  ]);
});
