import { beforeAll, describe, expect, test } from 'vitest';
import { INITIALIZE_REQUEST } from '../../support/gateway/gateway.ts';
import { useGateway } from '../../support/gateway/use-gateway.ts';

const gateway = useGateway();
let session: string;
beforeAll(async () => {
  session = await gateway.open();
});

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const ISO_UTC = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;

const initialize = (params: unknown) =>
  gateway.rpc({ jsonrpc: '2.0', id: 'init', method: 'initialize', params });

describe('initialize', () => {
  test('§4.4 initialize makes a session and says who serves', async () => {
    const { status, headers, json } = await gateway.rpc(INITIALIZE_REQUEST);
    expect(status).toBe(200);
    expect(headers['mcp-session-id']).toMatch(UUID_V4);
    expect(headers['x-session-expires-at']).toMatch(ISO_UTC);
    expect(headers['content-type']).toBe('application/json');
    expect(json).toEqual({
      jsonrpc: '2.0',
      result: {
        protocolVersion: '2025-11-25',
        capabilities: { tools: {}, prompts: {}, resources: {} },
        serverInfo: { name: 'postern', version: expect.stringMatching(/^\d+\.\d+\.\d+/) },
      },
      id: 1,
    });
  });

  test.each([
    { asked: '0.1.0', answered: '0.1.0' },
    { asked: '2024-11-05', answered: '2024-11-05' },
    { asked: '2025-03-26', answered: '2025-03-26' },
    { asked: '2025-06-18', answered: '2025-06-18' },
    { asked: '2025-11-25', answered: '2025-11-25' },
    { asked: '2026-07-28', answered: '2025-11-25' },
    { asked: '', answered: '2025-11-25' },
    { asked: 'nonsense', answered: '2025-11-25' },
  ])('§9 protocolVersion "$asked" is answered with $answered', async ({ asked, answered }) => {
    const { json } = await initialize({ protocolVersion: asked, capabilities: {} });
    expect(json.result.protocolVersion).toBe(answered);
  });

  test.each([
    { params: undefined, named: 'protocolVersion' },
    { params: { capabilities: {} }, named: 'protocolVersion' },
    { params: { protocolVersion: 1, capabilities: {} }, named: 'protocolVersion' },
    { params: { protocolVersion: '2025-11-25' }, named: 'capabilities' },
    { params: { protocolVersion: '2025-11-25', capabilities: [] }, named: 'capabilities' },
    { params: { protocolVersion: '2025-11-25', capabilities: null }, named: 'capabilities' },
    { params: [], named: 'params' },
    { params: 'x', named: 'params' },
  ])('§4.4 initialize with $params: -32602 and no session', async ({ params, named }) => {
    const { status, headers, json } = await initialize(params);
    expect(status).toBe(200);
    expect(json).toMatchObject({ error: { code: -32602 }, id: 'init' });
    expect(json.error.data.details).toContain(named);
    expect(headers['mcp-session-id']).toBeUndefined();
  });

  test.each([
    { clientInfo: undefined },
    { clientInfo: 'text' },
    { clientInfo: { name: 'x' } },
    { clientInfo: { name: ['x'], version: {}, more: 'y'.repeat(5000) } },
  ])('§4.4 clientInfo is optional and never a reason to refuse', async ({ clientInfo }) => {
    const { headers } = await initialize({
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo,
    });
    expect(headers['mcp-session-id']).toMatch(UUID_V4);
  });

  test('§4.4 initialize in a live session: 400 -32600, in an unknown one: 404', async () => {
    const live = await gateway.rpc(INITIALIZE_REQUEST, { session });
    expect(live.status).toBe(400);
    expect(live.json.error.code).toBe(-32600);
    const advice = expect.stringContaining('send it without the mcp-session-id header');
    expect(live.json.error.data.details).toEqual(advice);
    for (const old of [crypto.randomUUID(), 'no-uuid']) {
      const unknown = await gateway.rpc(INITIALIZE_REQUEST, { session: old });
      expect(unknown.status).toBe(404);
      expect(unknown.json.error.data).toEqual({ reason: 'session_not_found', details: advice });
    }
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
    const other = await gateway.rpc(ping, { session: crypto.randomUUID() });
    expect(other.json.error.data.details).not.toEqual(advice);
  });
});

describe('the JSON-RPC envelope', () => {
  test.each([
    { what: 'broken JSON', body: '{"jsonrpc":', code: -32700 },
    { what: 'no body', body: '', code: -32700 },
    { what: 'a batch', body: '[{"jsonrpc":"2.0","id":1,"method":"ping"}]', code: -32600 },
    { what: 'an empty batch', body: '[]', code: -32600 },
    { what: 'a number', body: '5', code: -32600 },
    { what: 'null', body: 'null', code: -32600 },
    { what: 'no jsonrpc', body: '{"id":1,"method":"ping"}', code: -32600 },
    { what: 'jsonrpc 1.0', body: '{"jsonrpc":"1.0","id":1,"method":"ping"}', code: -32600 },
    { what: 'no method', body: '{"jsonrpc":"2.0","id":1}', code: -32600 },
    { what: 'method 5', body: '{"jsonrpc":"2.0","id":1,"method":5}', code: -32600 },
    { what: 'id null', body: '{"jsonrpc":"2.0","id":null,"method":"ping"}', code: -32600 },
    { what: 'id true', body: '{"jsonrpc":"2.0","id":true,"method":"ping"}', code: -32600 },
    { what: 'id object', body: '{"jsonrpc":"2.0","id":{},"method":"ping"}', code: -32600 },
    { what: 'id 1e999', body: '{"jsonrpc":"2.0","id":1e999,"method":"ping"}', code: -32600 },
    {
      what: 'id beyond 2^53',
      body: '{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}',
      code: -32600,
    },
  ])('§7.1 $what: 400 $code, id null, with details', async ({ body, code }) => {
    const { status, json } = await gateway.rpc(body, { session });
    expect(status).toBe(400);
    expect(json).toMatchObject({ jsonrpc: '2.0', error: { code }, id: null });
    expect(json.error.data.details).toEqual(expect.any(String));
  });

  test.each([
    { id: 0 },
    { id: -7 },
    { id: 1.5 },
    { id: '' },
    { id: '𝄞\u0000' },
    { id: 9007199254740991 },
  ])('§4.4 the id $id comes back unchanged', async ({ id }) => {
    const { json } = await gateway.rpc({ jsonrpc: '2.0', id, method: 'ping' }, { session });
    expect(json).toEqual({ jsonrpc: '2.0', result: {}, id });
  });

  test('§7.1 an unknown method: HTTP 200, -32601 with the id', async () => {
    for (const method of ['nope', 'sampling/createMessage', 'constructor', '__proto__']) {
      const { status, json } = await gateway.call(session, method);
      expect(status).toBe(200);
      expect(json).toMatchObject({ error: { code: -32601, message: 'Method not found' }, id: 1 });
    }
  });

  test.each([
    { method: 'tools/list', params: [] },
    { method: 'tools/list', params: 'x' },
    { method: 'tools/list', params: null },
    { method: 'tools/call', params: undefined },
    { method: 'tools/call', params: { name: 5 } },
    { method: 'tools/call', params: { name: 'service_ping', arguments: [] } },
    { method: 'tools/call', params: { name: 'service_ping', arguments: null } },
    { method: 'prompts/get', params: {} },
    { method: 'prompts/get', params: { name: 'greeting', arguments: 'x' } },
    { method: 'resources/read', params: {} },
    { method: 'resources/read', params: { uri: 5 } },
  ])('§7.1 $method with $params: HTTP 200, -32602 with details', async ({ method, params }) => {
    const { status, json } = await gateway.call(session, method, params);
    expect(status).toBe(200);
    expect(json).toMatchObject({ error: { code: -32602, message: 'Invalid params' }, id: 1 });
    expect(json.error.data.details).toEqual(expect.any(String));
  });

  test('§7.1 an unknown tool: HTTP 200, -32602 with a message that names it', async () => {
    const { status, json } = await gateway.call(session, 'tools/call', { name: 'servicePong' });
    expect(status).toBe(200);
    const message = 'Unknown tool: servicePong. Did you mean service_ping?';
    expect(json).toMatchObject({ error: { code: -32602, message }, id: 1 });
    expect(json.error.data.details).toEqual(expect.any(String));
  });

  test('§4.4 ping answers an empty object, params may be left out', async () => {
    expect((await gateway.call(session, 'ping')).json.result).toEqual({});
    expect((await gateway.call(session, 'tools/list', undefined)).json.result.tools).toContainEqual(
      expect.objectContaining({ name: 'service_ping' }),
    );
  });

  test.each([
    { what: 'a notification', body: { jsonrpc: '2.0', method: 'notifications/initialized' } },
    { what: 'an unknown notification', body: { jsonrpc: '2.0', method: 'x/y', params: 5 } },
    { what: 'a result', body: { jsonrpc: '2.0', id: 1, result: {} } },
    { what: 'an error', body: { jsonrpc: '2.0', id: 1, error: { code: 1, message: '' } } },
  ])('§4.4 $what: 202 without a body, and it slides the session', async ({ body }) => {
    const { status, text, headers } = await gateway.rpc(body, { session });
    expect(status).toBe(202);
    expect(text).toBe('');
    expect(headers['x-session-expires-at']).toMatch(ISO_UTC);
  });

  test('§7.2 a notification without a session: 400 missing_session_id', async () => {
    const { status, json } = await gateway.rpc({ jsonrpc: '2.0', method: 'notifications/x' });
    expect(status).toBe(400);
    expect(json.error).toMatchObject({
      code: -32000,
      message: 'Bad Request',
      data: { reason: 'missing_session_id' },
    });
  });
});

describe('the HTTP transport', () => {
  test.each([
    { type: 'text/plain' },
    { type: 'application/x-www-form-urlencoded' },
    { type: 'application/json-patch+json' },
    { type: 'application/json, application/json' },
  ])('§4.4 Content-Type $type: 415, -32000', async ({ type }) => {
    const { status, json } = await gateway.rpc('{}', {
      session,
      headers: { 'content-type': type },
    });
    expect(status).toBe(415);
    expect(json.error).toMatchObject({ code: -32000, message: 'Unsupported Media Type' });
  });

  test.each([
    { type: 'application/json' },
    { type: 'application/json; charset=utf-8' },
    { type: 'Application/JSON;charset=UTF-8' },
  ])('§4.4 Content-Type $type is taken, whatever Accept says', async ({ type }) => {
    const headers = { 'content-type': type, accept: 'text/event-stream' };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
    const answer = await gateway.rpc(body, { session, headers });
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('application/json');
  });

  test('§8.6 a body over MAX_BODY_BYTES: 413, -32000; one just at it passes', async () => {
    const frame = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { x: '' } });
    const fill = (bytes: number) => frame.replace('""', `"${'x'.repeat(bytes - frame.length)}"`);
    expect((await gateway.rpc(fill(1_048_576), { session })).status).toBe(200);
    const { status, json } = await gateway.rpc(fill(1_048_577), { session });
    expect(status).toBe(413);
    expect(json.error.code).toBe(-32000);
  });

  test.each([
    [50_000, 400, -32700],
    // The message itself and its params and arguments are three levels.
    [198, 400, -32700],
    [197, 200, undefined],
  ])('§4.4 JSON %i deep is answered %i, not crashed on', async (levels, wanted, code) => {
    const deep = `"[{\\"",${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}`;
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"service_ping","arguments":{"message":[${deep}]}}}`;
    const { status, json } = await gateway.rpc(body, { session });
    expect(status).toBe(wanted);
    expect(json.error?.code).toBe(code);
    if (wanted === 200) expect(json.result.isError).toBe(true);
  });

  test('§4.4 __proto__ in a body changes nothing', async () => {
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","__proto__":{"x":1},"params":{"name":"service_ping","__proto__":{"arguments":{"message":"polluted"}}}}`;
    const { json } = await gateway.rpc(body, { session });
    expect(json.result.content[0].text).toBe('Postern MCP Server: pong');
    expect(({} as Record<string, unknown>).x).toBeUndefined();
  });

  test('§4.4 GET /mcp: 401 with the challenge, or 405 when a token comes along', async () => {
    const probe = await gateway.request({ path: '/mcp' });
    expect(probe.status).toBe(401);
    expect(probe.headers['www-authenticate']).toBe(
      `Bearer resource_metadata="${gateway.baseUrl}/.well-known/oauth-protected-resource"`,
    );
    expect(probe.headers['x-ratelimit-limit']).toBeUndefined();
    const stream = await gateway.request({ path: '/mcp', headers: { authorization: 'Bearer x' } });
    expect(stream.status).toBe(405);
    expect(stream.headers.allow).toBe('POST, DELETE');
    expect(stream.json.error).toMatchObject({ code: -32000, message: 'Method Not Allowed' });
  });

  test('§9 MCP-Protocol-Version of an unknown version: 400, and the session lives on', async () => {
    const ping = { jsonrpc: '2.0', id: 7, method: 'ping' };
    const headers = { 'mcp-protocol-version': '2020-01-01' };
    const refused = await gateway.rpc(ping, { session, headers });
    expect(refused.status).toBe(400);
    expect(refused.json.error).toMatchObject({
      code: -32000,
      data: { reason: 'unsupported_protocol_version' },
    });
    const known = { 'mcp-protocol-version': '2025-06-18' };
    expect((await gateway.rpc(ping, { session, headers: known })).status).toBe(200);
  });

  test('§4.4 colliding ids of many users at once: everybody gets the own answer', async () => {
    const users = await Promise.all(
      Array.from({ length: 20 }, async (_, at) => {
        const token = await gateway.issuer.sign({ sub: `user-${at}` });
        return { at, token, session: await gateway.open({ token }) };
      }),
    );
    const message = (text: string) => ({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'service_ping', arguments: { message: text } },
    });
    await Promise.all(
      users.flatMap(({ at, token, session: own }) =>
        Array.from({ length: 5 }, async (_, turn) => {
          const text = `${at}/${turn}`;
          const { json } = await gateway.rpc(message(text), { token, session: own });
          expect(json.result.content[0].text).toBe(`Postern MCP Server: ${text}`);
        }),
      ),
    );
  });
});

describe('without authentication', () => {
  const open = useGateway({ env: { AUTH_REQUIRED: 'false', OIDC_ISSUER: '' } });

  const ask = (message: unknown, sessionId?: string, headers = {}) =>
    open.request({
      method: 'POST',
      path: '/mcp',
      body: message,
      headers: { ...(sessionId && { 'mcp-session-id': sessionId }), ...headers },
    });

  test('§5.5 a session and a call need no token, and a bad one is ignored', async () => {
    const opened = await ask(INITIALIZE_REQUEST);
    const own = opened.headers['mcp-session-id'];
    const called = await ask(
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'service_ping' } },
      own,
      { authorization: 'nonsense' },
    );
    expect(called.json.result.content[0].text).toBe('Postern MCP Server: pong');
  });

  test.each([
    { method: 'resources/read', params: { uri: 'user://profile' } },
    { method: 'prompts/get', params: { name: 'user-context' } },
  ])('§5.5 $method $params without a user: HTTP 200, -32001 missing_token', async (row) => {
    const own = (await ask(INITIALIZE_REQUEST)).headers['mcp-session-id'];
    const { status, headers, json } = await ask({ jsonrpc: '2.0', id: 3, ...row }, own);
    expect(status).toBe(200);
    expect(json).toMatchObject({
      error: { code: -32001, message: 'Unauthorized', data: { reason: 'missing_token' } },
      id: 3,
    });
    expect(headers['www-authenticate']).toBeUndefined();
  });

  test('§5.5 GET /mcp is 405: nobody has to log in', async () => {
    expect((await open.request({ path: '/mcp' })).status).toBe(405);
  });

  test('§4.3 readiness has no key set to wait for', async () => {
    const { status, json } = await open.request({ path: '/health/ready' });
    expect(status).toBe(200);
    expect(Object.keys(json.checks)).toEqual(['store']);
  });

  test('§4.10 without an issuer there is no authorization server: 404', async () => {
    for (const name of ['oauth-authorization-server', 'openid-configuration']) {
      const { status, json } = await open.request({ path: `/.well-known/${name}` });
      expect(status).toBe(404);
      expect(json.error.code).toBe(-32000);
    }
  });
});
