// `postern doctor` before GitHub, which has no discovery document and no key set.
import { expect, test } from 'vitest';
import { type DoctorHow, runDoctor } from '../support/gateway/doctor.ts';
import type { Env } from '../support/gateway/process.ts';
import { useShared } from '../support/lifetimes.ts';
import { startEmulator } from '../support/providers/emulator.ts';
import { GITHUB } from '../support/providers/github.ts';

const emulator = useShared(() => startEmulator(GITHUB));

const diagnose = (changed: Env = {}, how: DoctorHow = {}) =>
  runDoctor(undefined, {
    ...how,
    env: {
      BASE_URL: 'http://localhost:9',
      HOST: '127.0.0.1',
      OAUTH_STATE_SECRET: 'a-secret-of-the-gateway-that-is-long-enough',
      CIMD_ALLOWED_HOSTS: 'none',
      ...emulator.env,
      ...changed,
    },
  });

test('§20.2 doctor, GitHub: it can be reached, the client is accepted, and a login can be renewed', async () => {
  const { code, failures, find } = await diagnose();
  expect([code, failures]).toEqual([0, []]);
  expect(find('provider.discovery')).toMatchObject({
    status: 'ok',
    what: expect.stringContaining('it needs no discovery document'),
  });
  expect(find('provider.client-secret').status).toBe('ok');
  expect(find('provider.offline-access').what).toContain('are valid until they are revoked');
});

test('§20.2 doctor, GitHub: a wrong secret is told, although GitHub says it with status 200', async () => {
  const { failures, find } = await diagnose({ OAUTH_CLIENT_SECRET: 'wrong' });
  expect(failures).toEqual(['provider.client-secret']);
  expect(find('provider.client-secret').why).toContain('incorrect_client_credentials');
});

test('§20.2 doctor, GitHub: one that cannot be reached is told by GITHUB_URL', async () => {
  const { failures, find } = await diagnose({ GITHUB_URL: 'http://127.0.0.1:9' });
  expect(failures).toContain('provider.reachable');
  expect(find('provider.reachable').setting).toBe('GITHUB_URL');
});
