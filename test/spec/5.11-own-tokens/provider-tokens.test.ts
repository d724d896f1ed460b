// What the provider gave for a login that came to nothing, or had to make room, ends there, too.
import { expect, test } from 'vitest';
import { createGrantId } from '../../../src/logins/grants/grant.ts';
import { createGrants } from '../../../src/logins/grants/grants.ts';
import { createSeal } from '../../../src/store/seal/seal.ts';
import { createPrometheusMetrics } from '../../../src/telemetry/metrics/prometheus.ts';
import { createAuditLog } from '../../support/gateway/audit-log.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { BASE, MCP, startOwnTokens } from '../../support/oauth/own-tokens.ts';
import { wrapStore } from '../../support/stores/wrapped-store.ts';

test('§13.3, §5.11 provider: whoever may not log in leaves no tokens behind at the provider', async () => {
  const own = closeAfterTest(await startOwnTokens({ env: { LOGIN_ALLOWED_GROUPS: 'staff' } }));
  const { access } = await own.logIn({ groups: ['staff'] });
  const { cookie, asked } = await own.steps.approve(await own.steps.register());
  const refused = await own.steps.callback(own.provider.logIn(asked, { sub: 'user-2' }), cookie);
  expect(refused.status).toBe(403);
  await expect.poll(() => own.provider.revoked).toEqual([expect.stringMatching(/^refresh-/)]);
  expect((await own.call(access)).status).toBe(200);
});

test('§13.1, §5.11 provider: nor does a login whose ID token is no good', async () => {
  const own = closeAfterTest(await startOwnTokens());
  own.provider.idToken = { aud: 'another' };
  const { cookie, asked } = await own.steps.approve(await own.steps.register());
  const { headers } = await own.steps.callback(own.provider.logIn(asked), cookie);
  expect(new URL(headers.location ?? '').searchParams.get('error')).toBe('server_error');
  await expect.poll(() => own.provider.revoked).toHaveLength(1);
});

test('§13.3, §5.11 provider: that it is down is no reason to answer the person otherwise', async () => {
  const own = closeAfterTest(await startOwnTokens({ env: { LOGIN_ALLOWED_GROUPS: 'staff' } }));
  own.provider.issuer.document = {
    ...own.provider.issuer.document,
    revocation_endpoint: undefined,
  };
  const { cookie, asked } = await own.steps.approve(await own.steps.register());
  expect((await own.steps.callback(own.provider.logIn(asked), cookie)).status).toBe(403);
  expect(own.provider.revoked).toEqual([]);
});

const SECRET = 'a secret by which the test fills the store';

/** As many logins of a user as one may have; the first ends first. */
async function startFull() {
  const clock = manualClock(1_800_000_000_000);
  const audit = await createAuditLog();
  const { store, remove } = await wrapStore(() => ({}), clock);
  const own = await startOwnTokens({
    env: { OAUTH_STATE_SECRET: SECRET, ...audit.env },
    deps: { store },
  });
  const grants = createGrants(
    { store, clock, metrics: createPrometheusMetrics() },
    createSeal([SECRET]),
    { announce: async () => {} },
    { idleSeconds: 2_592_000, maxSeconds: 0, unrenewedSeconds: 28_800 },
  );
  const ids = Array.from({ length: 1000 }, createGrantId);
  const fill = (id: string, at: number) => {
    const now = clock.now() + at * 1000;
    return grants.create({
      id,
      user: { issuer: own.provider.issuer.url, sub: 'user-1' },
      claims: {},
      client: { id: 'client', redirectHost: new URL(BASE).host },
      scopes: [],
      resources: [MCP],
      createdAt: now,
      renewedAt: now,
      provider: { refreshToken: `refresh-${at}` },
      issued: {
        generation: 1,
        issuedAt: now,
        expiresAt: now + 3_600_000,
        scopes: [],
        resources: [MCP],
        isUsed: false,
      },
    });
  };
  await Promise.all(ids.map(fill));
  own.clock.advance(1_000_000);
  return {
    own,
    audit,
    ids,
    async close() {
      await own.close();
      await remove();
    },
  };
}

test('§5.11, §21.1 provider: the login that makes room for the thousand-and-first ends as any other does', async () => {
  const { own, audit, ids } = closeAfterTest(await startFull());
  const { access } = await own.logIn();
  await expect.poll(() => own.provider.revoked).toEqual(['refresh-0']);
  expect((await own.call(access)).status).toBe(200);
  const readEnded = () => audit.lines().filter(({ event }) => event === 'revocation');
  await expect
    .poll(readEnded)
    .toMatchObject([
      { outcome: 'success', user: 'user-1', client: 'client', grant: ids[0], action: 'make_room' },
    ]);
});

test('§5.11 provider: a new login makes no room for itself, though it would end first', async () => {
  const { own } = closeAfterTest(await startFull());
  own.provider.hasRefreshTokens = false;
  const { access } = await own.logIn();
  expect((await own.call(access)).status).toBe(200);
  await expect.poll(() => own.provider.revoked).toEqual(['refresh-0']);
});
