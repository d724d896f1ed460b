// What a name comes to does not tell whether its server is there, nor depend on the path.
import { describe, expect, test } from 'vitest';
import { createLock } from '../../../src/lock/lock.ts';
import { computeFingerprint } from '../../../src/lock/lock-file.ts';
import { openClient } from '../../support/clients/session-client.ts';
import { stateless } from '../../support/clients/stateless.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { startForTest as start } from '../../support/upstreams/catalog-gateway.ts';
import {
  buildTool,
  serveForTest as serve,
  startListingServer,
} from '../../support/upstreams/listing-server.ts';

const TOOLS = ['read', 'write', 'hidden', 'unlocked', 'scoped'].map((name) => buildTool(name));
const LISTING = {
  tools: TOOLS,
  prompts: [{ name: 'p' }, { name: 'q' }],
  resourceTemplates: [{ uriTemplate: 'x://{id}', name: 'x' }],
};

const fingerprint = (kind: 'tool' | 'prompt', item: object) => {
  const computed = computeFingerprint(kind, item);
  return computed === undefined ? [] : [computed];
};

const LOCK = createLock({
  servers: new Map([
    [
      'a',
      {
        instructions: undefined,
        skills: new Map(),
        prompts: new Map(
          LISTING.prompts.map((prompt) => [prompt.name, fingerprint('prompt', prompt)]),
        ),
        tools: new Map(
          TOOLS.filter(({ name }) => name !== 'unlocked').map((tool) => [
            tool.name,
            fingerprint('tool', tool),
          ]),
        ),
      },
    ],
  ]),
});

const everyone = (...may: string[]) => ({ who: 'everyone', may });
/** Names as they are at the server allow nothing: rules are about those at /mcp. */
const RULES = [
  everyone('a__read', 'a__hidden', 'a__unlocked', 'a__a b', 'write', 'prompt:a__p', 'prompt:q'),
  { who: { scopes: ['more'] }, may: ['a__scoped'] },
];

const UNKNOWN = 'unknown';
const THERE = 'there, or not available';

describe.each([
  ['/mcp', undefined, 'a__'],
  ['/mcp/a', 'a', ''],
])('%s', (_path, view, prefix) => {
  test.each([
    ['allowed', 'tools/call', 'read', THERE],
    ['denied', 'tools/call', 'write', UNKNOWN],
    ['not selected by the file', 'tools/call', 'hidden', UNKNOWN],
    ['not in the lock', 'tools/call', 'unlocked', UNKNOWN],
    ['none that a tool can have', 'tools/call', 'a b', UNKNOWN],
    ['allowed with a scope', 'tools/call', 'scoped', 403],
    ['allowed', 'prompts/get', 'p', THERE],
    ['denied', 'prompts/get', 'q', UNKNOWN],
    ['none that a prompt can have', 'prompts/get', 'p\u200b', UNKNOWN],
  ])(
    '§18.2 absent: a name that is %s (%s %j) is %s, whether its server is up or down',
    async (_what, method, name, comes) => {
      const up = await serve(LISTING);
      const gone = await startListingServer(LISTING);
      await gone.close();
      const answers = [];
      for (const { url } of [up, gone]) {
        const a = { url, tools: { exclude: ['hidden'] } };
        const gateway = await start({
          file: { mcpServers: { a }, rules: RULES },
          lock: LOCK,
          ...(view && { view }),
        });
        const { status, json } = await gateway.call(await gateway.open(), method, {
          name: `${prefix}${name}`,
        });
        answers.push(
          status === 403 ? 403 : (json.error?.data?.details ?? json.error?.code ?? 'done'),
        );
      }
      const noun = method === 'tools/call' ? 'tool' : 'prompt';
      const unknown = `Unknown ${noun} "${prefix}${name}"`;
      const same = comes === UNKNOWN ? unknown : comes;
      const expected = comes === THERE ? ['done', -32603] : [same, same];
      // What cannot be seen is shown escaped.
      expect(answers.map((one) => String(one).replace('\\u200b', '\u200b'))).toEqual(
        expected.map(String),
      );
    },
  );
});

test.each([undefined, 'a'])(
  '§18.2 absent: a template of a server that is down is as unknown as any (view %j)',
  async (view) => {
    const gone = await startListingServer(LISTING);
    await gone.close();
    const file = { mcpServers: { a: gone.url }, rules: [everyone('resource:x://*')] };
    const gateway = await start({ file, ...(view && { view }) });
    const { json } = await gateway.call(await gateway.open(), 'completion/complete', {
      ref: { type: 'ref/resource', uri: 'x://{id}' },
      argument: { name: 'id', value: 'v' },
    });
    expect(json.error.data.details).toBe('Unknown resource template "x://{id}"');
  },
);

test("§18.2 absent: without a prefix, a name that is another server's is so at /mcp/<server>, too", async () => {
  const other = await serve({ tools: [buildTool('t'), buildTool('u')] });
  const gone = await startListingServer(LISTING);
  await gone.close();
  const file = {
    mcpServers: { other: { url: other.url, prefix: '' }, a: { url: gone.url, prefix: '' } },
    rules: [everyone('t', 'read', 'b__x')],
  };
  const gateway = await start({ file, view: 'a' });
  const session = await gateway.open();
  const call = async (name: string) =>
    (await gateway.call(session, 'tools/call', { name })).json.error;
  expect((await call('t')).data.details).toBe('Unknown tool "t"');
  expect((await call('read')).code).toBe(-32603);
});

const STAFF = { who: { groups: ['staff'] }, may: ['a__*', 'prompt:a__*', 'resource:x://*'] };

test('§18.5 /mcp/<server>: to somebody for whom no rule can allow anything of it, a server is as one that offers nothing, up or down', async () => {
  const up = await serve({ ...LISTING, instructions: 'Be kind.' });
  const gone = await startListingServer(LISTING);
  await gone.close();
  const empty = await serve({ capabilities: {} });
  const told = [];
  for (const { url } of [up, gone, empty]) {
    const rules = [STAFF, everyone('b__*', 'prompt:b__*')];
    const gateway = await start({ file: { mcpServers: { a: url, b: up.url }, rules }, view: 'a' });
    const [ada, bob] = [
      await gateway.issuer.sign({ sub: 'ada', groups: ['staff'] }),
      await gateway.issuer.sign({ sub: 'bob' }),
    ];
    const ask = async (method: string, token: string) => {
      const { status, json } = await stateless(gateway, method, {}, { token });
      return { method, status, answer: json.result ?? json.error };
    };
    // Who may use something has it listed first.
    const { answer } = await ask('tools/list', ada);
    expect(answer.tools).toHaveLength(url === up.url ? TOOLS.length : 0);
    const methods = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'];
    const answers = [];
    for (const method of ['server/discover', ...methods, 'skills/list'])
      answers.push(await ask(method, bob));
    told.push(answers);
    const discovered = await ask('server/discover', ada);
    expect(discovered.answer.instructions).toBe(url === up.url ? 'Be kind.' : undefined);
  }
  const [whileUp, whileGone, ofEmpty] = told;
  expect(whileUp).toEqual(ofEmpty);
  expect(whileGone).toEqual(ofEmpty);
  expect(ofEmpty?.[1]).toMatchObject({ status: 200, answer: { tools: [], ttlMs: 60_000 } });
  expect(ofEmpty?.at(-1)).toMatchObject({ status: 404, answer: { code: -32601 } });
});

test('§18.5 /mcp: what a server has, and whether it runs, is told by nothing to somebody for whom no rule can allow anything of it', async () => {
  const capabilities = {
    tools: {},
    prompts: {},
    completions: {},
    logging: {},
    extensions: { 'io.modelcontextprotocol/skills': {} },
  };
  const up = await serve({ ...LISTING, capabilities });
  const gone = await startListingServer(LISTING);
  await gone.close();
  const empty = await serve({ capabilities: {} });
  const b = await serve({ tools: [buildTool('t')], capabilities: { tools: {} } });
  const told = [];
  for (const { url } of [up, gone, empty]) {
    const mcpServers = { a: url, b: b.url };
    const gateway = await start({
      file: { builtIn: false, mcpServers, rules: [STAFF, everyone('b__*')] },
    });
    // Then each has said what it has.
    const ada = await gateway.issuer.sign({ sub: 'ada', groups: ['staff'] });
    await stateless(gateway, 'tools/list', {}, { token: ada });
    const token = await gateway.issuer.sign({ sub: 'bob' });
    const answers = [];
    for (const method of ['server/discover', 'tools/list', 'prompts/list', 'skills/list']) {
      const { status, json } = await stateless(gateway, method, {}, { token });
      answers.push({ method, status, answer: json.result ?? json.error });
    }
    told.push(answers);
  }
  const [whileUp, whileGone, ofEmpty] = told;
  expect(whileUp).toEqual(ofEmpty);
  expect(whileGone).toEqual(ofEmpty);
  expect(ofEmpty?.[1]).toMatchObject({ answer: { tools: [{ name: 'b__t' }], ttlMs: 60_000 } });
});

test('§18.5 rules: that the lists of a server have changed is told to nobody for whom no rule can allow anything of it', async () => {
  const [a, b] = [await serve(LISTING), await serve(LISTING)];
  const gateway = await start({
    env: { MCP_STREAMS: 'true' },
    file: {
      mcpServers: { a: a.url, b: b.url },
      rules: [{ who: { groups: ['staff'] }, may: ['*'] }, everyone('b__*', 'prompt:b__*')],
    },
  });
  const open = async (claims: Readonly<Record<string, unknown>>) => {
    const client = await openClient(gateway, { token: await gateway.issuer.sign(claims) });
    await client.ask('tools/list');
    await client.ask('prompts/list');
    return client.watch();
  };
  const ada = await open({ sub: 'ada', groups: ['staff'] });
  const bob = await open({ sub: 'bob' });
  const changed = (list: string) => ({ method: `notifications/${list}/list_changed` });
  a.listing.tools = [buildTool('another')];
  a.notify('notifications/tools/list_changed');
  expect(await ada.next()).toMatchObject(changed('tools'));
  b.listing.prompts = [{ name: 'another' }];
  b.notify('notifications/prompts/list_changed');
  expect(await ada.next()).toMatchObject(changed('prompts'));
  // The first that it hears of.
  expect(await bob.next()).toMatchObject(changed('prompts'));
  ada.hangUp();
  bob.hangUp();
});

test('§25.1 a view: whether a server of it runs is told by nothing to somebody for whom no rule can allow anything of it', async () => {
  const up = await serve(LISTING);
  const gone = await startListingServer(LISTING);
  await gone.close();
  const b = await serve({ tools: [buildTool('t')] });
  const told = [];
  for (const { url } of [up, gone]) {
    const file = {
      builtIn: false,
      mcpServers: { a: url, b: b.url },
      views: { work: { tools: ['a__*', 'b__*'] } },
      rules: [STAFF, everyone('b__*')],
    };
    const gateway = await start({ file, view: 'work' });
    const token = await gateway.issuer.sign({ sub: 'bob' });
    told.push((await stateless(gateway, 'tools/list', {}, { token })).json.result);
  }
  const [whileUp, whileGone] = told;
  expect(whileUp).toMatchObject({ tools: [{ name: 'b__t' }], ttlMs: 60_000 });
  expect({ ...whileGone, _meta: undefined }).toEqual({ ...whileUp, _meta: undefined });
});

const NOBODYS: readonly (readonly [method: string, params: Readonly<Record<string, unknown>>])[] = [
  ['server/discover', {}],
  ['tools/list', {}],
  ['prompts/list', {}],
  ['resources/list', {}],
  ['resources/templates/list', {}],
  ['skills/list', {}],
  ['skills/get', { uri: 'skill://a/x' }],
  ['tools/call', { name: 'a__read' }],
  ['tools/call', { name: 'read' }],
  ['prompts/get', { name: 'a__p' }],
  ['prompts/get', { name: 'p' }],
  ['resources/read', { uri: 'x://1' }],
  ['resources/read', { uri: 'ui://a/page' }],
  [
    'completion/complete',
    { ref: { type: 'ref/resource', uri: 'x://{id}' }, argument: { name: 'id', value: 'v' } },
  ],
];

test.each([undefined, 'a', 'work'])(
  '§18.5 a server that never says what it has keeps nobody waiting for whom no rule can allow anything of it (view %j)',
  async (view) => {
    const b = await serve({ tools: [buildTool('t')] });
    const silent = () => new Promise(() => {});
    const lists = ['tools', 'prompts', 'resources', 'resources/templates', 'skills'];
    const a = await serve({
      ...LISTING,
      answers: Object.fromEntries(lists.map((list) => [`${list}/list`, silent])),
    });
    const gateway = await start({
      // Far longer than this test may take.
      env: { LIST_WAIT_MS: '60000' },
      file: {
        builtIn: false,
        mcpServers: { a: a.url, b: b.url },
        views: { work: { tools: ['a__*', 'b__*'] } },
        rules: [STAFF, everyone('b__*')],
      },
      ...(view && { view }),
    });
    const token = await gateway.issuer.sign({ sub: 'bob' });
    for (const [method, params] of NOBODYS) {
      const { json } = await stateless(gateway, method, params, { token });
      expect(json.result ?? json.error, method).toBeDefined();
    }
    const session = await gateway.open({ token });
    for (const [method, params] of NOBODYS.slice(1)) {
      const message = { jsonrpc: '2.0', id: 1, method, params };
      const { json } = await gateway.rpc(message, { session, token });
      expect(json.result ?? json.error, method).toBeDefined();
    }
  },
);

test('§18.5 nor does one of which several can have the name', async () => {
  const silent = await serve({
    ...LISTING,
    answers: { 'tools/list': () => new Promise(() => {}) },
  });
  const b = await serve({ tools: [buildTool('t')] });
  const gateway = await start({
    // No wait ends by itself.
    clock: manualClock(Date.now()),
    file: {
      builtIn: false,
      mcpServers: { a: { url: silent.url, prefix: '' }, b: { url: b.url, prefix: '' } },
      rules: [STAFF],
    },
  });
  const token = await gateway.issuer.sign({ sub: 'bob' });
  await expect(
    stateless(gateway, 'tools/call', { name: 'read' }, { token }).then(({ json }) => json.error),
  ).resolves.toMatchObject({ code: -32602 });
});
