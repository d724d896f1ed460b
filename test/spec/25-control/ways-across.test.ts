// §25 to §27: what begins where nothing holds it back does not go on where something does: calls that wait for an answer,
// sessions of another path, and streams that are open while the configuration changes.
import { describe, expect, test } from 'vitest';
import { type EventStream, openEvents } from '../../support/clients/event-stream.ts';
import { BOTH_TYPES, openClient } from '../../support/clients/session-client.ts';
import { ASKABLE, LOG_LEVEL, statelessRequest } from '../../support/clients/stateless.ts';
import { CONTROLS, type Control } from '../../support/control/controls.ts';
import { type Params, toRetry } from '../../support/control/era-clients.ts';
import { type Speaking, startSpeakingGateway } from '../../support/control/speaking-gateway.ts';
import { SERVERS, type ServerName } from '../../support/control/ways.ts';
import { CLIENT_MARK, SERVER_MARK } from '../../support/guards/speaking-server.ts';

const FREE: Control = { title: 'nothing', holds: () => false };
const SAID = { said: CLIENT_MARK };

interface Sent {
  readonly path?: string;
  readonly token?: string;
}

async function call({ gateway }: Speaking, params: Params, { path = '/mcp', token }: Sent = {}) {
  const meta = { ...ASKABLE, [LOG_LEVEL]: 'debug' };
  const { message, headers } = statelessRequest('tools/call', params, { meta });
  const answered = await gateway.request({
    method: 'POST',
    path,
    body: message,
    headers: {
      ...headers,
      accept: BOTH_TYPES,
      authorization: `Bearer ${token ?? (await gateway.issuer.sign())}`,
    },
  });
  return answered.text;
}

/** A call that has asked: its name and arguments, with what they are called again with. */
async function suspend(
  speaking: Speaking,
  server: string,
  answer?: object,
  sent?: Sent,
): Promise<Params> {
  const params = { name: `${server}__elicit`, arguments: SAID };
  const told = await call(speaking, params, sent);
  const retry = toRetry(told, answer);
  if (retry === undefined) throw new Error(`${server} did not ask: ${told}`);
  return { ...params, ...retry };
}

describe('a call that waits for an answer', () => {
  test.each(SERVERS)('§25 goes on with it where nothing has changed: %s', async (server) => {
    const speaking = await startSpeakingGateway(FREE);
    const waiting = await suspend(speaking, server);
    expect(await call(speaking, waiting)).toMatch(new RegExp(`${SERVER_MARK} asked|accept`));
  });

  test.each([
    '/mcp/empty',
    '/mcp/empty-searched',
    '/mcp/other',
    '/mcp/other-searched',
    '/mcp/quiet',
  ])('§25 does not go on at a path that does not have it: %s', async (path) => {
    const speaking = await startSpeakingGateway(FREE);
    for (const server of SERVERS) {
      const waiting = await suspend(speaking, server);
      expect(await call(speaking, waiting, { path })).not.toContain(SERVER_MARK);
      const { name, arguments: args, ...retry } = waiting;
      const inner = { name: 'call_tool', arguments: { name, arguments: args }, ...retry };
      expect(await call(speaking, inner, { path })).not.toContain(SERVER_MARK);
    }
  });

  test('§25.3 goes on for the tool that asked alone, where call_tool called it', async () => {
    const speaking = await startSpeakingGateway(FREE);
    const path = '/mcp/searched';
    const params = { name: 'call_tool', arguments: { name: 'it__elicit', arguments: SAID } };
    const retry = toRetry(await call(speaking, params, { path }));
    for (const name of ['local__elicit', 'now__elicit', 'own__elicit', 'it__sample']) {
      const other = { name: 'call_tool', arguments: { name, arguments: SAID }, ...retry };
      expect(await call(speaking, other, { path }), name).not.toContain(`${SERVER_MARK} asked`);
    }
    const others = { name: 'it__elicit', arguments: { said: 'something else' }, ...retry };
    expect(await call(speaking, others, { path })).not.toContain('"result":{"content"');
    expect(await call(speaking, { ...params, ...retry }, { path })).toContain('accept');
  });

  test('§25 does not go on for somebody else', async () => {
    const speaking = await startSpeakingGateway(FREE);
    const token = await speaking.gateway.issuer.sign({ sub: 'somebody-else' });
    for (const server of SERVERS) {
      const waiting = await suspend(speaking, server);
      expect(await call(speaking, waiting, { token })).not.toContain(SERVER_MARK);
    }
  });
});

const WAY = { title: '', eras: [], isSearched: false, go: async () => '' } as const;

test('§25 a session of one path is unknown at another, in each direction', async () => {
  const { gateway } = await startSpeakingGateway(FREE);
  const { session, token } = await openClient(gateway);
  const port = await gateway.listen();
  for (const path of ['/mcp/empty', '/mcp/searched', '/mcp/it']) {
    const headers = {
      authorization: `Bearer ${token}`,
      'mcp-session-id': session,
      accept: BOTH_TYPES,
    };
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const answer = await openEvents({ port, path, headers, body });
    expect(answer.status).toBe(404);
    await answer.text();
  }
});

/** `test://r` and so on: of each server one that it lists, and one of its template. */
const URIS = ['own://r', 'test://r', 'test://t/1', 'local://r', 'local://t/1', 'now://r'];

/** The stream of a stateless client that would hear of these, and those of them that it is told that it will. */
async function listen({ gateway }: Speaking, path: string) {
  const notifications = { resourceSubscriptions: URIS };
  const { message, headers } = statelessRequest('subscriptions/listen', { notifications });
  const stream = await openEvents({
    port: await gateway.listen(),
    path,
    headers: {
      ...headers,
      accept: BOTH_TYPES,
      authorization: `Bearer ${await gateway.issuer.sign()}`,
    },
    body: message,
  });
  if (!stream.isStream) return { stream, accepted: [], told: await stream.text() };
  const told = await stream.next();
  return { stream, accepted: told.params?.notifications?.resourceSubscriptions ?? [], told };
}

test.each(CONTROLS.filter(({ isOfAnswers }) => isOfAnswers !== true))(
  '§25 subscriptions/listen tells of nothing that is held back: $title',
  async (control) => {
    const speaking = await startSpeakingGateway(control);
    const path = control.paths?.[0] ?? '/mcp';
    const { stream, accepted } = await listen(speaking, path);
    const isHeld = control.holds({ ...WAY, kind: 'resources', server: 'local' });
    if (isHeld) expect(accepted).toEqual([]);
    else expect(accepted).toEqual(expect.arrayContaining(['test://r', 'local://t/1']));
    stream.hangUp();
  },
);

/** Begins something where nothing is held; resolves to what looks, once something holds, that it does not go on. */
type Begin = (speaking: Speaking, control: Control) => Promise<() => Promise<void>>;

const suspendCalls: Begin = async (speaking, control) => {
  const suspended: { readonly server: ServerName; readonly waiting: Params }[] = [];
  for (const server of SERVERS)
    suspended.push({ server, waiting: await suspend(speaking, server, control.answer) });
  return async () => {
    const passed: string[] = [];
    for (const { server, waiting } of suspended) {
      if (!control.holds({ ...WAY, kind: 'tools', server })) continue;
      const told = await call(speaking, waiting);
      if (told.includes(SERVER_MARK)) passed.push(`${server}: ${told}`);
    }
    expect(passed).toEqual([]);
  };
};

/** Whoever is told that something changed reads it anew: what is held back is not there. */
function collectTold(stream: EventStream) {
  const told: string[] = [];
  const reading = (async () => {
    for await (const { data } of stream) told.push(data);
  })();
  return async (): Promise<readonly string[]> => {
    stream.hangUp();
    await reading.catch(() => {});
    return told;
  };
}

const holdsResources = (control: Control): boolean =>
  control.isOfAnswers !== true && control.holds({ ...WAY, kind: 'resources', server: 'local' });

const watchInSession: Begin = async (speaking, control) => {
  // A program of its own, which tells of what this user subscribes to.
  const token = await speaking.gateway.issuer.sign({ sub: 'watches-in-a-session' });
  const client = await openClient(speaking.gateway, { token });
  await client.ask('tools/list');
  await client.ask('logging/setLevel', { level: 'debug' });
  const stream = await client.watch();
  const uri = 'local://r';
  await client.ask('resources/subscribe', { uri });
  expect((await stream.next()).params).toEqual({ uri });
  return async () => {
    const endReading = collectTold(stream);
    const again = await client.ask('resources/subscribe', { uri });
    await client.call('local__tell', SAID, { progressToken: 'p' }).then(async (answer) => {
      if (answer.isStream) await answer.rest();
      else await answer.text();
    });
    const told = await endReading();
    if (holdsResources(control)) {
      expect(again.error ?? again.result).not.toEqual({});
      expect(told.filter((line) => line.includes(uri))).toEqual([]);
    }
    expect(told.filter((line) => line.includes(SERVER_MARK))).toEqual([]);
  };
};

const listenStateless: Begin = async (speaking, control) => {
  const { stream, accepted } = await listen(speaking, '/mcp');
  expect(accepted).toContain('local://r');
  // The program tells of a change of each as soon as somebody subscribes: before the change of the rules.
  const first = await stream.next();
  const second = await stream.next();
  expect([first.params.uri, second.params.uri].sort()).toEqual(['local://r', 'local://t/1']);
  return async () => {
    const endReading = collectTold(stream);
    // Whoever else subscribes makes it tell of a change again.
    const other = await openClient(speaking.gateway);
    await other.ask('resources/subscribe', { uri: 'local://r' });
    await call(speaking, { name: 'local__tell', arguments: SAID });
    const told = await endReading();
    if (holdsResources(control))
      expect(told.filter((line) => line.includes('local://'))).toEqual([]);
    expect(told.filter((line) => line.includes(SERVER_MARK))).toEqual([]);
  };
};

test.each(CONTROLS.filter(({ title, paths }) => title !== 'nothing' && paths === undefined))(
  '§25 calls that wait for an answer, and streams that are open in either era, do not go on by what holds since: $title',
  async (control) => {
    const speaking = await startSpeakingGateway(FREE);
    const looks: (() => Promise<void>)[] = [];
    for (const begin of [suspendCalls, listenStateless, watchInSession])
      looks.push(await begin(speaking, control));
    await speaking.change(control);
    for (const look of looks) await look();
  },
);
