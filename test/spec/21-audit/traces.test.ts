// §21.2: what a collector gets of a request: its span, those below it, and whose child it is.
import { trace as tracesOfTools } from '@opentelemetry/api';
import { describe, expect, test } from 'vitest';
import { createLocalCatalog, defineTool } from '../../../src/define.ts';
import { stateless } from '../../support/clients/stateless.ts';
import { type Collector, startCollector } from '../../support/gateway/collector.ts';
import {
  INITIALIZE_REQUEST,
  startGateway,
  type TestGateway,
} from '../../support/gateway/gateway.ts';
import { closeAfterTest, useFresh } from '../../support/lifetimes.ts';
import { startBroker } from '../../support/oauth/broker.ts';
import { startCatalogGateway } from '../../support/upstreams/catalog-gateway.ts';
import { buildTool, startListingServer } from '../../support/upstreams/listing-server.ts';
import { startRecorder } from '../../support/upstreams/recorder.ts';

const collector: Collector = useFresh(() => startCollector());

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';
const TRACEPARENT = `00-${TRACE}-${PARENT}-01`;
/** Needs neither token nor store. */
const DOCUMENT = '/.well-known/oauth-protected-resource';
const CALL = { name: 'service_ping', arguments: {} };

const callOf = (params: object) => ({ jsonrpc: '2.0', id: 7, method: 'tools/call', params });

/** A gateway whose spans are there once it is closed. */
async function runTraced<Result>(
  work: (gateway: TestGateway) => Promise<Result>,
  env: Readonly<Record<string, string>> = {},
): Promise<Result> {
  const gateway = await startGateway({ env: { ...collector.env, ...env } });
  try {
    return await work(gateway);
  } finally {
    await gateway.close();
  }
}

describe('spans', () => {
  test('§21.2 traces: a call is a span with its store operations below it', async () => {
    await runTraced(async (gateway) => {
      const session = await gateway.open();
      await gateway.rpc(callOf(CALL), {
        session,
        headers: { 'mcp-protocol-version': '2025-11-25' },
      });
    });
    const span = collector.only('tools/call service_ping');
    expect(span).toMatchObject({
      kind: 2,
      parentSpanId: undefined,
      attributes: {
        'http.request.method': 'POST',
        'http.response.status_code': 200,
        'http.route': '/mcp',
        'url.path': '/mcp',
        'client.address': '127.0.0.1',
        'mcp.method.name': 'tools/call',
        'mcp.protocol.version': '2025-11-25',
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': 'service_ping',
        'jsonrpc.request.id': '7',
      },
      resource: { 'service.name': 'postern', 'service.version': expect.any(String) },
    });
    const below = collector.spans().filter(({ parentSpanId }) => parentSpanId === span.spanId);
    expect(below).toMatchObject([
      {
        name: 'store admit',
        kind: 3,
        traceId: span.traceId,
        attributes: { 'db.system.name': 'lmdb', 'db.operation.name': 'admit' },
      },
    ]);
    expect(span.duration).toBeGreaterThanOrEqual(below[0]?.duration ?? Number.POSITIVE_INFINITY);
  });

  test('§21.2 traces: probes and metrics are no spans, and what they ask of the store is none', async () => {
    await runTraced(
      async (gateway) => {
        const headers = { traceparent: TRACEPARENT };
        for (const path of ['/health', '/health/ready', '/metrics']) {
          for (const method of ['GET', 'HEAD', 'POST'] as const) {
            await gateway.request({ method, path, headers });
          }
        }
        await gateway.rpc(INITIALIZE_REQUEST);
      },
      { METRICS_ENABLED: 'true' },
    );
    const { spanId } = collector.only('initialize');
    for (const span of collector.spans()) {
      expect([span.spanId, span.parentSpanId], span.name).toContain(spanId);
    }
  });

  test('§21.2 traces: the parent is that of the header', async () => {
    await runTraced((gateway) =>
      gateway.rpc(INITIALIZE_REQUEST, { headers: { traceparent: TRACEPARENT } }),
    );
    expect(collector.only('initialize')).toMatchObject({ traceId: TRACE, parentSpanId: PARENT });
    for (const { traceId } of collector.spans()) expect(traceId).toBe(TRACE);
  });

  test('§21.2 traces: without one in the header, the parent is that of _meta', async () => {
    const answer = await runTraced((gateway) =>
      stateless(gateway, 'tools/call', CALL, { meta: { traceparent: TRACEPARENT } }),
    );
    expect(answer.status).toBe(200);
    const span = collector.only('tools/call service_ping');
    expect(span).toMatchObject({ traceId: TRACE, parentSpanId: PARENT });
    expect(collector.only('store admit')).toMatchObject({
      traceId: TRACE,
      parentSpanId: span.spanId,
    });
  });

  test('§21.2 traces: calls at once keep to their own parents, also where they wait for their turn', async () => {
    const traces = Array.from({ length: 40 }, (_, at) => (at + 1).toString(16).padStart(32, '0'));
    await runTraced(async (gateway) => {
      await Promise.all(
        traces.map((trace) =>
          stateless(gateway, 'tools/call', CALL, {
            headers: { traceparent: `00-${trace}-${PARENT}-01` },
          }),
        ),
      );
    });
    for (const trace of traces) {
      const names = collector.spans().filter(({ traceId }) => traceId === trace);
      expect(names.map(({ name }) => name).sort()).toEqual([
        'store admit',
        'tools/call service_ping',
      ]);
    }
  });
});

test('§21.2 traces: a request to a server is a span below, and the parent of what the server does', async () => {
  const server = closeAfterTest(await startListingServer({ tools: [buildTool('search')] }));
  const recorder = closeAfterTest(await startRecorder(server.url));
  const gateway = await startCatalogGateway({
    file: { mcpServers: { wiki: recorder.url } },
    env: collector.env,
  });
  const params = { name: 'wiki__search', arguments: {} };
  const answer = await stateless(gateway, 'tools/call', params, {
    meta: { traceparent: TRACEPARENT, baggage: 'tenant=blue' },
  });
  expect(answer.status).toBe(200);
  await gateway.close();
  const own = collector.only('tools/call wiki__search');
  const below = collector.only('tools/call search');
  expect(own).toMatchObject({ traceId: TRACE, parentSpanId: PARENT });
  expect(below).toMatchObject({
    traceId: TRACE,
    parentSpanId: own.spanId,
    kind: 3,
    attributes: {
      'postern.server': 'wiki',
      'mcp.method.name': 'tools/call',
      'gen_ai.tool.name': 'search',
      'network.transport': 'tcp',
      'server.address': '127.0.0.1',
    },
  });
  const sent = recorder.received.find(({ body }) => body.includes('"tools/call"'));
  expect(JSON.parse(sent?.body ?? '').params._meta).toMatchObject({
    traceparent: `00-${TRACE}-${below.spanId}-01`,
  });
});

test('§21.2 traces: spans that a tool makes by the API are below its call, and recorded only where that is', async () => {
  const spanning = defineTool({
    name: 'spanning',
    description: 'Makes a span.',
    inputSchema: { type: 'object' },
    async run() {
      await Promise.resolve();
      tracesOfTools.getTracer('tool').startSpan('work').end();
      return { content: [] };
    },
  });
  const gateway = await startGateway({
    env: collector.env,
    deps: { catalog: createLocalCatalog({ tools: [spanning] }) },
  });
  for (const flags of ['00', '01']) {
    await stateless(
      gateway,
      'tools/call',
      { name: 'spanning', arguments: {} },
      { headers: { traceparent: `00-${TRACE}-${PARENT}-${flags}` } },
    );
  }
  await gateway.close();
  expect(collector.only('work')).toMatchObject({
    traceId: TRACE,
    parentSpanId: collector.only('tools/call spanning').spanId,
  });
});

test('§21.2 traces: a login in broker mode has the requests to the provider below it', async () => {
  const broker = await startBroker(collector.env);
  const client = await broker.steps.register();
  await broker.logIn(client);
  // Another login, whose requests belong to it alone.
  await broker.steps.logIn(client);
  await broker.close();
  const named = (name: string) => collector.spans().filter((span) => span.name === name);
  const idOf = (name: string) => named(name)[0]?.spanId;
  const [callback] = named('GET /oauth/callback');
  expect(named('POST /oauth/consent')[0]?.links).toEqual([idOf('GET /oauth/authorize')]);
  expect(callback?.links).toEqual([idOf('POST /oauth/consent')]);
  expect(collector.only('POST /oauth/token').links).toEqual([callback?.spanId]);
  expect(named('POST')[0]).toMatchObject({
    kind: 3,
    traceId: callback?.traceId,
    parentSpanId: callback?.spanId,
    attributes: {
      'http.request.method': 'POST',
      'http.response.status_code': 200,
      'url.full': `${broker.upstream.url}/token`,
    },
  });
  const operations = collector
    .spans()
    .filter(({ parentSpanId }) => parentSpanId === callback?.spanId)
    .map(({ name }) => name);
  expect(operations).toContain('store take');
  expect(JSON.stringify(collector.spans())).not.toMatch(
    new RegExp([client.verifier, 'provider-secret', 'provider-code', 'eyJ'].join('|')),
  );
});

describe('what is not told', () => {
  test('§21.2 traces: names that callers make up are no names of spans; failures are marked', async () => {
    await runTraced(async (gateway) => {
      await stateless(gateway, 'tools/call', { name: 'no_such_tool', arguments: {} });
      await stateless(gateway, 'no/such_method');
      await gateway.request({ path: '/no-such-path?code=the-code' });
      await gateway.request({ path: `${DOCUMENT}?token=the-token` });
    });
    const named = collector.spans().filter(({ kind }) => kind === 2);
    expect(named).toMatchObject([
      { name: 'tools/call', status: 2, attributes: { 'error.type': '-32602' } },
      { name: 'POST /mcp' },
      { name: 'GET unmatched' },
      { name: `GET ${DOCUMENT}` },
    ]);
    expect(JSON.stringify(collector.spans())).not.toMatch(/the-code|the-token/);
  });

  test('§21.2 traces: methods are answered the same, whatever they are called, and name no span', async () => {
    const names = ['constructor', 'toString', '__proto__'];
    const answers = await runTraced((gateway) =>
      Promise.all(names.map((name) => stateless(gateway, name))),
    );
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 404]);
    const named = collector.spans().filter(({ kind }) => kind === 2);
    expect(named.map(({ name }) => name)).toEqual(names.map(() => 'POST /mcp'));
  });

  test('§21.2 traces: names that callers make up are no names of spans, also where no tool is looked for', async () => {
    const made = 'x'.repeat(5000);
    await runTraced(async (gateway) => {
      const session = await gateway.open();
      await gateway.rpc({ jsonrpc: '2.0', method: made }, { session });
      await gateway.rpc(
        { jsonrpc: '2.0', method: 'tools/call', params: { name: made } },
        { session },
      );
      await gateway.rpc(callOf({ name: made }), { session: 'no-such-session' });
    });
    const sent = JSON.stringify(collector.spans());
    expect(sent).toContain('"tools/call"');
    expect(sent).not.toContain(made.slice(0, 300));
  });

  test('§21.2 traces: neither arguments nor results nor tokens, and of a URI no query', async () => {
    const token = await runTraced(async (gateway) => {
      const signed = await gateway.issuer.sign();
      const greeting = { name: 'greeting', arguments: { name: 'planted-argument' } };
      await stateless(gateway, 'prompts/get', greeting, { token: signed });
      const uri = 'https://planted-user@host.example/page?planted-query';
      await stateless(gateway, 'resources/read', { uri }, { token: signed });
      return signed;
    });
    expect(collector.only('prompts/get greeting').attributes).toMatchObject({
      'gen_ai.prompt.name': 'greeting',
    });
    expect(collector.only('resources/read').attributes).toMatchObject({
      'mcp.resource.uri': 'https://host.example/page',
    });
    const sent = collector.received.map(({ body }) => body.toString()).join('');
    for (const secret of ['planted', token]) expect(sent).not.toContain(secret);
  });

  test('§21.2 traces: what a caller does not record is not recorded, but passed on', async () => {
    const server = closeAfterTest(await startListingServer({ tools: [buildTool('search')] }));
    const recorder = closeAfterTest(await startRecorder(server.url));
    const gateway = await startCatalogGateway({
      file: { mcpServers: { wiki: recorder.url } },
      env: collector.env,
    });
    await stateless(
      gateway,
      'tools/call',
      { name: 'wiki__search', arguments: {} },
      {
        headers: { traceparent: `00-${TRACE}-${PARENT}-00`, tracestate: 'vendor=1' },
      },
    );
    await gateway.close();
    expect(collector.spans().filter(({ traceId }) => traceId === TRACE)).toEqual([]);
    const sent = recorder.received.find(({ body }) => body.includes('"tools/call"'));
    const { traceparent, tracestate } = JSON.parse(sent?.body ?? '').params._meta;
    expect(traceparent).toMatch(new RegExp(`^00-${TRACE}-(?!${PARENT})[0-9a-f]{16}-00$`));
    expect(tracestate).toBe('vendor=1');
  });

  test('§21.2 traces: OTEL_TRACES_SAMPLER decides what is recorded, OTEL_SERVICE_NAME whose it is', async () => {
    const ping = (gateway: TestGateway) => gateway.request({ path: DOCUMENT });
    await runTraced(ping, { OTEL_TRACES_SAMPLER: 'always_off' });
    expect(collector.received).toEqual([]);
    await runTraced(ping, {
      OTEL_TRACES_SAMPLER: 'traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '1.0',
      OTEL_SERVICE_NAME: 'gateway-of-docs',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=pre%20production,team=docs',
      OTEL_EXPORTER_OTLP_HEADERS: 'x-team=docs%2Ctools',
    });
    expect(collector.only(`GET ${DOCUMENT}`).resource).toMatchObject({
      'service.name': 'gateway-of-docs',
      'deployment.environment.name': 'pre production',
      team: 'docs',
    });
    expect(collector.received[0]).toMatchObject({
      path: '/v1/traces',
      headers: { 'x-team': 'docs,tools', 'content-type': 'application/json' },
    });
  });
});

test('§21.2 traces: by default they are sent as protobuf', async () => {
  const gateway = await startGateway({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url } });
  await gateway.request({ path: DOCUMENT });
  await gateway.close();
  expect(collector.received).toMatchObject([
    { path: '/v1/traces', headers: { 'content-type': 'application/x-protobuf' } },
  ]);
  expect(collector.received[0]?.body.includes(`GET ${DOCUMENT}`)).toBe(true);
});

test('§21.2 traces: a collector that refuses them is told in the log, and delays nobody', async () => {
  const refusing = closeAfterTest(await startCollector(403));
  const gateway = await startGateway({ env: refusing.env });
  expect((await gateway.request({ path: DOCUMENT })).status).toBe(200);
  await gateway.close();
  expect(gateway.log.filter(({ level }) => level === 'warn')).toMatchObject([
    {
      msg: expect.stringContaining('OTEL_EXPORTER_OTLP_ENDPOINT'),
      collector: `${refusing.url}/v1/traces`,
    },
  ]);
});
