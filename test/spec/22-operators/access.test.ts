// §22.1: who may use the operators' page.
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { ConfigError } from '../../../src/config/problem.ts';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { startGateway } from '../../support/gateway/gateway.ts';
import { startOperators } from '../../support/gateway/operators.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

const SESSION = '/sessions/0b8c1f7e-3f0e-4c52-9d28-1f6d1c3f8a11';
const SHOWN = [
  '/sessions',
  '/clients',
  '/login-failures',
  '/limits',
  '/key-set',
  '/store',
  '/servers',
];

test.each([...SHOWN, SESSION, '/clients/svc-AAAAAAAAAAAA'])(
  '§22.1 operators: without ADMIN_GROUPS there is nothing at /admin/api%s',
  async (path) => {
    const gateway = closeAfterTest(await startGateway());
    const token = await gateway.issuer.sign({ groups: ['operators'] });
    for (const method of ['GET', 'DELETE']) {
      const answer = await gateway.request({
        method,
        path: `/admin/api${path}`,
        headers: { authorization: `Bearer ${token}` },
      });
      expect(answer.status).toBe(404);
    }
  },
);

test('§22.1 operators: each list needs a token that names one of the groups', async () => {
  const { broker, show } = await startOperators();
  for (const path of SHOWN) {
    const anonymous = await broker.gateway.request({ path: `/admin/api${path}` });
    expect(anonymous.status).toBe(401);
    expect(anonymous.headers['www-authenticate']).toContain('resource_metadata=');
    expect((await show(path)).status).toBe(200);
    expect((await show(path, { claims: { groups: ['/sre'] } })).status).toBe(200);
    for (const groups of [
      undefined,
      [],
      ['Operators'],
      ['/sre/'],
      'operators',
      ['operators ', 1],
    ]) {
      const answer = await show(path, { claims: { groups } });
      expect(answer.status).toBe(403);
      expect(answer.json.error.data).toMatchObject({ reason: 'operators_only' });
      expect(answer.headers['cache-control']).toBe('no-store');
    }
  }
});

test('§22.1 operators: whoever is none ends no session and deletes no client, and is in the audit log', async () => {
  const { broker, show, act, open, audit } = await startOperators();
  const session = await open('ada');
  const { id } = await broker.steps.register();
  const claims = { sub: 'mallory', groups: ['staff'] };
  for (const path of [`/sessions/${session}`, `/clients/${id}`]) {
    expect((await act(path, { claims })).status).toBe(403);
  }
  await show('/sessions', { claims });
  expect((await show('/sessions?user=ada')).json.sessions).toHaveLength(1);
  expect((await show('/clients')).json.clients).toHaveLength(1);
  const denied = { event: 'admin', outcome: 'denied', reason: 'operators_only', user: 'mallory' };
  expect(audit.lines().filter(({ event }) => event === 'admin')).toMatchObject([
    { ...denied, action: 'end_session', target: session },
    { ...denied, action: 'delete_client', target: id },
    { ...denied, action: 'show', target: 'sessions' },
    { outcome: 'success', action: 'show', target: 'sessions of ada' },
    { outcome: 'success', action: 'show', target: 'clients' },
  ]);
});

test('§22.1 operators: answers are for the own pages alone, and are not kept', async () => {
  const { broker, show } = await startOperators({
    ALLOWED_ORIGINS: 'https://app.example',
    NODE_ENV: 'development',
  });
  const own = await show('/store', { headers: { origin: 'https://gw.example' } });
  expect(own.status).toBe(200);
  expect(own.headers).toMatchObject({
    'cache-control': 'no-store',
    'cross-origin-resource-policy': 'same-origin',
  });
  for (const origin of ['https://app.example', 'http://localhost:5173']) {
    const answer = await show('/store', { headers: { origin } });
    expect(answer.status).toBe(403);
    expect(answer.json.error.data.reason).toBe('invalid_origin');
    const preflight = await broker.gateway.request({
      method: 'OPTIONS',
      path: '/admin/api/store',
      headers: { origin, 'access-control-request-method': 'GET' },
    });
    expect(preflight.status).toBe(403);
    for (const { headers } of [answer, preflight]) {
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
    }
  }
});

test('§22.1 operators: calls are limited by their own settings', async () => {
  const { show, broker } = await startOperators({ ADMIN_RATE_LIMIT_MAX: '2' });
  expect((await show('/store')).status).toBe(200);
  expect((await show('/limits')).status).toBe(200);
  const answer = await show('/store');
  expect(answer.status).toBe(429);
  expect(answer.headers['cache-control']).toBe('no-store');
  const metrics = await broker.gateway.request({ path: '/metrics' });
  expect(metrics.text).toContain('route="/admin/api/store"');
});

test('§22.1 operators: metrics know a session and a client by their pattern', async () => {
  const { broker, act } = await startOperators();
  await act(SESSION);
  await act('/clients/svc-AAAAAAAAAAAA');
  const { text } = await broker.gateway.request({ path: '/metrics' });
  expect(text).toContain('route="/admin/api/sessions/:id"');
  expect(text).toContain('route="/admin/api/clients/:id"');
  expect(text).not.toContain('0b8c1f7e');
});

describe('settings', () => {
  const OPEN = { AUTH_REQUIRED: 'false', ADMIN_GROUPS: 'operators' };

  test('§22.1 operators: groups without a login end the start, with what to change', () => {
    expect(() => loadConfig(OPEN)).toThrow(
      /ADMIN_GROUPS: .*Remove ADMIN_GROUPS, or set AUTH_REQUIRED=true/,
    );
    expect(() => loadConfig({ OIDC_ISSUER: 'https://id.example', ADMIN_GROUPS: 'a,,b' })).toThrow(
      /ADMIN_GROUPS: .*comma-separated list of groups/,
    );
  });

  test('§22.1 operators: nor may a configuration made by hand have them', async () => {
    const config = loadConfig({ AUTH_REQUIRED: 'false' });
    const admin = { ...config.admin, groups: ['operators'] };
    await expect(createGateway({ ...config, admin })).rejects.toThrow(ConfigError);
  });
});
