// §21.1: calls: one line each, whatever came of it, in both eras and at servers behind the gateway.
import { beforeEach, describe, expect, test } from 'vitest';
import {
  createLocalCatalog,
  definePrompt,
  defineResource,
  defineTool,
  elicit,
} from '../../../src/index.ts';
import { accepted, stateless } from '../../support/clients/stateless.ts';
import { type AuditLog, createAuditLog } from '../../support/gateway/audit-log.ts';
import { startCollector } from '../../support/gateway/collector.ts';
import { startGateway, type TestGateway } from '../../support/gateway/gateway.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startBroker } from '../../support/oauth/broker.ts';
import {
  type CatalogGateway,
  startForTest as startWithServers,
} from '../../support/upstreams/catalog-gateway.ts';
import { buildTool, serveForTest } from '../../support/upstreams/listing-server.ts';

const PLANTED = 'planted-secret';
const ANY_OBJECT = { type: 'object' } as const;

const tool = (name: string, run: () => object) =>
  defineTool({
    name,
    description: '',
    inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
    run: () => run() as never,
  });

const catalog = createLocalCatalog({
  tools: [
    tool('works', () => ({ content: [{ type: 'text', text: PLANTED }] })),
    tool('refuses', () => ({ content: [{ type: 'text', text: PLANTED }], isError: true })),
    tool('throws', () => {
      throw new Error(PLANTED);
    }),
    defineTool({
      name: 'asks',
      description: '',
      inputSchema: ANY_OBJECT,
      async run(_args, { ask }) {
        await ask({ who: elicit('Who?', { type: 'object', properties: {} }) });
        return { content: [] };
      },
    }),
  ],
  prompts: [definePrompt({ name: 'greet', description: '', get: () => ({ messages: [] }) })],
  resources: [
    defineResource({
      uri: `notes://${PLANTED}@host/one`,
      name: 'one',
      description: '',
      mimeType: 'text/plain',
      read: () => ({ text: PLANTED }),
    }),
  ],
});

let audit: AuditLog;

beforeEach(async () => {
  audit = await createAuditLog();
});

/** What was written, without what differs each time. */
const listLines = () =>
  audit.lines().map(({ time, duration, ip, ...line }) => {
    expect(new Date(time).toISOString()).toBe(time);
    expect(duration).toEqual(line.outcome === 'started' ? undefined : expect.any(Number));
    expect(ip).toBe('127.0.0.1');
    return line;
  });

const ERAS = {
  async session(gateway: TestGateway) {
    const session = await gateway.open();
    return (method: string, params: object) => gateway.call(session, method, params);
  },
  async stateless(gateway: TestGateway) {
    return (method: string, params: object) =>
      stateless(gateway, method, params as Readonly<Record<string, unknown>>);
  },
};

describe.each(['session', 'stateless'] as const)('calls in the %s era', (era) => {
  test('§21.1 audit: each call is one line that says what came of it, and has no argument', async () => {
    const gateway = closeAfterTest(await startGateway({ env: audit.env, deps: { catalog } }));
    const call = await ERAS[era](gateway);
    const args = { arguments: { text: PLANTED } };
    await call('tools/list', {});
    await call('tools/call', { name: 'works', ...args });
    await call('tools/call', { name: 'refuses', ...args });
    await call('tools/call', { name: 'throws', ...args });
    await call('tools/call', { name: 'works', arguments: { text: [PLANTED] } });
    await call('tools/call', { name: 'unknown', ...args });
    await call('prompts/get', { name: 'greet', ...args });
    await call('resources/read', { uri: `notes://${PLANTED}@host/one` });
    await call('completion/complete', {});
    const user = { user: 'user-1' };
    const failure = { event: 'tool_call', outcome: 'failure', ...user };
    expect(listLines()).toEqual([
      { event: 'tool_call', outcome: 'success', tool: 'works', ...user },
      { ...failure, tool: 'refuses', reason: 'tool_error' },
      { ...failure, tool: 'throws', reason: 'tool_failed' },
      { ...failure, tool: 'works', reason: 'invalid_tool_input' },
      { ...failure, tool: 'unknown', reason: 'invalid_params' },
      { event: 'prompt_get', outcome: 'success', prompt: 'greet', ...user },
      {
        event: 'resource_read',
        outcome: 'success',
        resource: 'notes://host/one',
        stripped: true,
        ...user,
      },
    ]);
    expect(audit.text()).not.toContain(PLANTED);
  });
});

test('§21.1 audit: a call that asks its user ends with a line of its own, and goes on in the next', async () => {
  const gateway = closeAfterTest(await startGateway({ env: audit.env, deps: { catalog } }));
  const params = { name: 'asks', arguments: {} };
  const meta = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } } };
  const { json } = await stateless(gateway, 'tools/call', params, { meta });
  const { requestState } = json.result;
  const answered = { ...params, requestState, inputResponses: { who: accepted({}) } };
  expect((await stateless(gateway, 'tools/call', answered, { meta })).json.result.isError).toBe(
    undefined,
  );
  expect(listLines()).toMatchObject([{ outcome: 'asked' }, { outcome: 'success' }]);
});

describe('servers behind the gateway', () => {
  const LISTING = {
    tools: [buildTool('read'), buildTool('fail'), buildTool('write'), buildTool('admin')],
    prompts: [{ name: 'greet' }],
    resources: [{ uri: 'wiki://start', name: 'start' }],
  };
  const RULES = [
    { who: 'everyone', may: ['wiki__read', 'wiki__fail', 'prompt:*', 'resource:*', 'works'] },
    { who: { scopes: ['write'] }, may: ['wiki__write'] },
  ];

  async function start(
    view?: string,
    env: Readonly<Record<string, string>> = {},
  ): Promise<CatalogGateway> {
    const server = await serveForTest({
      ...LISTING,
      answers: {
        'tools/call': ({ name }) =>
          name === 'fail'
            ? { error: { code: -32000, message: PLANTED } }
            : { result: { content: [] } },
      },
    });
    return startWithServers({
      file: { mcpServers: { wiki: server.url }, rules: RULES },
      builtIn: catalog,
      env: { ...audit.env, ...env },
      ...(view && { view }),
    });
  }

  test.each(['session', 'stateless'] as const)(
    '§21.1 audit: a line names the server; what rules deny is a line, too (%s era)',
    async (era) => {
      const call = await ERAS[era](await start());
      for (const name of [
        'works',
        'wiki__read',
        'wiki__fail',
        'wiki__admin',
        'wiki__write',
        'nothing',
      ]) {
        await call('tools/call', { name, arguments: { text: PLANTED } });
      }
      await call('prompts/get', { name: 'wiki__greet', arguments: { text: PLANTED } });
      await call('resources/read', { uri: 'wiki://start' });
      const of = { user: 'user-1', event: 'tool_call' };
      expect(listLines()).toEqual([
        { ...of, outcome: 'success', tool: 'works' },
        { ...of, outcome: 'success', tool: 'wiki__read', server: 'wiki' },
        { ...of, outcome: 'failure', tool: 'wiki__fail', server: 'wiki', reason: 'upstream_error' },
        { ...of, outcome: 'denied', tool: 'wiki__admin', server: 'wiki', reason: 'rules' },
        {
          ...of,
          outcome: 'denied',
          tool: 'wiki__write',
          server: 'wiki',
          reason: 'insufficient_scope',
        },
        { ...of, outcome: 'failure', tool: 'nothing', reason: 'invalid_params' },
        { ...of, event: 'prompt_get', outcome: 'success', prompt: 'wiki__greet', server: 'wiki' },
        {
          ...of,
          event: 'resource_read',
          outcome: 'success',
          resource: 'wiki://start',
          server: 'wiki',
        },
      ]);
      expect(audit.text()).not.toContain(PLANTED);
    },
  );

  test.each(['session', 'stateless'] as const)(
    '§21.1 audit: with AUDIT_REQUIRED the line of a start names the server, too (%s era)',
    async (era) => {
      const call = await ERAS[era](await start(undefined, { AUDIT_REQUIRED: 'true' }));
      for (const name of ['wiki__read', 'works', 'wiki__admin', 'nothing']) {
        await call('tools/call', { name, arguments: {} });
      }
      await call('prompts/get', { name: 'wiki__greet' });
      await call('resources/read', { uri: 'wiki://start' });
      const outcomes = audit.lines().map(({ outcome, server, ...of }) => {
        return [outcome, of.tool ?? of.prompt ?? of.resource, server];
      });
      expect(outcomes).toEqual([
        ['started', 'wiki__read', 'wiki'],
        ['success', 'wiki__read', 'wiki'],
        ['started', 'works', undefined],
        ['success', 'works', undefined],
        ['started', 'wiki__admin', 'wiki'],
        ['denied', 'wiki__admin', 'wiki'],
        ['started', 'nothing', undefined],
        ['failure', 'nothing', undefined],
        ['started', 'wiki__greet', 'wiki'],
        ['success', 'wiki__greet', 'wiki'],
        ['started', 'wiki://start', undefined],
        ['success', 'wiki://start', 'wiki'],
      ]);
    },
  );

  test('§21.1 audit: the line of a start names a server without a prefix once its list is there', async () => {
    const server = await serveForTest({
      ...LISTING,
      tools: [buildTool('read'), buildTool('works')],
    });
    const gateway = await startWithServers({
      file: { mcpServers: { wiki: { url: server.url, prefix: '' } } },
      builtIn: catalog,
      env: { ...audit.env, AUDIT_REQUIRED: 'true' },
    });
    const call = await ERAS.session(gateway);
    await call('tools/list', {});
    for (const name of ['read', 'works', 'nothing']) {
      await call('tools/call', { name, arguments: {} });
    }
    expect(audit.lines().map((line) => [line.tool, line.server])).toEqual([
      ['read', 'wiki'],
      ['read', 'wiki'],
      // The built-in one of this name comes first.
      ['works', undefined],
      ['works', undefined],
      ['nothing', undefined],
      ['nothing', undefined],
    ]);
  });

  test('§21.1 audit: at the path of one server, names are its own', async () => {
    const call = await ERAS.session(await start('wiki'));
    await call('tools/call', { name: 'read', arguments: {} });
    await call('tools/call', { name: 'nothing', arguments: {} });
    expect(listLines()).toMatchObject([
      { outcome: 'success', tool: 'read', server: 'wiki' },
      { outcome: 'failure', tool: 'nothing', server: 'wiki' },
    ]);
  });
});

test('§21.1 audit: a call in broker mode names the client that got its token', async () => {
  const broker = closeAfterTest(await startBroker(audit.env));
  const client = await broker.steps.register();
  broker.answerLogins({ sub: 'ada' });
  const { access_token: access } = await broker.logIn(client);
  const call = { name: 'service_ping', arguments: {} };
  for (let count = 0; count < 2; count += 1) {
    await stateless(broker.gateway, 'tools/call', call, { token: access });
  }
  const line = { event: 'tool_call', outcome: 'success', user: 'ada', client: client.id };
  expect(audit.lines().slice(2)).toMatchObject([line, line]);
  expect(audit.text()).not.toContain(access);
});

test('§21.1 audit: a call has the trace of its request; with a collector that is the one it gets', async () => {
  const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
  const traceparent = `00-${trace}-00f067aa0ba902b7-01`;
  const call = { name: 'works', arguments: {} };
  const plain = await startGateway({ env: audit.env, deps: { catalog } });
  await stateless(plain, 'tools/call', call, { meta: { traceparent } });
  await stateless(plain, 'tools/call', call, { headers: { traceparent } });
  await plain.close();
  const collector = closeAfterTest(await startCollector());
  const traced = await startGateway({ env: { ...audit.env, ...collector.env }, deps: { catalog } });
  await stateless(traced, 'tools/call', call);
  await traced.close();
  const { traceId } = collector.only('tools/call works');
  expect(audit.lines().map((line) => line.trace)).toEqual([trace, trace, traceId]);
});
