// RFC 9110 §15.5.16: bodies that their callers compressed.
import { gzipSync } from 'node:zlib';
import { inject } from 'light-my-request';
import { describe, expect, test } from 'vitest';
import { INITIALIZE_REQUEST } from '../../support/gateway/gateway.ts';
import { useGateway } from '../../support/gateway/use-gateway.ts';
import { useShared } from '../../support/lifetimes.ts';
import { startBroker } from '../../support/oauth/broker.ts';

const gateway = useGateway();

test.each([
  ['gzip'],
  ['GZIP'],
  ['br'],
  ['zstd'],
  ['identity, gzip'],
  ['gzip,identity'],
  ['x-unknown'],
  ['identity;q=1'],
])('§4.4 Content-Encoding: %s is 415, and Accept-Encoding says what is allowed', async (coding) => {
  const headers = { 'content-encoding': coding };
  const { status, json, headers: said } = await gateway.rpc(INITIALIZE_REQUEST, { headers });
  expect(status).toBe(415);
  expect(said['accept-encoding']).toBe('identity');
  expect(json.error).toMatchObject({
    code: -32000,
    message: 'Unsupported Media Type',
    data: { details: expect.stringContaining('Content-Encoding') },
  });
});

test.each([['identity'], ['IDENTITY'], ['identity, identity'], ['']])(
  '§4.4 Content-Encoding: "%s" says that nothing was done to the body, which is read',
  async (coding) => {
    const headers = { 'content-encoding': coding };
    expect((await gateway.rpc(INITIALIZE_REQUEST, { headers })).status).toBe(200);
  },
);

test('§4.4 a body that is compressed indeed: 415, not the words for broken text', async () => {
  const answer = await inject(gateway.gateway.handler, {
    method: 'POST',
    url: '/mcp',
    headers: {
      host: new URL(gateway.baseUrl).host,
      authorization: `Bearer ${await gateway.issuer.sign()}`,
      'content-type': 'application/json',
      'content-encoding': 'gzip',
    },
    payload: gzipSync(JSON.stringify(INITIALIZE_REQUEST)),
  });
  expect(answer.statusCode).toBe(415);
  expect(answer.headers['accept-encoding']).toBe('identity');
});

test('§11 without a token a compressed body is 401, and of another media type it is that', async () => {
  const headers = { 'content-encoding': 'gzip' };
  const refused = await gateway.request({ method: 'POST', path: '/mcp', body: {}, headers });
  expect(refused.status).toBe(401);
  const other = await gateway.rpc('{}', { headers: { ...headers, 'content-type': 'text/plain' } });
  expect(other.status).toBe(415);
  expect(other.headers['accept-encoding']).toBeUndefined();
});

describe('in the form of each endpoint that reads a body', () => {
  const broker = useShared(startBroker);

  test.each([
    { path: '/oauth/token', error: 'invalid_request' },
    { path: '/oauth/revoke', error: 'invalid_request' },
    { path: '/oauth/register', error: 'invalid_client_metadata', isJson: true },
    { path: '/oauth/backchannel-logout', error: 'invalid_request' },
    { path: '/oauth/consent', error: 'invalid_request' },
    { path: '/account', error: 'invalid_request' },
  ])('§7.3 $path: 415, $error', async ({ path, error, isJson = false }) => {
    const { status, json, headers } = await broker.gateway.request({
      method: 'POST',
      path,
      body: isJson ? {} : new URLSearchParams({ a: 'b' }),
      headers: { 'content-encoding': 'Deflate', origin: broker.gateway.baseUrl },
    });
    expect(status).toBe(415);
    expect(json).toEqual({ error, error_description: expect.stringContaining('Content-Encoding') });
    expect(headers['accept-encoding']).toBe('identity');
  });
});
