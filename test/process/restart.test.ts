// §17: whatever ends the process, sessions and registered clients live on in DATA_DIR.
import { afterEach, beforeAll, expect, test } from 'vitest';
import { type Env, endPosterns, makeFolder, startPostern } from '../support/gateway/process.ts';
import { checkSession, endSession, openSession } from '../support/gateway/process-http.ts';
import { authorize, register } from '../support/gateway/process-login.ts';
import { useShared } from '../support/lifetimes.ts';
import { AUDIENCE, startIssuer } from '../support/oauth/issuer.ts';

const issuer = useShared(startIssuer);
let env: Env;
beforeAll(async () => {
  env = {
    OIDC_ISSUER: issuer.url,
    OIDC_AUDIENCE: AUDIENCE,
    OAUTH_AUTHORIZATION_URL: 'https://idp.example/authorize',
    OAUTH_CLIENT_ID: 'gateway',
    DCR_RATE_LIMIT_MAX: '1000',
    OAUTH_AUTHORIZE_RATE_LIMIT_MAX: '1000',
    MCP_RATE_LIMIT_MAX: '1000',
  };
});
afterEach(endPosterns);

test.each(['SIGKILL', 'SIGTERM'] as const)(
  '§3.1 restart: sessions and registered clients outlive %s',
  async (signal) => {
    const first = await startPostern(env);
    const token = await issuer.sign();
    const session = await openSession(first.url, token);
    const ended = await openSession(first.url, token);
    expect(await endSession(first.url, { session: ended, token })).toBe(204);
    const clientId = await register(first.url);
    first.kill(signal);
    expect(await first.ended).toEqual(
      signal === 'SIGKILL' ? { code: null, signal } : { code: 0, signal: null },
    );

    const second = await startPostern({ ...env, DATA_DIR: first.dataDir });
    expect(await checkSession(second.url, { session, token })).toBe(200);
    expect(await checkSession(second.url, { session: ended, token })).toBe(404);
    const eve = await issuer.sign({ sub: 'eve' });
    expect(await checkSession(second.url, { session, token: eve })).toBe(404);
    expect(await authorize(second.url, clientId)).toMatch(/^https:\/\/idp\.example\/authorize\?/);
    expect(await authorize(second.url, 'svc-unknown00000')).toBe('400');
    expect(await endSession(second.url, { session, token })).toBe(204);
    expect(await checkSession(second.url, { session, token })).toBe(404);
  },
);

test('§2.1 restart: what was answered is on disk, whenever the process is killed', async () => {
  const token = await issuer.sign();
  const DATA_DIR = await makeFolder();
  const sessions: string[] = [];
  const clients: string[] = [];
  for (let round = 0; round < 3; round += 1) {
    const postern = await startPostern({ ...env, DATA_DIR });
    const open = async () => void sessions.push(await openSession(postern.url, token));
    const add = async () => void clients.push(await register(postern.url));
    const all = Array.from({ length: 100 }, (_, at) => (at % 2 ? open() : add()));
    // Killed in the middle of the work: some of it fails, and is not counted on.
    const before = sessions.length + clients.length;
    const settled = Promise.allSettled(all);
    await expect
      .poll(() => sessions.length + clients.length, { timeout: 10_000, interval: 1 })
      .toBeGreaterThan(before + 20);
    postern.kill('SIGKILL');
    await settled;
  }
  const last = await startPostern({ ...env, DATA_DIR });
  expect(sessions.length + clients.length).toBeGreaterThan(60);
  for (const session of sessions) {
    expect(await checkSession(last.url, { session, token })).toBe(200);
  }
  for (const clientId of clients) expect(await authorize(last.url, clientId)).toMatch(/^https:/);
});
