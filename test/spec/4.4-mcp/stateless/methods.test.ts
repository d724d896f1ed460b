// MCP 2026-07-28: what the methods answer that need no session.
import { describe, expect, test } from 'vitest';
import { SERVER_INFO, stateless } from '../../../support/clients/stateless.ts';
import { startGateway } from '../../../support/gateway/gateway.ts';
import { useGateway } from '../../../support/gateway/use-gateway.ts';

const SERVER = { name: 'postern', version: expect.stringMatching(/^\d+\.\d+\.\d+/) };

const CACHED = [
  { method: 'server/discover', params: {} },
  { method: 'tools/list', params: {} },
  { method: 'prompts/list', params: {} },
  { method: 'resources/list', params: {} },
  { method: 'resources/templates/list', params: {} },
  { method: 'resources/read', params: { uri: 'config://server' } },
  { method: 'resources/read', params: { uri: 'user://profile' } },
];
const CALLS = [
  { method: 'tools/call', params: { name: 'service_ping' } },
  { method: 'tools/call', params: { name: 'service_ping', arguments: { message: 5 } } },
  { method: 'prompts/get', params: { name: 'greeting', arguments: { name: 'Ada' } } },
  { method: 'prompts/get', params: { name: 'user-context' } },
];

describe('the methods, with the specification’s catalogue', () => {
  const gateway = useGateway();

  const resultOf = async (method: string, params = {}, sub = 'user-1') => {
    const token = await gateway.issuer.sign({ sub, name: `Name of ${sub}` });
    const { status, json } = await stateless(gateway, method, params, { token });
    expect(status).toBe(200);
    return json.result;
  };

  test('§15 server/discover says what there is, and nothing else', async () => {
    expect(await resultOf('server/discover')).toEqual({
      resultType: 'complete',
      supportedVersions: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'],
      capabilities: { tools: {}, prompts: {}, resources: {} },
      ttlMs: expect.any(Number),
      cacheScope: 'public',
      _meta: { [SERVER_INFO]: SERVER },
    });
  });

  test.each([...CACHED, ...CALLS])(
    '§15 $method of $params is complete, and says whose it is',
    async ({ method, params }) => {
      const { resultType, _meta } = await resultOf(method, params);
      expect(resultType).toBe('complete');
      expect(_meta).toEqual({ [SERVER_INFO]: SERVER });
    },
  );

  test.each(CACHED)('§15 $method of $params says how long it holds', async (row) => {
    const { ttlMs, cacheScope, ...rest } = await resultOf(row.method, row.params);
    expect(Number.isSafeInteger(ttlMs) && ttlMs >= 0).toBe(true);
    expect(['public', 'private']).toContain(cacheScope);
    // What is public must be the same for everybody.
    const ofAnother = await resultOf(row.method, row.params, 'eve');
    if (cacheScope === 'public') expect(ofAnother).toMatchObject(rest);
  });

  test.each(CALLS)('§15 $method of $params does not', async ({ method, params }) => {
    const result = await resultOf(method, params);
    expect(Object.keys(result)).not.toContain('ttlMs');
    expect(Object.keys(result)).not.toContain('cacheScope');
  });

  test('§2.7 user://profile is its user’s, and not to be kept', async () => {
    const profile = await resultOf('resources/read', { uri: 'user://profile' }, 'ada');
    expect(profile).toMatchObject({ ttlMs: 0, cacheScope: 'private' });
    expect(JSON.parse(profile.contents[0].text)).toMatchObject({ sub: 'ada' });
    const config = await resultOf('resources/read', { uri: 'config://server' });
    expect(config.cacheScope).toBe('public');
  });

  test.each(['resultType', 'ttlMs', 'cacheScope', '_meta'])(
    '§15 sessions never see %s',
    async (member) => {
      const session = await gateway.open();
      for (const { method, params } of [...CACHED.slice(1), ...CALLS.slice(0, 1)]) {
        const { result } = (await gateway.call(session, method, params)).json;
        expect(Object.keys(result)).not.toContain(member);
      }
    },
  );

  test.each([
    'ping',
    'initialize',
    'logging/setLevel',
    'resources/subscribe',
    'resources/unsubscribe',
    'subscriptions/listen',
    'completion/complete',
    'sampling/createMessage',
    'nope',
    '',
    'constructor',
    '__proto__',
    'Tools/list',
    'notifications/initialized',
  ])('§7.1 the method "%s" is not there: 404 -32601', async (method) => {
    const headers = { accept: 'application/json, text/event-stream' };
    const { status, json } = await stateless(gateway, method, {}, { id: 'mine', headers });
    expect(status).toBe(404);
    expect(json).toMatchObject({
      jsonrpc: '2.0',
      error: { code: -32601, message: 'Method not found' },
      id: 'mine',
    });
  });

  test.each([
    { method: 'tools/call', params: { name: 'service_ping', arguments: [] }, named: 'arguments' },
    { method: 'tools/call', params: { name: 'service_ping', arguments: null }, named: 'arguments' },
    { method: 'prompts/get', params: { name: 'greeting' }, named: 'name' },
    {
      method: 'prompts/get',
      params: { name: 'greeting', arguments: { name: 'Ada', style: 'rude' } },
      named: 'style',
    },
    { method: 'tools/list', params: { cursor: 5 }, named: 'cursor' },
    { method: 'tools/list', params: { cursor: 'nope' }, named: 'cursor' },
  ])('§7.1 $method with $params: 200 -32602 that names it', async ({ method, params, named }) => {
    const { status, json } = await stateless(gateway, method, params, { id: 'mine' });
    expect(status).toBe(200);
    expect(json).toMatchObject({ error: { code: -32602, message: 'Invalid params' }, id: 'mine' });
    expect(json.error.data.details).toContain(named);
  });

  test.each([
    { method: 'tools/call', params: { name: 'nope' }, message: 'Unknown tool: nope.' },
    { method: 'tools/call', params: { name: '__proto__' }, message: 'Unknown tool: __proto__.' },
    { method: 'prompts/get', params: { name: 'nope' }, message: 'Unknown prompt: nope.' },
    {
      method: 'resources/read',
      params: { uri: 'test://nope' },
      message: 'Unknown resource: test://nope.',
    },
  ])('§7.1 $method with $params: 200 -32602 $message', async ({ method, params, message }) => {
    const { status, json } = await stateless(gateway, method, params, { id: 'mine' });
    expect(status).toBe(200);
    expect(json).toMatchObject({ error: { code: -32602, message }, id: 'mine' });
    if ('uri' in params) expect(json.error.data.uri).toBe(params.uri);
  });

  test.each([
    { args: { message: 5 }, member: 'message' },
    { args: { extra: 1 }, member: 'extra' },
  ])('§15 arguments that do not fit, $args: a result that names $member', async (row) => {
    const params = { name: 'service_ping', arguments: row.args };
    expect(await resultOf('tools/call', params)).toEqual({
      resultType: 'complete',
      isError: true,
      content: [{ type: 'text', text: expect.stringContaining(row.member) }],
      _meta: { [SERVER_INFO]: SERVER },
    });
  });
});

describe('without authentication', () => {
  test.each([
    { method: 'prompts/get', params: { name: 'user-context' } },
    { method: 'resources/read', params: { uri: 'user://profile' } },
  ])('§7.1 $method of $params: 200 -32001 missing_token', async ({ method, params }) => {
    const gateway = await startGateway({ env: { AUTH_REQUIRED: 'false' } });
    try {
      const { status, headers, json } = await stateless(gateway, method, params, { id: 'mine' });
      expect(status).toBe(200);
      expect(json).toMatchObject({
        error: { code: -32001, message: 'Unauthorized', data: { reason: 'missing_token' } },
        id: 'mine',
      });
      expect(headers['www-authenticate']).toBeUndefined();
      expect((await stateless(gateway, 'tools/list')).status).toBe(200);
    } finally {
      await gateway.close();
    }
  });
});
