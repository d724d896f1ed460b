// MCP 2026-07-28: log messages and trace context, which each request asks for or brings.
import { describe, expect, test } from 'vitest';
import {
  createLocalCatalog,
  defineResource,
  defineTool,
  type LogSeverity,
} from '../../../../src/index.ts';
import {
  CLIENT_CAPABILITIES,
  callTool,
  eventsIn,
  LOG_LEVEL,
  type StatelessOptions,
  stateless,
} from '../../../support/clients/stateless.ts';
import { startGateway } from '../../../support/gateway/gateway.ts';
import { useGateway } from '../../../support/gateway/use-gateway.ts';

const SEVERITIES = [
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
] as const satisfies readonly LogSeverity[];

const catalog = createLocalCatalog({
  logging: true,
  tools: [
    defineTool({
      name: 'logs',
      description: 'Tells its progress, and logs in every severity.',
      inputSchema: { type: 'object' },
      run(_args, { progress, log }) {
        progress(1);
        for (const level of SEVERITIES) log(level, `it is ${level}`);
        return { content: [] };
      },
    }),
    defineTool({
      name: 'traces',
      description: 'Answers with the trace context.',
      inputSchema: { type: 'object' },
      run: (_args, { trace }) => ({ content: [{ type: 'text', text: JSON.stringify(trace) }] }),
    }),
    defineTool({
      name: 'sees',
      description: 'Answers with what the client can be asked.',
      inputSchema: { type: 'object' },
      run: (_args, { client }) => ({ content: [{ type: 'text', text: JSON.stringify(client) }] }),
    }),
  ],
  resources: [
    defineResource({
      uri: 'test://traces',
      name: 'traces',
      description: '',
      mimeType: 'application/json',
      read: ({ trace }) => ({ text: JSON.stringify(trace) }),
    }),
  ],
});

const gateway = useGateway({ deps: { catalog } });

const listening = (meta: StatelessOptions['meta'] = {}) => ({
  meta,
  headers: { accept: 'application/json, text/event-stream' },
});

describe('log messages', () => {
  test.each(SEVERITIES)('§15 logLevel %s: that, and what is more severe', async (level) => {
    const { text } = await callTool(gateway, 'logs', {}, listening({ [LOG_LEVEL]: level }));
    const said = eventsIn(text).slice(0, -1);
    expect(said).toEqual(
      SEVERITIES.slice(SEVERITIES.indexOf(level)).map((one) => ({
        jsonrpc: '2.0',
        method: 'notifications/message',
        params: { level: one, data: `it is ${one}` },
      })),
    );
  });

  test('§15 none without a logLevel of this very request', async () => {
    await callTool(gateway, 'logs', {}, listening({ [LOG_LEVEL]: 'debug' }));
    const { text } = await callTool(gateway, 'logs', {}, listening({ progressToken: 'p' }));
    const methods = eventsIn(text).map(({ method }) => method);
    expect(methods).toEqual(['notifications/progress', undefined]);
  });

  test('§15 none from a catalogue that does not say that it logs', async () => {
    const silent = await startGateway({
      deps: { catalog: { ...catalog, offers: { ...catalog.offers, logging: false } } },
    });
    try {
      const options = listening({ [LOG_LEVEL]: 'debug' });
      const { headers } = await callTool(silent, 'logs', {}, options);
      expect(headers['content-type']).toBe('application/json');
      const { json } = await stateless(silent, 'server/discover');
      expect(json.result.capabilities).not.toHaveProperty('logging');
    } finally {
      await silent.close();
    }
  });
});

describe('trace context', () => {
  const TRACE = {
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01',
    tracestate: 'rojo=00f067aa0ba902b7',
  };
  const BAGGAGE = 'userId=alice,serverNode=DF%2028';

  test.each([
    { what: 'both', meta: TRACE, trace: TRACE },
    { what: 'both without the baggage', meta: { ...TRACE, baggage: BAGGAGE }, trace: TRACE },
    {
      what: 'the first alone',
      meta: { traceparent: TRACE.traceparent },
      trace: { traceparent: TRACE.traceparent },
    },
    { what: 'nothing of baggage alone', meta: { baggage: BAGGAGE }, trace: {} },
    { what: 'a state of no parent', meta: { tracestate: TRACE.tracestate }, trace: {} },
    {
      what: 'a parent that is none',
      meta: { traceparent: 'nonsense', tracestate: TRACE.tracestate },
      trace: {},
    },
    {
      what: 'a parent of zeros',
      meta: { traceparent: `00-${'0'.repeat(32)}-${'0'.repeat(16)}-01` },
      trace: {},
    },
    {
      what: 'a parent of version ff',
      meta: { traceparent: TRACE.traceparent.replace(/^00/, 'ff') },
      trace: {},
    },
    {
      what: 'a line too many',
      meta: { ...TRACE, tracestate: 'a=1\r\nAuthorization: x' },
      trace: { traceparent: TRACE.traceparent },
    },
    { what: 'what is no text', meta: { traceparent: 5, tracestate: null }, trace: {} },
    { what: 'none', meta: {}, trace: {} },
  ])('§15 $what in _meta: that reaches the author', async ({ meta, trace }) => {
    const { json } = await callTool(gateway, 'traces', {}, { meta });
    expect(JSON.parse(json.result.content[0].text)).toEqual(trace);
    const read = await stateless(gateway, 'resources/read', { uri: 'test://traces' }, { meta });
    expect(JSON.parse(read.json.result.contents[0].text)).toEqual(trace);
  });
});

describe('what the client declared', () => {
  const NONE = { elicitation: false, sampling: false, roots: false };

  test.each([
    { declared: {}, seen: NONE },
    { declared: { roots: {} }, seen: { ...NONE, roots: true } },
    { declared: { sampling: {} }, seen: { ...NONE, sampling: true } },
    {
      declared: { sampling: { tools: {} } },
      seen: { ...NONE, sampling: true, samplingTools: true },
    },
    { declared: { elicitation: {} }, seen: { ...NONE, elicitation: true } },
    { declared: { elicitation: { url: {} } }, seen: { ...NONE, elicitationUrl: true } },
    { declared: { elicitation: null, sampling: true, roots: 'yes' }, seen: NONE },
  ])('§15 $declared: the author sees $seen', async ({ declared, seen }) => {
    const { json } = await callTool(
      gateway,
      'sees',
      {},
      { meta: { [CLIENT_CAPABILITIES]: declared } },
    );
    expect(JSON.parse(json.result.content[0].text)).toEqual(seen);
  });
});
