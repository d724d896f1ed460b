// MCP 2026-07-28 "Versioning": which era a message on POST /mcp is of.
import { beforeAll, describe, expect, test } from 'vitest';
import {
  PROTOCOL_VERSION,
  STATELESS,
  stateless,
  statelessRequest,
} from '../../../support/clients/stateless.ts';
import { manualClock } from '../../../support/gateway/clock.ts';
import { INITIALIZE_REQUEST } from '../../../support/gateway/gateway.ts';
import { seriesOf } from '../../../support/gateway/metrics.ts';
import { useGateway } from '../../../support/gateway/use-gateway.ts';

const SESSION_TTL_SECONDS = 1000;
const NAMED = { 'mcp-protocol-version': STATELESS };
const CLAIMING = { _meta: { [PROTOCOL_VERSION]: STATELESS } };

const clock = manualClock();
const gateway = useGateway({
  env: { MCP_SESSION_TTL_SECONDS: String(SESSION_TTL_SECONDS) },
  deps: { clock },
});
let session: string;
beforeAll(async () => {
  session = await gateway.open();
});

const sessions = () => seriesOf(gateway, 'mcp_sessions_active');

describe('a request that claims a version is of the stateless era', () => {
  test('§15 initialize is an unknown method there, and makes no session', async () => {
    const before = await sessions();
    const { status, headers, json } = await stateless(
      gateway,
      'initialize',
      INITIALIZE_REQUEST.params,
      {
        id: 'first',
      },
    );
    expect(status).toBe(404);
    expect(json).toMatchObject({ error: { code: -32601, message: 'Method not found' } });
    expect(json.id).toBe('first');
    expect(headers['mcp-session-id']).toBeUndefined();
    expect(await sessions()).toBe(before);
  });

  test('§3.1 the session that its header names is not touched', async () => {
    const own = await gateway.open();
    clock.advance((SESSION_TTL_SECONDS - 1) * 1000);
    const { status, headers, json } = await stateless(gateway, 'tools/list', {}, { session: own });
    expect(status).toBe(200);
    expect(json.result.resultType).toBe('complete');
    expect(headers['x-session-expires-at']).toBeUndefined();
    expect(headers['mcp-session-id']).toBeUndefined();
    clock.advance(2000);
    expect((await gateway.call(own, 'ping')).status).toBe(404);
    session = await gateway.open();
  });

  test.each([
    { what: 'one that was never a session', id: '5f0c2b8e-6a54-4c7e-9b0f-2d7f5a1c3e90' },
    { what: 'one that is no id', id: 'nonsense' },
    { what: 'an empty one', id: '' },
  ])('§15 a session header is ignored: $what', async ({ id }) => {
    const { status, json } = await stateless(gateway, 'tools/list', {}, { session: id });
    expect(status).toBe(200);
    expect(json.result.resultType).toBe('complete');
  });

  test.each([
    { what: 'a number', claim: 20260728 },
    { what: 'null', claim: null },
    { what: 'an array', claim: [STATELESS] },
    { what: 'an object', claim: {} },
  ])('§7.1 a claim that is $what: 400 -32602, whatever the header says', async ({ claim }) => {
    for (const named of [STATELESS, '2025-11-25', undefined]) {
      const { status, json } = await stateless(
        gateway,
        'tools/list',
        {},
        {
          id: 'x',
          meta: { [PROTOCOL_VERSION]: claim },
          headers: { 'mcp-protocol-version': named },
        },
      );
      expect(status).toBe(400);
      expect(json).toMatchObject({ error: { code: -32602 }, id: 'x' });
      expect(json.error.data.details).toContain(PROTOCOL_VERSION);
    }
  });
});

describe('without a claim the header decides', () => {
  const bodies = [
    { what: 'no params', params: undefined },
    { what: 'empty params', params: {} },
    { what: 'params that are an array', params: [] },
    { what: 'params that are a string', params: 'x' },
    { what: 'params that are null', params: null },
    { what: '_meta that is a string', params: { _meta: STATELESS } },
    { what: '_meta that is an array', params: { _meta: [CLAIMING._meta] } },
    { what: '_meta that is null', params: { _meta: null } },
    { what: 'a claim beside _meta', params: { ...CLAIMING._meta, _meta: {} } },
    { what: 'params of initialize', params: INITIALIZE_REQUEST.params, method: 'initialize' },
  ];

  test.each(bodies)('§7.1 2026-07-28 and $what: 400 -32602', async ({ params, method }) => {
    const message = {
      jsonrpc: '2.0',
      id: 7,
      method: method ?? 'tools/list',
      ...(params !== undefined && { params }),
    };
    const before = await sessions();
    for (const options of [{}, { session }]) {
      const { status, headers, json } = await gateway.rpc(message, { ...options, headers: NAMED });
      expect(status).toBe(400);
      expect(json).toMatchObject({
        jsonrpc: '2.0',
        error: { code: -32602, message: 'Invalid params' },
        id: 7,
      });
      expect(json.error.data.details).toContain(PROTOCOL_VERSION);
      expect(json.error.data.reason).toBeUndefined();
      expect(headers['x-session-expires-at']).toBeUndefined();
    }
    expect(await sessions()).toBe(before);
  });

  test.each(['2027-01-01', 'nonsense', ''])(
    '§7.2 an unknown version, "%s": unsupported in a session, missing_session_id without',
    async (version) => {
      const headers = { 'mcp-protocol-version': version };
      const message = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
      const inSession = await gateway.rpc(message, { session, headers });
      expect(inSession.status).toBe(400);
      expect(inSession.json.error).toMatchObject({
        code: -32000,
        data: { reason: 'unsupported_protocol_version' },
      });
      const without = await gateway.rpc(message, { headers });
      expect(without.status).toBe(400);
      expect(without.json.error).toMatchObject({
        code: -32000,
        data: { reason: 'missing_session_id' },
      });
    },
  );

  test.each(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '0.1.0', undefined])(
    '§15 the version %s, or none, is the session’s',
    async (version) => {
      const { status, headers, json } = await gateway.rpc(
        { jsonrpc: '2.0', id: 1, method: 'ping' },
        { session, headers: version === undefined ? {} : { 'mcp-protocol-version': version } },
      );
      expect(status).toBe(200);
      expect(json.result).toEqual({});
      expect(headers['x-session-expires-at']).toBeDefined();
    },
  );

  test('§4.5 GET and DELETE are of the session era whatever the header says', async () => {
    const own = await gateway.open();
    const headers = { ...NAMED, authorization: `Bearer ${await gateway.issuer.sign()}` };
    expect((await gateway.request({ path: '/mcp', headers })).status).toBe(405);
    const end = { method: 'DELETE', path: '/mcp', headers: { ...headers, 'mcp-session-id': own } };
    expect((await gateway.request(end)).status).toBe(204);
    expect((await gateway.call(own, 'ping')).status).toBe(404);
  });
});

describe('what is no request', () => {
  const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled' };

  test.each([
    { what: 'a claim alone', message: { ...cancelled, params: CLAIMING }, headers: {} },
    { what: 'claim and header', message: { ...cancelled, params: CLAIMING }, headers: NAMED },
    { what: 'the header alone', message: { ...cancelled, params: {} }, headers: NAMED },
    { what: 'the header, no params', message: cancelled, headers: NAMED },
  ])('§15 a notification with $what: 202 without a session', async ({ message, headers }) => {
    for (const options of [{}, { session }]) {
      const answer = await gateway.rpc(message, { ...options, headers });
      expect(answer.status).toBe(202);
      expect(answer.text).toBe('');
      expect(answer.headers['x-session-expires-at']).toBeUndefined();
    }
  });

  test('§7.2 a notification with neither: 400 missing_session_id, as ever', async () => {
    const { status, json } = await gateway.rpc(cancelled);
    expect(status).toBe(400);
    expect(json.error.data.reason).toBe('missing_session_id');
  });

  test.each([
    { what: 'a result', message: { jsonrpc: '2.0', id: 1, result: {} } },
    { what: 'an error', message: { jsonrpc: '2.0', id: 1, error: { code: 1, message: '' } } },
  ])('§7.1 $what with the header: 400 -32600, nothing was asked', async ({ message }) => {
    for (const options of [{}, { session }]) {
      const { status, json } = await gateway.rpc(message, { ...options, headers: NAMED });
      expect(status).toBe(400);
      expect(json).toMatchObject({ error: { code: -32600 }, id: null });
    }
  });

  test('§7.1 a batch of stateless requests: 400 -32600, id null', async () => {
    const { message, headers } = statelessRequest('tools/list');
    for (const batch of [[message], [message, message], []]) {
      const { status, json } = await gateway.rpc(batch, { headers });
      expect(status).toBe(400);
      expect(json).toMatchObject({ error: { code: -32600 }, id: null });
    }
  });
});
