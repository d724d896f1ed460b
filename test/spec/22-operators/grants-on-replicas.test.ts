// §22.3 with several replicas: a login that an operator ends at one has ended at every other, with the next call.
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

const own = useFresh(() => startOperatedGateways({ isReplicated: true }));

test('§22.3 operators: what ends at one replica is refused at the next call on the other, and nothing else is', async () => {
  const ended = await own.logIn({ sub: 'ada' });
  const kept = await own.logIn({ sub: 'ada' });
  const bystander = await own.other.logIn({ sub: 'bob' });
  const operator = await logInBy(own, PAGE);
  for (const tokens of [ended, kept, bystander]) {
    for (const replica of [own, own.other]) expect(await tryCall(replica, tokens)).toBe('let in');
  }
  const grants = await listGrants(own.other, operator.access, '?user=ada');
  const meant = grants.find(({ client }) => client.id === ended.client.id);
  const answer = await ask(own, operator.access, `/grants/${meant?.id}`, 'DELETE');
  expect(answer.status).toBe(204);
  expect(await tryCall(own.other, ended)).toBe('token_revoked');
  expect((await own.other.refresh(ended)).json.error).toBe('invalid_grant');
  for (const tokens of [kept, bystander]) {
    for (const replica of [own, own.other]) expect(await tryCall(replica, tokens)).toBe('let in');
  }
});

test('§22.3 operators: all logins of a user, and then all there are, end at both', async () => {
  const ada = [await own.logIn({ sub: 'ada' }), await own.other.logIn({ sub: 'ada' })];
  const bob = await own.other.logIn({ sub: 'bob' });
  for (const tokens of [...ada, bob]) expect(await tryCall(own.other, tokens)).toBe('let in');
  const operator = await logInBy(own, PAGE);
  const end = async (query: string) =>
    (await ask(own, operator.access, `/grants?${query}`, 'DELETE')).json;
  expect(await end('user=ada')).toEqual({ ended: 2 });
  for (const tokens of ada) expect(await tryCall(own.other, tokens)).toBe('token_revoked');
  expect(await tryCall(own.other, bob)).toBe('let in');
  expect(await end('all=true')).toEqual({ ended: 2 });
  expect(await tryCall(own.other, bob)).toBe('token_revoked');
});

test('§22.3 operators: an operator who is logged out by another is out at once, on whatever replica', async () => {
  const one = await logInBy(own, PAGE, { sub: 'olga', groups: ['operators'] });
  const other = await logInBy(own.other, PAGE, { sub: 'otto', groups: ['operators'] });
  expect((await ask(own.other, one.access, '/grants')).status).toBe(200);
  expect((await ask(own, other.access, '/grants?user=olga', 'DELETE')).json).toEqual({ ended: 1 });
  const { status, json, headers } = await ask(own.other, one.access, '/grants?all=true', 'DELETE');
  expect([status, json.error.data.reason]).toEqual([401, 'token_revoked']);
  expect(headers['www-authenticate']).toContain('error="invalid_token"');
  expect((await ask(own.other, other.access, '/grants')).status).toBe(200);
});
