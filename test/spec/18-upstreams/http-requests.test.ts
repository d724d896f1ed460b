import { describe, expect, test } from 'vitest';
import { GATEWAY_CALLER } from '../../../src/mcp/upstream/upstream.ts';
import { closeAfterTest, useFresh } from '../../support/lifetimes.ts';
import { startProxy } from '../../support/oauth/proxy.ts';
import { openHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import {
  callTool,
  sessionCaller,
  statelessCaller,
  toRequest,
} from '../../support/upstreams/requests.ts';
import {
  type ScriptedHttp,
  sendJson,
  startScriptedHttp,
  toResult,
} from '../../support/upstreams/scripted-http.ts';

const TRACE = {
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  tracestate: 'vendor=1',
};

const findLast = (server: ScriptedHttp, method: string) => {
  const found = server.received.findLast(({ message }) => message.method === method);
  if (found === undefined) throw new Error(`${method} has not come`);
  return found;
};

describe.each(['session', 'stateless'] as const)('a request to a server of the %s era', (era) => {
  const server = useFresh(() => startScriptedHttp(era));
  const opened = useFresh(() =>
    openHttpUpstream(
      {
        url: server.url,
        headers: {
          'x-key': 'configured',
          authorization: 'Bearer configured',
          connection: 'upgrade',
          'transfer-encoding': 'chunked',
          host: 'elsewhere.example',
        },
      },
      {
        getHeaders: async ({ user }) =>
          user?.sub === 'ada' ? { Authorization: 'Bearer of ada' } : {},
      },
    ),
  );
  const call = (caller = sessionCaller(), given = {}) =>
    callTool(opened.upstream, caller, 'any', { a: 1 }, given);

  test('§18.6 carries the headers of the configuration, and credentials in their place', async () => {
    await call();
    expect(findLast(server, 'tools/call').headers).toMatchObject({
      'x-key': 'configured',
      authorization: 'Bearer of ada',
    });
    await call(GATEWAY_CALLER);
    expect(findLast(server, 'tools/call').headers.authorization).toBe('Bearer configured');
  });

  test('§18.6 is signed as it is sent, where its credentials sign requests', async () => {
    const signed: { readonly method: string; readonly url: string; readonly text: string }[] = [];
    const signing = await openHttpUpstream(
      { url: server.url },
      {
        sign: async ({ user }, request) => {
          const { method, url, body } = request;
          signed.push({ method, url, text: Buffer.from(body).toString() });
          const isWhole = request.headers.includes('content-type');
          return { 'x-signature': `${user?.sub} ${isWhole} ${body.byteLength}` };
        },
      },
    );
    closeAfterTest(signing);
    await callTool(signing.upstream, sessionCaller(), 'any', { a: 1 });
    const sent = findLast(server, 'tools/call');
    const last = signed.findLast(({ text }) => text.includes('"tools/call"'));
    expect(last).toEqual({ method: 'POST', url: server.url, text: JSON.stringify(sent.message) });
    expect(sent.headers['x-signature']).toBe(`ada true ${Buffer.byteLength(last?.text ?? '')}`);
  });

  test('§18.6 carries nothing of the client: no token, no cookie, no hop-by-hop header', async () => {
    server.answer('tools/call', (res, request) => {
      res.setHeader('set-cookie', 'a=b');
      sendJson(res, toResult(request, { content: [] }));
    });
    const params = {
      name: 'any',
      _meta: {
        progressToken: 'a token of the client',
        traceparent: 'x',
        'io.modelcontextprotocol/clientInfo': { name: 'client' },
        'example.com/own': 1,
      },
    };
    await opened.upstream.request(sessionCaller(), toRequest('tools/call', params));
    await opened.upstream.request(sessionCaller(), toRequest('tools/call', params));
    const all = JSON.stringify(server.received);
    expect(all).not.toMatch(
      /the token of ada|cookie|a token of the client|"traceparent"|"name":"client"/,
    );
    for (const { headers } of server.received) {
      expect(headers.host).toBe(`127.0.0.1:${server.port}`);
      expect(headers.connection).toBe('keep-alive');
      expect(headers['transfer-encoding']).toBeUndefined();
    }
    const { message } = findLast(server, 'tools/call');
    expect(message.params).toMatchObject({ _meta: { 'example.com/own': 1 } });
  });

  test('§18.3 carries the trace of the caller, in _meta and in headers', async () => {
    await call(sessionCaller(), { trace: TRACE });
    const { headers, message } = findLast(server, 'tools/call');
    expect(message.params).toMatchObject({ _meta: TRACE });
    expect(headers).toMatchObject({
      traceparent: TRACE.traceparent,
      tracestate: TRACE.tracestate,
    });
  });

  test('§18.3 uses connections again', async () => {
    let connections = 0;
    server.server.on('connection', () => {
      connections += 1;
    });
    for (let at = 0; at < 10; at += 1) await call();
    // One may not be free yet when the next request is sent.
    expect(connections).toBeLessThan(4);
  });

  test('§18.3 goes through the proxy of the settings', async () => {
    const proxy = closeAfterTest(await startProxy());
    proxy.lead('mcp.example:80', server.port);
    const outbound = { httpProxy: proxy.url, httpsProxy: proxy.url, noProxy: [] };
    const { upstream } = closeAfterTest(
      await openHttpUpstream({ url: 'http://mcp.example/mcp' }, { outbound }),
    );
    expect(await callTool(upstream, sessionCaller(), 'any')).toEqual({ content: [] });
    expect(proxy.asked.every((line) => line === 'POST http://mcp.example/mcp')).toBe(true);
  });
});

describe('the envelope of 2026-07-28', () => {
  const server = useFresh(() => startScriptedHttp('stateless'));
  const opened = useFresh(() => openHttpUpstream({ url: server.url }));

  test('§18.3 each request says version, capabilities, gateway and log level', async () => {
    const caller = statelessCaller({
      capabilities: { elicitation: true, elicitationUrl: true, sampling: false, roots: true },
    });
    await callTool(opened.upstream, caller, 'any', {}, { logLevel: 'warning' });
    const { headers, message } = findLast(server, 'tools/call');
    expect(headers).toMatchObject({
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'any',
    });
    expect(headers['mcp-session-id']).toBeUndefined();
    expect(message.params).toEqual({
      name: 'any',
      arguments: {},
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': {
          elicitation: { form: {}, url: {} },
          roots: {},
        },
        'io.modelcontextprotocol/clientInfo': { name: 'postern', version: expect.any(String) },
        'io.modelcontextprotocol/logLevel': 'warning',
      },
    });
  });

  test.each([
    ['plain', 'plain'],
    ['with spaces inside', 'with spaces inside'],
    [' at the ends ', '=?base64?IGF0IHRoZSBlbmRzIA==?='],
    ['häßlich ☃', '=?base64?aMOkw59saWNoIOKYgw==?='],
    ['line\r\nX-Evil: 1', '=?base64?bGluZQ0KWC1FdmlsOiAx?='],
    ['=?base64?eA==?=', '=?base64?PT9iYXNlNjQ/ZUE9PT89?='],
  ])('§18.3 the name %j goes as a header that says %s', async (name, written) => {
    const request = toRequest(
      'tools/call',
      { name },
      { name, mirrored: { 'Mcp-Param-City': name } },
    );
    await opened.upstream.request(statelessCaller(), request);
    expect(findLast(server, 'tools/call').headers).toMatchObject({
      'mcp-name': written,
      'mcp-param-city': written,
    });
  });
});
