// What a client has open ends when its login does, on whatever replica: streams, and calls that wait.
import { EventEmitter, once } from 'node:events';
import { expect, test } from 'vitest';
import { createLocalCatalog, defineResource, defineTool } from '../../../src/index.ts';
import { type EventStream, openEvents } from '../../support/clients/event-stream.ts';
import { statelessRequest } from '../../support/clients/stateless.ts';
import { closeAfterTest, useFresh } from '../../support/lifetimes.ts';
import { assertUser, bringAssertion, ID_JAG_ENV } from '../../support/oauth/id-jag.ts';
import {
  basic,
  fileOf,
  getToken,
  SECRET,
  withSecret,
} from '../../support/oauth/machine-clients.ts';
import {
  type OwnTokenGateway,
  type OwnTokenOptions,
  startOwnTokens,
  type Tokens,
} from '../../support/oauth/own-tokens.ts';

/** `begun <key>`, `aborted <key>`; the test says `go <key>`, or `changed`. */
const events = new EventEmitter().setMaxListeners(0);

const catalog = createLocalCatalog({
  tools: [
    defineTool({
      name: 'waits',
      description: 'Goes on until it is let go, whatever its signal says.',
      inputSchema: {
        type: 'object',
        properties: { key: { type: 'string' } },
        required: ['key'],
      } as const,
      async run({ key }, { signal }) {
        const go = once(events, `go ${key}`);
        signal.addEventListener('abort', () => events.emit(`aborted ${key}`));
        events.emit(`begun ${key}`);
        await go;
        return { content: [{ type: 'text', text: key }] };
      },
    }),
  ],
  resources: [
    defineResource({
      uri: 'watched://a',
      name: 'a',
      description: 'Changes when the test says so.',
      mimeType: 'text/plain',
      watch(changed: () => void) {
        events.on('changed', changed);
        return () => void events.off('changed', changed);
      },
      read: () => ({ text: 'a' }),
    }),
  ],
});

const options: OwnTokenOptions = { env: { MCP_STREAMS: 'true' }, deps: { catalog } };
const own = useFresh(() => startOwnTokens({ ...options, isReplicated: true }));

interface Opened {
  readonly get: EventStream;
  readonly listen: EventStream;
  readonly calls: Readonly<Record<'session' | 'stateless', Promise<EventStream>>>;
}

/** All that a client can have open at a gateway, each begun. */
async function openAll(
  at: OwnTokenGateway,
  { access }: Pick<Tokens, 'access'>,
  key: string,
): Promise<Opened> {
  const port = await at.gateway.listen();
  const accept = 'application/json, text/event-stream';
  const authorization = `Bearer ${access}`;
  const opened = await at.call(access);
  const session = { 'mcp-session-id': String(opened.headers['mcp-session-id']) };
  const host = new URL(at.gateway.baseUrl).host;
  const send = (method: string, body: unknown, headers: Readonly<Record<string, string>>) =>
    openEvents({ port, method, body, headers: { host, accept, authorization, ...headers } });
  const sendStateless = (method: string, params: Record<string, unknown>) => {
    const { message, headers } = statelessRequest(method, params);
    return send('POST', message, headers);
  };
  const ask = (method: string, params: object) =>
    send('POST', { jsonrpc: '2.0', id: 7, method, params }, session);
  await (await ask('resources/subscribe', { uri: 'watched://a' })).text();
  const get = await send('GET', undefined, session);
  const listen = await sendStateless('subscriptions/listen', {
    notifications: { resourceSubscriptions: ['watched://a'] },
  });
  expect(await listen.next()).toMatchObject({ method: 'notifications/subscriptions/acknowledged' });
  const begun = ['session', 'stateless'].map((era) => once(events, `begun ${key} ${era}`));
  const calls = {
    session: ask('tools/call', { name: 'waits', arguments: { key: `${key} session` } }),
    stateless: sendStateless('tools/call', {
      name: 'waits',
      arguments: { key: `${key} stateless` },
    }),
  };
  await Promise.all(begun);
  return { get, listen, calls };
}

async function expectRevoked(call: Promise<EventStream>): Promise<void> {
  const answer = await call;
  expect(answer.status).toBe(401);
  expect(answer.headers['www-authenticate']).toContain('error="invalid_token"');
  expect(JSON.parse(await answer.text()).error.data.reason).toBe('token_revoked');
}

async function expectEnded({ get, listen, calls }: Opened, key: string): Promise<void> {
  expect(await get.rest()).toEqual([]);
  // The answer to the request, and nothing else.
  expect(await listen.rest()).toEqual([
    expect.objectContaining({ result: expect.objectContaining({ resultType: 'complete' }) }),
  ]);
  await Promise.all(Object.values(calls).map(expectRevoked));
  for (const era of ['session', 'stateless']) events.emit(`go ${key} ${era}`);
}

const UPDATED = { method: 'notifications/resources/updated' };

async function expectOpen({ get, listen, calls }: Opened, key: string): Promise<void> {
  events.emit('changed');
  expect(await get.next()).toMatchObject(UPDATED);
  expect(await listen.next()).toMatchObject(UPDATED);
  for (const era of ['session', 'stateless'] as const) {
    events.emit(`go ${key} ${era}`);
    expect((await calls[era]).status).toBe(200);
  }
  get.hangUp();
  listen.hangUp();
}

/** Once the file was loaded anew. All streams are told of it, whose lists may differ; those of the client end then. */
async function expectOthersOpen(gone: Opened, key: string, other: Opened): Promise<void> {
  await Promise.all([gone.get.rest(), gone.listen.rest()]);
  await Promise.all(Object.values(gone.calls).map(expectRevoked));
  for (const era of ['session', 'stateless'] as const) {
    events.emit(`go ${key} ${era}`);
    events.emit(`go other ${era}`);
    expect((await other.calls[era]).status).toBe(200);
  }
  events.emit('changed');
  for (const stream of [other.get, other.listen]) {
    await expect.poll(() => stream.next()).toMatchObject(UPDATED);
    stream.hangUp();
  }
}

const revoke = (at: OwnTokenGateway, { refresh, client }: Tokens) =>
  at.steps.post('/oauth/revoke', { token: refresh, client_id: client.id });

test('§5.11 ended: what a login has open at any replica ends with it, what others have open stays', async () => {
  const ada = await own.logIn();
  const sameUser = await own.logIn();
  const bob = await own.logIn({ sub: 'user-2' });
  const here = await openAll(own, ada, 'here');
  const there = await openAll(own.other, ada, 'there');
  const others = {
    same: await openAll(own.other, sameUser, 'same'),
    bob: await openAll(own.other, bob, 'bob'),
  };
  const aborted = ['here session', 'here stateless', 'there session', 'there stateless'].map(
    (key) => once(events, `aborted ${key}`),
  );
  expect((await revoke(own, ada)).status).toBe(200);
  await Promise.all([expectEnded(here, 'here'), expectEnded(there, 'there')]);
  await Promise.all(aborted);
  await expectOpen(others.same, 'same');
  await expectOpen(others.bob, 'bob');
});

test('§5.11 ended: of a call that is a stream by then the error is the last event', async () => {
  const at = closeAfterTest(await startOwnTokens(options));
  const ada = await at.logIn();
  const { calls, get, listen } = await openAll(at, ada, 'long');
  at.clock.advance(10_250);
  const opened = await Promise.all(Object.values(calls));
  expect(opened.every(({ isStream, status }) => isStream && status === 200)).toBe(true);
  expect((await revoke(at, ada)).status).toBe(200);
  for (const answer of opened) {
    expect(await answer.rest()).toMatchObject([{ error: { data: { reason: 'token_revoked' } } }]);
  }
  for (const stream of [get, listen]) stream.hangUp();
  for (const era of ['session', 'stateless']) events.emit(`go long ${era}`);
});

test('§5.11 ended: a renewal that the provider refused ends them, too', async () => {
  const ada = await own.logIn();
  const bob = await own.logIn({ sub: 'user-2' });
  const opened = await openAll(own.other, ada, 'ada');
  const others = await openAll(own.other, bob, 'bob');
  own.provider.disable('user-1');
  const renewing = await own.open({ OAUTH_RENEWAL_SECONDS: '0' });
  expect((await renewing.refresh(ada)).status).toBe(400);
  await expectEnded(opened, 'ada');
  await expectOpen(others, 'bob');
});

test('§5.11 ended: what a client of the configuration file has open ends when it is removed there, and what another has stays', async () => {
  const clients = [withSecret('ci'), withSecret('other')];
  const file = await fileOf(clients);
  const at = closeAfterTest(await startOwnTokens({ ...options, deps: { catalog, file } }));
  const ci = await openAll(at, { access: await getToken(at.gateway, 'ci') }, 'ci');
  const other = await openAll(at, { access: await getToken(at.gateway, 'other') }, 'other');
  await at.gateway.gateway.reload({ file: await fileOf(clients.slice(1)) });
  await expectOthersOpen(ci, 'ci', other);
});

test('§13.7, §5.11 ended: what users of such a client have open by their assertions ends with it, and what those of another have stays', async () => {
  const clients = [withSecret('agent'), withSecret('other')];
  const file = await fileOf(clients);
  const env = { ...options.env, ...ID_JAG_ENV };
  const at = closeAfterTest(await startOwnTokens({ ...options, env, deps: { catalog, file } }));
  const openBy = async (id: string) => {
    const claims = { client_id: id };
    const assertion = await assertUser(at.provider.issuer, at.clock.now(), { claims });
    const authorization = basic(id, SECRET);
    const { json } = await bringAssertion(at.gateway, assertion, { authorization });
    return openAll(at, { access: json.access_token }, id);
  };
  const [agent, other] = [await openBy('agent'), await openBy('other')];
  await at.gateway.gateway.reload({ file: await fileOf(clients.slice(1)) });
  await expectOthersOpen(agent, 'agent', other);
});

test.each([
  { setting: 'OAUTH_GRANT_MAX_SECONDS', lastsLong: true },
  { setting: 'OAUTH_GRANT_UNRENEWED_SECONDS', lastsLong: false },
])(
  '§5.11 ended: what is open at any replica ends with its login’s age ($setting), and nothing of another login',
  async ({ setting, lastsLong }) => {
    const aged = closeAfterTest(
      await startOwnTokens({
        ...options,
        isReplicated: true,
        env: { ...options.env, [setting]: '1800' },
      }),
    );
    aged.provider.hasRefreshTokens = lastsLong;
    const ada = await aged.logIn({ sub: 'ada' });
    aged.clock.advance(1_799_900);
    const mine = await aged.logIn({ sub: 'ada' });
    const bob = await aged.logIn({ sub: 'bob' });
    const opened = [
      await openAll(aged, ada, 'here'),
      await openAll(aged.other, ada, 'there'),
    ] as const;
    const others = [
      await openAll(aged.other, mine, 'mine'),
      await openAll(aged.other, bob, 'bob'),
    ] as const;
    aged.clock.advance(500);
    await expectEnded(opened[0], 'here');
    await expectEnded(opened[1], 'there');
    await expectOpen(others[0], 'mine');
    await expectOpen(others[1], 'bob');
  },
);
