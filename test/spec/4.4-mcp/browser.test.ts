// A person who opens the address of an MCP endpoint in a browser sees what it is, and programs see no difference.
import { describe, expect, test } from 'vitest';
import { useGateway } from '../../support/gateway/use-gateway.ts';

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

describe.each([
  ['by default', {}, 401],
  ['with streams', { MCP_STREAMS: 'true' }, 401],
  ['without authentication', { AUTH_REQUIRED: 'false' }, 405],
  ['without authentication, with streams', { AUTH_REQUIRED: 'false', MCP_STREAMS: 'true' }, 400],
])('%s', (_title, env, status) => {
  const gateway = useGateway({ env });
  const get = (headers: Readonly<Record<string, string>>, method = 'GET') =>
    gateway.request({ method, path: '/mcp', headers });

  test('§4.4 GET /mcp: a browser is shown the front page, with the status of the error', async () => {
    const page = await get({ accept: BROWSER });
    const program = await get({ accept: '*/*' });
    expect([page.status, program.status]).toEqual([status, status]);
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(page.headers['cache-control']).toBe('no-store');
    expect(page.headers.vary).toContain('Accept');
    expect(page.headers['www-authenticate']).toBe(program.headers['www-authenticate']);
    expect(page.headers.allow).toBe(program.headers.allow);
    expect(page.text).toContain('how AI clients connect to it');
    expect(page.headers['content-security-policy']).toContain("script-src 'self' 'sha256-");
  });

  test.each([
    ['any type', { accept: '*/*' }],
    ['JSON', { accept: 'application/json' }],
    ['JSON and an event stream', { accept: 'application/json, text/event-stream' }],
    ['an event stream beside HTML', { accept: 'text/html, text/event-stream' }],
    ['no type', {}],
    ['HTML, with a token', { accept: BROWSER, authorization: 'Bearer a.b.c' }],
    ['HTML, with a session', { accept: BROWSER, 'mcp-session-id': crypto.randomUUID() }],
  ])('§4.4 GET /mcp: a program that accepts %s gets JSON', async (_what, headers) => {
    const { json, headers: answered } = await get(headers);
    expect(answered['content-type']).toBe('application/json');
    expect(json).toMatchObject({ jsonrpc: '2.0', id: null });
  });

  test('§4.4 POST /mcp: whoever posts gets JSON', async () => {
    const { headers } = await get({ accept: BROWSER }, 'POST');
    expect(headers['content-type']).toBe('application/json');
  });
});

describe('limits', () => {
  const gateway = useGateway({ env: { MCP_STREAMS: 'true', MCP_RATE_LIMIT_MAX: '1' } });

  test('§7.2 GET /mcp: what a limit refuses is JSON for browsers, too', async () => {
    const headers = { accept: BROWSER };
    await gateway.request({ path: '/mcp', headers });
    const { status, json } = await gateway.request({ path: '/mcp', headers });
    expect([status, json.error.data.reason]).toEqual([429, 'rate_limit_exceeded']);
  });
});
