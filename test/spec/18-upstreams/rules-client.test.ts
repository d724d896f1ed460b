// §18.5: which OAuth client a token was made for.
import { expect, test } from 'vitest';
import { createClientOf } from '../../../src/mcp/calls/call.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startBroker } from '../../support/oauth/broker.ts';
import { readFile } from '../../support/upstreams/gateway-file.ts';
import { decide, rule, tool, userWith } from '../../support/upstreams/rules.ts';

const OWN = 'provider-client';

const clientOfToken = (claims: object, ownClientId?: string) =>
  createClientOf(ownClientId)({ user: userWith(claims) });

test.each<[object, string | undefined]>([
  [{ azp: 'a' }, 'a'],
  [{ client_id: 'b' }, 'b'],
  [{ cid: 'c' }, 'c'],
  [{ appid: 'd' }, 'd'],
  [{ azp: 'a', client_id: 'b' }, 'a'],
  [{ azp: 7, client_id: 'b' }, 'b'],
  [{ azp: ['a'] }, undefined],
  [{ azp: '' }, undefined],
  [{ aud: 'x' }, undefined],
  [{}, undefined],
])('§18.5 a token with %j is of the client %s', (claims, expected) => {
  expect(clientOfToken(claims)).toBe(expected);
});

test('§18.5 without a user there is no client', () => {
  expect(createClientOf(OWN)({ user: undefined })).toBeUndefined();
});

test('§18.5 in broker mode a token of the provider that was made for another client than the gateway is of that client', () => {
  expect(clientOfToken({ azp: 'machine' }, OWN)).toBe('machine');
});

test('§18.5 one that was made for the gateway says nothing, and rules about clients allow it nothing', async () => {
  for (const claims of [{ azp: OWN }, {}]) {
    const clientId = clientOfToken(claims, OWN);
    expect(clientId).toBeUndefined();
    const rules = [rule({ who: { clients: ['*'] } })];
    const { kind } = await decide(rules, tool('x'), { user: userWith(claims), clientId });
    expect(kind).toBe('denied');
  }
});

test('§18.5 a token of the gateway’s own is of the client that it was issued to', async () => {
  const file = await readFile({
    mcpServers: {},
    rules: [{ who: { clients: ['svc-*'] }, may: ['*'] }],
  });
  const broker = closeAfterTest(await startBroker({}, { file }));
  const call = async (token: string) => {
    const session = await broker.gateway.open({ token });
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const { json } = await broker.gateway.rpc(message, { token, session });
    return json.result.tools.length;
  };
  const { access_token: own } = await broker.logIn(await broker.steps.register());
  expect(await call(own)).toBeGreaterThan(0);
  expect(await call(await broker.sign({ azp: OWN }))).toBe(0);
});
