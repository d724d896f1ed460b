// What a server says of itself to one caller is told to nobody else.
import { decodeJwt } from 'jose';
import { describe, expect, test } from 'vitest';
import { ServerLists } from '../../../src/catalog/server-lists.ts';
import { createLock } from '../../../src/lock/lock.ts';
import { computeFingerprint } from '../../../src/lock/lock-file.ts';
import { GATEWAY_CALLER, type UpstreamDescription } from '../../../src/mcp/upstream/upstream.ts';
import { createDescriptions } from '../../../src/servers/http/stateless-protocol.ts';
import { CLIENT_CAPABILITIES, stateless } from '../../support/clients/stateless.ts';
import { INITIALIZE_REQUEST } from '../../support/gateway/gateway.ts';
import { openTestRuntime } from '../../support/gateway/runtime.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import {
  type CatalogGateway,
  startForTest as start,
} from '../../support/upstreams/catalog-gateway.ts';
import { HTTP_DEFAULTS, openHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import {
  buildTool,
  serveForTest as serve,
  startListingServer,
} from '../../support/upstreams/listing-server.ts';
import { serveSse } from '../../support/upstreams/listing-sse.ts';
import { sessionCaller } from '../../support/upstreams/requests.ts';
import { scripted } from '../../support/upstreams/stdio.ts';

type Headers = Readonly<Record<string, unknown>>;

/** Who calls, as `identity` says it; the gateway itself has no other name than its URL. */
const readSub = ({ authorization }: Headers): string =>
  String(decodeJwt(String(authorization).slice('Bearer '.length)).sub);

/** Each user is told its own secret; `nil` is offered nothing, and speaks an older revision. */
function describeFor(headers: Headers) {
  const sub = readSub(headers);
  return {
    capabilities: sub === 'nil' ? {} : { tools: {}, prompts: {}, resources: {}, completions: {} },
    instructions: `SECRET-OF-${sub}`,
  };
}

const TOOLS = [buildTool('t')];
const PATIENT = { timeout: 20_000 };

const SERVERS = {
  'a server of sessions': () =>
    serve({
      tools: TOOLS,
      answers: {
        initialize: (_params, headers) => ({
          result: {
            protocolVersion: readSub(headers) === 'nil' ? '2025-06-18' : '2025-11-25',
            serverInfo: { name: 'own', version: '1' },
            ...describeFor(headers),
          },
        }),
      },
    }),
  'a stateless server': () =>
    serve({
      tools: TOOLS,
      answers: {
        'server/discover': (_params, headers) => ({
          result: { supportedVersions: ['2026-07-28'], ...describeFor(headers) },
        }),
      },
    }),
  'a server of either era, by user': () =>
    serve({
      tools: TOOLS,
      answers: {
        initialize: (_params, headers) =>
          readSub(headers) === 'nil'
            ? { error: { code: -32601, message: 'Method not found' } }
            : {
                result: {
                  protocolVersion: '2025-11-25',
                  serverInfo: { name: 'own', version: '1' },
                  ...describeFor(headers),
                },
              },
        'server/discover': (_params, headers) =>
          readSub(headers) === 'nil'
            ? { result: { supportedVersions: ['2026-07-28'], ...describeFor(headers) } }
            : { error: { code: -32601, message: 'Method not found' } },
      },
    }),
  'a server of HTTP+SSE': () =>
    serveSse({ tools: TOOLS, describe: (headers: Headers) => describeFor(headers) }),
};

interface Told {
  readonly instructions?: string;
  readonly capabilities: object;
}

const CLIENTS: Readonly<Record<string, (gateway: CatalogGateway, token: string) => Promise<Told>>> =
  {
    initialize: async (gateway, token) =>
      (await gateway.rpc(INITIALIZE_REQUEST, { token })).json.result,
    'server/discover': async (gateway, token) =>
      (await stateless(gateway, 'server/discover', {}, { token })).json.result,
  };

describe.each(Object.entries(SERVERS))('%s', (_what, serveIt) => {
  test.each(
    Object.keys(CLIENTS).flatMap((method) => ['/mcp', '/mcp/a'].map((path) => [method, path])),
  )(
    '§18.4 descriptions: %s at %s tells each user what its server says to that user',
    async (method, path) => {
      const server = await serveIt();
      const type = server.url.endsWith('/sse') ? { type: 'sse' } : {};
      const file = { mcpServers: { a: { url: server.url, auth: { type: 'identity' }, ...type } } };
      const gateway = await start({ file, ...(path === '/mcp/a' && { view: 'a' }) });
      const ask = CLIENTS[method];
      if (ask === undefined) throw new Error(method);
      const heading = path === '/mcp' ? '## a\n\n' : '';
      for (const sub of ['ann', 'nil', 'bob', 'ann', 'bob']) {
        const token = await gateway.issuer.sign({ sub });
        const told = await ask(gateway, token);
        expect(told.instructions).toBe(`${heading}SECRET-OF-${sub}`);
        expect('tools' in told.capabilities).toBe(sub !== 'nil');
        // What one user is offered decides nothing about the lists of another.
        const names = await gateway.listNames('tools/list', undefined, token);
        const name = path === '/mcp' ? 'a__t' : 't';
        expect(names).toEqual(sub === 'nil' ? [] : [name]);
      }
    },
  );
});

test('§18.4 descriptions: prompts, completions and resources of one user do not depend on another', async () => {
  const server = await serve({
    prompts: [{ name: 'p' }],
    resources: [{ uri: 'x://a', name: 'a' }],
    answers: {
      initialize: (_params, headers) => ({
        result: {
          protocolVersion: '2025-11-25',
          serverInfo: { name: 'own', version: '1' },
          ...describeFor(headers),
        },
      }),
    },
  });
  const file = { mcpServers: { a: { url: server.url, auth: { type: 'identity' } } } };
  const gateway = await start({ file });
  for (const sub of ['ann', 'nil', 'ann']) {
    const token = await gateway.issuer.sign({ sub });
    const session = await gateway.open({ token });
    const has = sub === 'ann';
    expect(await gateway.listNames('prompts/list', session, token)).toEqual(has ? ['a__p'] : []);
    expect(await gateway.listNames('resources/list', session, token)).toEqual(has ? ['x://a'] : []);
    if (!has) continue;
    const params = {
      ref: { type: 'ref/prompt', name: 'a__p' },
      argument: { name: 'n', value: 'v' },
    };
    const message = { jsonrpc: '2.0', id: 1, method: 'completion/complete', params };
    const { json } = await gateway.rpc(message, { session, token });
    expect(json.result.completion.values).toHaveLength(1);
  }
});

describe.each(['user', 'session'])('stdio, "isolation": "%s"', (isolation) => {
  test('§18.4 descriptions: each user hears its own process', async () => {
    const program = { ...scripted('says-pid'), isolation };
    const gateway = await start({ file: { mcpServers: { a: program } }, view: 'a' });
    const told = new Map<string, string>();
    for (const sub of ['ann', 'bob', 'ann']) {
      const token = await gateway.issuer.sign({ sub });
      for (const ask of Object.values(CLIENTS)) {
        const { instructions = '' } = await ask(gateway, token);
        expect(instructions).toMatch(/^I am \d+\.$/);
        expect(told.get(sub) ?? instructions).toBe(instructions);
        told.set(sub, instructions);
      }
    }
    expect(told.get('ann')).not.toBe(told.get('bob'));
  });

  test('§18.4 descriptions: a process that offers one user nothing leaves others theirs', async () => {
    const program = { ...scripted('needs-elicitation'), isolation };
    const gateway = await start({ file: { mcpServers: { a: program } } });
    const list = async (sub: string, canAsk: boolean) => {
      const token = await gateway.issuer.sign({ sub });
      const meta = { [CLIENT_CAPABILITIES]: canAsk ? { elicitation: {} } : {} };
      const { json } = await stateless(gateway, 'tools/list', {}, { token, meta });
      return json.result.tools.length;
    };
    expect(await list('ann', true)).toBeGreaterThan(0);
    expect(await list('bob', false)).toBe(0);
    expect(await list('cem', true)).toBeGreaterThan(0);
    expect(await list('dan', false)).toBe(0);
  });
});

test('§18.4 descriptions: a client that can do less does not change what all others are told', async () => {
  const server = await serve({
    tools: TOOLS,
    answers: {
      initialize: (params) => ({
        result: {
          protocolVersion: '2025-11-25',
          serverInfo: { name: 'own', version: '1' },
          capabilities: Object(params.capabilities).sampling ? {} : { tools: {} },
          instructions: Object(params.capabilities).sampling ? 'For samplers.' : 'For all.',
        },
      }),
    },
  });
  const gateway = await start({ file: { mcpServers: { a: server.url } } });
  const sampling = {
    ...INITIALIZE_REQUEST,
    params: { ...INITIALIZE_REQUEST.params, capabilities: { sampling: {} } },
  };
  for (let time = 0; time < 2; time += 1) {
    const opened = await gateway.rpc(sampling);
    const session = opened.headers['mcp-session-id'];
    // Opens its own session at the server.
    await gateway.call(String(session), 'tools/call', { name: 'a__t' });
    const { json } = await gateway.rpc(INITIALIZE_REQUEST);
    expect(json.result.instructions).toBe('## a\n\nFor all.');
    expect(json.result.capabilities).toHaveProperty('tools');
    expect(await gateway.listNames('tools/list')).toEqual(['a__t']);
  }
});

test('§18.4 descriptions: what differs for one client has the gateway ask anew, and what all were told serves meanwhile', () => {
  const said = (instructions: string): UpstreamDescription => ({
    era: 'session',
    protocolVersion: '2025-11-25',
    capabilities: {},
    serverInfo: {},
    instructions,
  });
  const descriptions = createDescriptions(
    { ...HTTP_DEFAULTS, url: 'http://127.0.0.1:1/mcp' },
    { onChange() {} },
  );
  const client = sessionCaller();
  descriptions.note(GATEWAY_CALLER, said('as ever'));
  descriptions.note(client, said('for you alone'));
  expect(descriptions.find(GATEWAY_CALLER)).toEqual(said('as ever'));
  expect(descriptions.findCurrent(GATEWAY_CALLER)).toBeUndefined();
  descriptions.note(GATEWAY_CALLER, said('new'));
  expect(descriptions.findCurrent(client)).toEqual(said('new'));
});

test('§18.4 descriptions: of more users than are kept, those who came last are', async () => {
  const server = await serve();
  const { upstream, close } = await openHttpUpstream({
    url: server.url,
    auth: { type: 'identity' },
  });
  closeAfterTest({ close });
  const lists = new ServerLists(
    openTestRuntime(),
    upstream,
    { isPersonal: true, maxUsers: 1_000, signal: new AbortController().signal },
    { getLock: () => undefined, onChange() {} },
  );
  const describeTo = (clientId: string) => lists.describe({ ...GATEWAY_CALLER, clientId }, 'told');
  for (let user = 0; user <= 1_000; user += 1) await describeTo(`user ${user}`);
  const asked = server.count('initialize');
  await describeTo('user 1000');
  await describeTo('user 1');
  expect(server.count('initialize')).toBe(asked);
  await describeTo('user 0');
  expect(server.count('initialize')).toBe(asked + 1);
}, 60_000);

test('§18.4 descriptions: of a server that was away each user hears anew what it says', async () => {
  const say = (text: string) => ({
    'server/discover': (_params: object, headers: Headers) => ({
      result: {
        supportedVersions: ['2026-07-28'],
        ...describeFor(headers),
        instructions: `${text} ${readSub(headers)}`,
      },
    }),
  });
  const old = await startListingServer({ answers: say('Old') });
  const file = { mcpServers: { a: { url: old.url, auth: { type: 'identity' } } } };
  const gateway = await start({ file, view: 'a' });
  const tell = async (sub: string) => {
    const token = await gateway.issuer.sign({ sub });
    return (await stateless(gateway, 'server/discover', {}, { token })).json.result.instructions;
  };
  for (const sub of ['ann', 'bob']) expect(await tell(sub)).toBe(`Old ${sub}`);
  await old.close();
  await stateless(gateway, 'tools/call', { name: 't' });
  const isDown = () => gateway.log.some(({ msg }) => msg.includes('a is not available'));
  await expect.poll(isDown, PATIENT).toBe(true);
  await serve({ answers: say('New') }, old.port);
  for (const sub of ['bob', 'ann']) await expect.poll(() => tell(sub), PATIENT).toBe(`New ${sub}`);
}, 60_000);

test('§18.7 lock: instructions that differ between users pass where they were approved', async () => {
  const answers = {
    initialize: (_params: object, headers: Headers) => ({
      result: {
        protocolVersion: '2025-11-25',
        serverInfo: { name: 'own', version: '1' },
        ...describeFor(headers),
      },
    }),
  };
  const server = await serve({ answers });
  const fingerprints = ['SECRET-OF-ann', 'SECRET-OF-bob'].flatMap(
    (text) => computeFingerprint('instructions', text) ?? [],
  );
  const lock = createLock({
    servers: new Map([
      [
        'a',
        { instructions: fingerprints, skills: new Map(), prompts: new Map(), tools: new Map() },
      ],
    ]),
  });
  const file = { mcpServers: { a: { url: server.url, auth: { type: 'identity' } } } };
  const gateway = await start({ file, lock, view: 'a' });
  const told = [];
  for (const sub of ['ann', 'eve', 'bob']) {
    const { json } = await gateway.rpc(INITIALIZE_REQUEST, {
      token: await gateway.issuer.sign({ sub }),
    });
    told.push(json.result.instructions);
  }
  expect(told).toEqual(['SECRET-OF-ann', undefined, 'SECRET-OF-bob']);
});
