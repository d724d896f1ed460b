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

test('§16, §22.3 operators: a login that a later version wrote stays out of lists, and all others end', async () => {
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
  const sealed = seal.seal(key, JSON.stringify({ ...record, version: 99 }));
  await store.set(key, text.slice(0, GRANT_VERSION_LENGTH) + sealed, 3600);

  const shown = await listGrants(own, operator.access);
  expect(shown.map(({ user }) => user).sort()).toEqual(['olga', 'user-1']);
  const ended = await ask(own, operator.access, '/grants?all=true', 'DELETE');
  expect([ended.status, ended.json]).toEqual([200, { ended: 2 }]);
  expect(await tryCall(own, ada)).toBe('token_revoked');
});
