// A call in the arguments of another is judged, counted and written down as what it is.
import { describe, expect, test } from 'vitest';
import { createLock } from '../../../src/lock/lock.ts';
import { computeFingerprint } from '../../../src/lock/lock-file.ts';
import { ASKABLE, callTool, stateless } from '../../support/clients/stateless.ts';
import { createAuditLog } from '../../support/gateway/audit-log.ts';
import { seriesOf } from '../../support/gateway/metrics.ts';
import { writeGuard } from '../../support/guards/module-guard.ts';
import { useShared } from '../../support/lifetimes.ts';
import { buildTool, serveForTest as serve } from '../../support/upstreams/listing-server.ts';
import { ADA, questionsIn, saidIn } from '../../support/upstreams/relay-retry.ts';
import { startRelayServer1 } from '../../support/upstreams/relay-server-1.ts';
import { startRelayServer2 } from '../../support/upstreams/relay-server-2.ts';
import {
  namesOf,
  type SearchedView,
  startSearchedView,
} from '../../support/upstreams/searched-view.ts';

const TOOLS = ['read', 'write', 'delete', 'export'].map((name) =>
  buildTool(`${name}_page`, { description: `It can ${name} a page.` }),
);

type Answer = Awaited<ReturnType<SearchedView['callTool']>>;

const summarize = ({ status, json }: Answer) =>
  json.result === undefined
    ? {
        status,
        code: json.error.code,
        details: json.error.data?.details,
        scopes: json.error.data?.scopes,
      }
    : { status, text: json.result.content[0].text };

/** Both ways to the same tool, in both eras. */
async function callEachWay(gateway: SearchedView, name: string, args: object, token: string) {
  const outer = { name, arguments: args };
  return Promise.all([
    gateway.callTool(name, args, token),
    gateway.callTool('call_tool', outer, token),
    callTool(gateway, name, { ...args }, { token }),
    callTool(gateway, 'call_tool', outer, { token }),
  ]).then((answers) => answers.map(summarize));
}

describe('rules', () => {
  const RULES = [
    { who: { groups: ['staff'] }, may: ['wiki__read_page', 'wiki__export_page'] },
    { who: { groups: ['staff'] }, when: "args.space == 'mine'", may: ['wiki__write_page'] },
    { who: { groups: ['admin'] }, may: ['wiki__*'] },
    { who: { scopes: ['purge'] }, may: ['wiki__delete_page'] },
  ];

  async function startRuled() {
    const wiki = await serve({ tools: TOOLS });
    const gateway = await startSearchedView({
      file: { mcpServers: { wiki: wiki.url }, rules: RULES },
    });
    const sign = (sub: string, groups: readonly string[]) => gateway.issuer.sign({ sub, groups });
    return {
      wiki,
      gateway,
      staff: await sign('ann', ['staff']),
      admin: await sign('bob', ['admin']),
      nobody: await sign('eve', []),
    };
  }

  test('§25.3 search: the three tools need no rule, and show each caller what it may list', async () => {
    const { gateway, staff, admin, nobody } = await startRuled();
    const search = async (token: string) =>
      [...namesOf(await gateway.search({ query: 'page', limit: 20 }, token))].sort();
    const seen = async (token: string) => {
      const [first] = await gateway.list('tools/list', await gateway.open({ token }), token);
      return first.description.replace(/^.*There are/s, 'There are');
    };
    const all = ['delete', 'export', 'read', 'write'].map((name) => `wiki__${name}_page`);
    // What only a scope is missing for is listed, to anybody.
    expect(await search(admin)).toEqual(all);
    expect(await search(staff)).toEqual(all);
    expect(await search(nobody)).toEqual(['wiki__delete_page']);
    expect(await seen(admin)).toContain('read_page');
    expect(await seen(nobody)).toBe('There are tools from wiki (1 tool: delete_page).');
    expect(await gateway.describe(['wiki__read_page', 'wiki__delete_page'], nobody)).toMatchObject({
      tools: [{ name: 'wiki__delete_page' }],
      hint: expect.stringContaining('Unknown: "wiki__read_page"'),
    });
  });

  test('§25.3 search: one who may use nothing finds nothing, and sees as little as at any other view', async () => {
    const wiki = await serve({ tools: TOOLS });
    const rules = [{ who: { groups: ['staff'] }, may: ['wiki__*'] }];
    const gateway = await startSearchedView({ file: { mcpServers: { wiki: wiki.url }, rules } });
    expect(await gateway.list('tools/list')).toEqual([]);
    expect(await gateway.search({ query: 'read page' })).toMatchObject({ tools: [] });
  });

  test('§25.3 search: what is called by call_tool is judged with its own arguments, as if it were called itself', async () => {
    const { gateway, wiki, staff, nobody } = await startRuled();
    const each = async (name: string, args: object, token: string) => {
      const [first, ...others] = await callEachWay(gateway, name, args, token);
      for (const other of others) expect({ ...other, status: 0 }).toEqual({ ...first, status: 0 });
      return first;
    };
    expect(await each('wiki__write_page', { space: 'mine' }, staff)).toMatchObject({
      text: 'ran write_page',
    });
    const before = wiki.count('tools/call');
    expect(await each('wiki__write_page', { space: 'theirs' }, staff)).toMatchObject({
      code: -32602,
      details: 'Unknown tool "wiki__write_page"',
    });
    expect(await each('wiki__read_page', {}, nobody)).toMatchObject({ code: -32602 });
    expect(await each('wiki__delete_page', {}, nobody)).toMatchObject({
      status: 403,
      scopes: ['purge'],
    });
    expect(wiki.count('tools/call')).toBe(before);
  });

  test('§25.3 search: tools that a caller may not see change nothing of the order of the others', async () => {
    const hidden = Array.from({ length: 40 }, (_, at) =>
      buildTool(`secret_${at}`, { description: 'Audit log of every page.' }),
    );
    const shown = [
      buildTool('page_log', { description: 'The log of a page.' }),
      buildTool('audit_page', { description: 'Looks at a page.' }),
      buildTool('audit_log', { description: 'Who did what.' }),
    ];
    const rules = [{ who: 'everyone', may: ['a__page_log', 'a__audit_*'] }];
    const orderOf = async (tools: readonly unknown[]) => {
      const server = await serve({ tools });
      const gateway = await startSearchedView({ file: { mcpServers: { a: server.url }, rules } });
      const queries = ['audit page', 'log of a page', 'audit', 'page log audit'];
      return Promise.all(queries.map(async (query) => namesOf(await gateway.search({ query }))));
    };
    expect(await orderOf([...hidden, ...shown])).toEqual(await orderOf(shown));
  });
});

test('§25.3 search: what the lock hides is neither found nor called', async () => {
  const wiki = await serve({
    tools: [buildTool('read_page'), buildTool('write_page', { description: 'Now steal.' })],
  });
  const approve = (tool: ReturnType<typeof buildTool>) =>
    [tool.name, [computeFingerprint('tool', tool)].flatMap((print) => print ?? [])] as const;
  const lock = createLock({
    servers: new Map([
      [
        'wiki',
        {
          tools: new Map([approve(buildTool('read_page')), approve(buildTool('write_page'))]),
          skills: new Map(),
          prompts: new Map(),
          instructions: [],
        },
      ],
    ]),
  });
  const gateway = await startSearchedView({ file: { mcpServers: { wiki: wiki.url } }, lock });
  expect(namesOf(await gateway.search({ query: 'page' }))).toEqual(['wiki__read_page']);
  const [search] = await gateway.list('tools/list');
  expect(search.description).toContain('(1 tool: read_page)');
  const { json } = await gateway.callTool('call_tool', { name: 'wiki__write_page' });
  expect(json.error).toMatchObject({ code: -32602 });
});

test('§25.3 search: the audit log and metrics name the tool that was called, not call_tool', async () => {
  const audit = await createAuditLog();
  const wiki = await serve({ tools: TOOLS });
  const gateway = await startSearchedView({
    file: { mcpServers: { wiki: wiki.url } },
    env: { ...audit.env },
  });
  await gateway.search({ query: 'read page' });
  await gateway.callTool('call_tool', { name: 'wiki__read_page', arguments: { text: 'planted' } });
  await callTool(gateway, 'call_tool', { name: 'wiki__nope' });
  await gateway.callTool('call_tool', { name: 'search_tools' });
  expect(audit.lines()).toMatchObject([
    { event: 'tool_call', outcome: 'success', tool: 'search_tools' },
    { event: 'tool_call', outcome: 'success', tool: 'wiki__read_page', server: 'wiki' },
    { event: 'tool_call', outcome: 'failure', tool: 'wiki__nope', reason: 'invalid_params' },
    { event: 'tool_call', outcome: 'failure', tool: 'call_tool', reason: 'invalid_tool_input' },
  ]);
  expect(audit.text()).not.toContain('planted');
  expect(await seriesOf(gateway, 'mcp_tool_invocations_total', { tool: 'wiki__read_page' })).toBe(
    1,
  );
});

describe('the stateless era', () => {
  test('§25.3 search: Mcp-Name says call_tool; another name is refused as ever', async () => {
    const wiki = await serve({ tools: TOOLS });
    const gateway = await startSearchedView({ file: { mcpServers: { wiki: wiki.url } } });
    const args = { name: 'wiki__read_page', arguments: {} };
    const { json } = await callTool(gateway, 'call_tool', args);
    expect(json.result.content[0].text).toBe('ran read_page');
    const wrong = await callTool(gateway, 'call_tool', args, {
      headers: { 'mcp-name': 'wiki__read_page' },
    });
    expect(wrong.status).toBe(400);
    const listed = await stateless(gateway, 'tools/list');
    expect(listed.json.result.tools.map(({ name }: { name: string }) => name)).toEqual([
      'search_tools',
      'describe_tools',
      'call_tool',
    ]);
  });

  describe('a tool that asks its user', () => {
    const one = useShared(startRelayServer1);
    const two = useShared(startRelayServer2);
    const start = () =>
      startSearchedView({ file: { mcpServers: { one: one.url, two: two.url }, builtIn: false } });
    const call = (gateway: SearchedView, name: string, retry: object = {}) =>
      stateless(
        gateway,
        'tools/call',
        { name: 'call_tool', arguments: { name }, ...retry },
        { meta: ASKABLE },
      );

    test.each([
      ['two__ask', 'stateless'],
      ['one__ask', 'session'],
    ])(
      '§25.3 search: %s, of a server of the %s era, gets its answer through call_tool',
      async (name) => {
        const gateway = await start();
        const asked = await call(gateway, name);
        const { inputRequests, requestState } = questionsIn(asked);
        const inputResponses = Object.fromEntries(
          Object.keys(inputRequests).map((key) => [key, ADA]),
        );
        const answered = await call(gateway, name, { inputResponses, requestState });
        expect(JSON.stringify(saidIn(answered))).toContain('Ada');
        // The state belongs to this call: for another tool it is worth nothing.
        const stolen = await call(gateway, 'two__rounds', { inputResponses, requestState });
        expect(stolen.json.error).toMatchObject({ code: -32602 });
      },
    );
  });
});

describe('guards', () => {
  test('§25.3 search: what a guard changes or hides in lists is found, described and called as it lets it be', async () => {
    const wiki = await serve({ tools: TOOLS });
    const use = await writeGuard(`
      const { name } = message.value;
      if (name === 'delete_page') return { decision: 'refuse', message: 'No.' };
      if (name === 'read_page')
        return { decision: 'change', value: { ...message.value, description: 'Opens a leaf.' } };
      return { decision: 'pass' };`);
    const gateway = await startSearchedView({
      file: { mcpServers: { wiki: wiki.url }, guards: [{ name: 'g', on: ['tools/list'], use }] },
    });
    const found = await gateway.search({ query: 'page', limit: 20 });
    expect(namesOf(found)).not.toContain('wiki__delete_page');
    expect((await gateway.search({ query: 'leaf' })).tools).toMatchObject([
      { name: 'wiki__read_page', description: 'Opens a leaf.' },
    ]);
    const hidden = await gateway.callTool('call_tool', { name: 'wiki__delete_page' });
    expect(hidden.json.error).toMatchObject({ code: -32602 });
    expect(wiki.count('tools/call')).toBe(0);
  });

  test('§25.3 search: a guard on calls sees the inner call with its arguments, in both eras', async () => {
    const wiki = await serve({ tools: TOOLS });
    const use = await writeGuard(`
      const { name, arguments: args } = message.value;
      if (args?.text === 'secret') return { decision: 'refuse', message: 'Seen: ' + name };
      return { decision: 'pass' };`);
    const gateway = await startSearchedView({
      file: { mcpServers: { wiki: wiki.url }, guards: [{ name: 'g', on: ['tools/call'], use }] },
    });
    const args = { name: 'wiki__read_page', arguments: { text: 'secret' } };
    const answers = [
      await gateway.callTool('call_tool', args),
      await callTool(gateway, 'call_tool', args),
    ];
    for (const { json } of answers) {
      expect(json.result).toMatchObject({
        isError: true,
        content: [{ text: 'Seen: wiki__read_page' }],
      });
    }
    expect(wiki.count('tools/call')).toBe(0);
  });

  test('§25.3 search: what search_tools answers goes through the guards on results', async () => {
    const wiki = await serve({ tools: TOOLS });
    const use = await writeGuard(`
      return JSON.stringify(message.value).includes('read_page')
        ? { decision: 'refuse', message: 'Not this.' }
        : { decision: 'pass' };`);
    const gateway = await startSearchedView({
      file: { mcpServers: { wiki: wiki.url }, guards: [{ name: 'g', on: ['tools/result'], use }] },
    });
    for (const [name, args] of [
      ['search_tools', { query: 'read page' }],
      ['describe_tools', { names: ['wiki__read_page'] }],
    ] as const) {
      const { json } = await gateway.callTool(name, args);
      expect(json.result).toMatchObject({ isError: true, content: [{ text: 'Not this.' }] });
    }
  });
});

test('§25.3 search: who has to agree first is asked about the inner call', async () => {
  const wiki = await serve({ tools: TOOLS });
  const rules = [
    { who: 'everyone', may: ['*'] },
    { who: 'everyone', may: ['wiki__delete_page'], ask: 'user' },
  ];
  const gateway = await startSearchedView({ file: { mcpServers: { wiki: wiki.url }, rules } });
  const { json } = await stateless(
    gateway,
    'tools/call',
    { name: 'call_tool', arguments: { name: 'wiki__delete_page', arguments: { id: 'p-7' } } },
    { meta: ASKABLE },
  );
  expect(json.result).toMatchObject({ resultType: 'input_required' });
  expect(JSON.stringify(json.result.inputRequests)).toMatch(/delete_page.*p-7|p-7.*delete_page/s);
  expect(wiki.count('tools/call')).toBe(0);
  expect(namesOf(await gateway.search({ query: 'delete page' }))).toContain('wiki__delete_page');
});
