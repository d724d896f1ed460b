// §22.2, §22.3: sessions and registered clients, and how operators end and delete them.
import { describe, expect, test } from 'vitest';
import { startOperators } from '../../support/gateway/operators.ts';

describe('sessions', () => {
  test('§22.2 operators: live sessions with user, client and times; those of one user', async () => {
    const { broker, show, open } = await startOperators();
    const first = await open('ada');
    broker.clock.advance(1000);
    const second = await open('grace');
    const { json } = await show('/sessions');
    expect(json).toEqual({
      active: 2,
      sessions: [
        {
          id: second,
          user: 'grace',
          protocolVersion: '2025-11-25',
          client: { name: 'test', version: '1' },
          createdAt: new Date(broker.clock.now()).toISOString(),
          lastUsedAt: new Date(broker.clock.now()).toISOString(),
          expiresAt: new Date(broker.clock.now() + 86_400_000).toISOString(),
        },
        expect.objectContaining({ id: first, user: 'ada' }),
      ],
    });
    const ofAda = await show('/sessions?user=ada');
    expect(ofAda.json.sessions).toEqual([expect.objectContaining({ id: first })]);
    expect((await show('/sessions?user=nobody')).json.sessions).toEqual([]);
  });

  test('§22.2 operators: page by page, each session once', async () => {
    const { show, open } = await startOperators();
    const opened: string[] = [];
    for (let at = 0; at < 5; at += 1) opened.push(await open('ada'));
    const seen: string[] = [];
    for (let cursor = ''; ; ) {
      const { json } = await show(`/sessions?limit=2${cursor}`);
      expect(json.sessions.length).toBeLessThanOrEqual(2);
      seen.push(...json.sessions.map(({ id }: { id: string }) => id));
      if (json.nextCursor === undefined) break;
      cursor = `&cursor=${json.nextCursor}`;
    }
    expect(seen.sort()).toEqual(opened.sort());
  });

  test.each([
    'limit=0',
    'limit=101',
    'limit=ten',
    'limit=-1',
    'cursor=',
    'cursor=x',
    'cursor=1',
    'cursor=1.2.3',
    'cursor=99999999999999999.0',
  ])('§22.2 operators: ?%s is refused with what is allowed', async (query) => {
    const { show } = await startOperators();
    for (const list of ['/sessions', '/clients']) {
      const answer = await show(`${list}?${query}`);
      expect(answer.status).toBe(400);
      expect(answer.json.error.data.details).toMatch(/limit must be|cursor must be/);
    }
  });

  test('§22.3 operators: a session is ended for its user, once, and that is in the audit log', async () => {
    const { broker, act, open, audit } = await startOperators();
    const session = await open('ada');
    expect((await act(`/sessions/${session}`)).status).toBe(204);
    const call = await broker.gateway.rpc(
      { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      { session, token: await broker.sign({ sub: 'ada' }) },
    );
    expect(call.status).toBe(404);
    const again = await act(`/sessions/${session}`);
    expect(again.status).toBe(404);
    expect(again.json.error.data.reason).toBe('session_not_found');
    const action = { event: 'admin', action: 'end_session', target: session, user: 'olga' };
    expect(audit.lines()).toMatchObject([
      { ...action, outcome: 'success', ip: '127.0.0.1', duration: expect.any(Number) },
      { ...action, outcome: 'failure', reason: 'session_to_end_not_found' },
    ]);
  });

  test.each(['abc', 'index', 'user:1', '..', '%2e%2e', '0B8C1F7E-3F0E-4C52-9D28-1F6D1C3F8A11'])(
    '§22.3 operators: there is nothing at /sessions/%s',
    async (id) => {
      const { act } = await startOperators();
      expect((await act(`/sessions/${id}`)).status).toBe(404);
    },
  );

  test('§22.3 operators: with AUDIT_REQUIRED nothing is shown or ended that cannot be written down', async () => {
    const { broker, show, act, open } = await startOperators({
      AUDIT_LOG: 'file:/dev/full',
      AUDIT_REQUIRED: 'true',
    });
    const session = await open('ada');
    const answer = await act(`/sessions/${session}`);
    expect(answer.status).toBe(503);
    expect(answer.json.error.data.reason).toBe('audit_unavailable');
    expect((await show('/sessions')).json.error.data.reason).toBe('audit_unavailable');
    const listed = await broker.gateway.rpc(
      { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      { session, token: await broker.sign({ sub: 'ada' }) },
    );
    expect(listed.status).toBe(200);
  });
});

describe('registered clients', () => {
  test('§22.2 operators: registered clients by the time at which they expire, and whether they are used', async () => {
    const { broker, show } = await startOperators({ DCR_CLIENT_TTL: '2592000' });
    const { steps, clock } = broker;
    const registeredAt = new Date(clock.now()).toISOString();
    const unused = await steps.register({ client_name: 'Unused' });
    const used = await steps.register({ client_name: 'Used' });
    await broker.logIn(used);
    const { json, text } = await show('/clients');
    expect(json).toEqual({
      clients: [
        expect.objectContaining({
          id: used.id,
          isUsed: true,
          expiresAt: new Date(clock.now() + 2_592_000_000).toISOString(),
        }),
        {
          id: unused.id,
          name: 'Unused',
          redirectUris: ['https://client.example/callback'],
          registeredAt,
          expiresAt: new Date(clock.now() + 86_400_000).toISOString(),
          isUsed: false,
        },
      ],
    });
    expect(text).not.toContain('refresh-1');
    clock.sleep(86_400_001);
    expect((await show('/clients')).json.clients).toHaveLength(1);
  });

  test('§22.2 operators: clients come in pages, too', async () => {
    const { broker, show } = await startOperators();
    for (let at = 0; at < 3; at += 1) await broker.steps.register();
    const first = (await show('/clients?limit=2')).json;
    const second = (await show(`/clients?limit=2&cursor=${first.nextCursor}`)).json;
    const ids = [...first.clients, ...second.clients].map(({ id }: { id: string }) => id);
    expect(new Set(ids).size).toBe(3);
    expect(second.nextCursor).toBeUndefined();
  });

  test('§22.3 operators: a deleted client cannot log in or refresh, and that is in the audit log', async () => {
    const { broker, act, show, audit } = await startOperators();
    const { steps } = broker;
    const client = await steps.register();
    const { refresh_token: token } = await broker.logIn(client);
    expect((await act(`/clients/${client.id}`)).status).toBe(204);
    expect((await show('/clients')).json.clients).toEqual([]);
    const refreshed = await steps.refresh(client, token);
    expect(refreshed.status).toBe(401);
    expect(refreshed.json.error).toBe('invalid_client');
    expect((await steps.authorize(client)).status).toBe(400);
    const again = await act(`/clients/${client.id}`);
    expect(again.status).toBe(404);
    expect(again.json.error.data.reason).toBe('client_not_found');
    const action = { event: 'admin', action: 'delete_client', target: client.id, user: 'olga' };
    expect(audit.lines().filter((line) => line.action === 'delete_client')).toMatchObject([
      { ...action, outcome: 'success' },
      { ...action, outcome: 'failure', reason: 'client_not_found' },
    ]);
  });
});
