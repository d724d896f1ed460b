// A login that this version cannot read is no reason to keep others from being seen, or from ending.
import { expect, test } from 'vitest';
import { createSeal } from '../../../src/store/seal/seal.ts';
import { GRANT_VERSION_LENGTH } from '../../../src/store/store.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import {
  ask,
  listGrants,
  logInBy,
  PAGE,
  startOperatedGateways,
  tryCall,
} from '../../support/oauth/operator-logins.ts';
import { wrapStore } from '../../support/stores/wrapped-store.ts';

const SECRET = 'a secret by which the test changes the store';

/** A login of `user-2` is as a later version would write it, or sealed by a secret that is not here. */
async function start(by: 'a later version' | 'another secret' = 'a later version') {
  const { store, remove } = await wrapStore(() => ({}));
  closeAfterTest({ close: remove });
  const own = closeAfterTest(
    await startOperatedGateways({ env: { OAUTH_STATE_SECRET: SECRET }, deps: { store } }),
  );
  const ada = await own.logIn();
  await own.logIn({ sub: 'user-2' });
  const operator = await logInBy(own, PAGE);
  const [later] = await listGrants(own, operator.access, '?user=user-2');
  const key = `oauth:grant:${later?.id}`;
  const seal = createSeal([SECRET]);
  const text = (await store.get(key)) ?? '';
  const record = JSON.parse(seal.open(key, text.slice(GRANT_VERSION_LENGTH)) ?? '');
  const sealed =
    by === 'another secret'
      ? createSeal([`another ${SECRET}`]).seal(key, JSON.stringify(record))
      : seal.seal(key, JSON.stringify({ ...record, version: 99 }));
  await store.set(key, text.slice(0, GRANT_VERSION_LENGTH) + sealed, 3600);
  return { own, store, ada, operator, key };
}

test('§16, §22.3 operators: a login that a later version wrote stays out of lists, and all others end', async () => {
  const { own, ada, operator } = await start();
  const shown = await listGrants(own, operator.access);
  expect(shown.map(({ user }) => user).sort()).toEqual(['olga', 'user-1']);
  const ended = await ask(own, operator.access, '/grants?all=true', 'DELETE');
  expect([ended.status, ended.json]).toEqual([200, { ended: 2 }]);
  expect(await tryCall(own, ada)).toBe('token_revoked');
});

test.each([
  { query: 'all=true', by: 'a later version' },
  { query: 'all=true', by: 'another secret' },
  { query: 'user=user-2', by: 'a later version' },
  { query: 'user=user-2', by: 'another secret' },
] as const)(
  '§22.3 operators: one that is of $by ends with $query, too: replicas that read it must not let anybody in',
  async ({ query, by }) => {
    const { own, store, operator, key } = await start(by);
    expect(await store.get(key)).toBeDefined();
    const { status } = await ask(own, operator.access, `/grants?${query}`, 'DELETE');
    expect(status).toBe(200);
    expect(await store.get(key)).toBeUndefined();
  },
);

test.each(['a later version', 'another secret'] as const)(
  '§22.3 operators: one that is of %s ends by its ID, too, though nobody here knows whose it was',
  async (by) => {
    const { own, store, operator, key } = await start(by);
    const id = key.slice('oauth:grant:'.length);
    const { status } = await ask(own, operator.access, `/grants/${id}`, 'DELETE');
    expect(status).toBe(404);
    expect(await store.get(key)).toBeUndefined();
  },
);
