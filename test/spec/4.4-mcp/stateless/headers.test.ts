// MCP 2026-07-28 "Request Metadata": Mcp-Method and Mcp-Name say the same as the body.
import { describe, expect, test } from 'vitest';
import {
  createLocalCatalog,
  definePrompt,
  defineResource,
  defineTool,
} from '../../../../src/index.ts';
import {
  encoded,
  type StatelessOptions,
  stateless,
  statelessRequest,
} from '../../../support/clients/stateless.ts';
import { sendRaw, statusesOf } from '../../../support/gateway/raw-http.ts';
import { useGateway } from '../../../support/gateway/use-gateway.ts';

const resource = (uri: string) =>
  defineResource({
    uri,
    name: uri,
    description: '',
    mimeType: 'text/plain',
    read: () => ({ text: uri }),
  });

const catalog = createLocalCatalog({
  tools: [
    defineTool({
      name: 'tool',
      description: '',
      inputSchema: { type: 'object' },
      run: () => ({ content: [] }),
    }),
  ],
  prompts: [
    definePrompt({
      name: 'prompt with spaces',
      description: '',
      arguments: [],
      get: () => ({ messages: [] }),
    }),
  ],
  resources: [
    resource('test://plain'),
    resource('test://tschüß'),
    resource(' test://padded '),
    resource('=?base64?dGVzdA==?='),
    resource('\uFFFD'),
  ],
});

const gateway = useGateway({ deps: { catalog } });

const named = (method: string, params: Record<string, unknown>, header: string | undefined) =>
  stateless(gateway, method, params, { id: 'mine', headers: { 'mcp-name': header } });
const read = (uri: string, header: string | undefined) => named('resources/read', { uri }, header);

/** The same over a socket, where HTTP's own parser has read the headers. */
async function statusOf(message: object, headers: Record<string, string>, further: string[] = []) {
  const body = JSON.stringify(message);
  const all = {
    Host: new URL(gateway.baseUrl).host,
    Authorization: `Bearer ${await gateway.issuer.sign()}`,
    'Content-Type': 'application/json',
    'Content-Length': String(Buffer.byteLength(body)),
    Connection: 'close',
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  const head = ['POST /mcp HTTP/1.1', ...lines, ...further].join('\r\n');
  return statusesOf(await sendRaw(await gateway.listen(), `${head}\r\n\r\n${body}`));
}

describe('Mcp-Method', () => {
  test.each([
    { what: 'missing', header: undefined },
    { what: 'empty', header: '' },
    { what: 'another', header: 'prompts/list' },
    { what: 'in another case', header: 'Tools/List' },
    { what: 'longer', header: 'tools/list/' },
    { what: 'in base64', header: encoded('tools/list') },
  ])('§7.1 $what: 400 -32020', async ({ header }) => {
    const options: StatelessOptions = { id: 'mine', headers: { 'mcp-method': header } };
    const { status, json } = await stateless(gateway, 'tools/list', {}, options);
    expect(status).toBe(400);
    expect(json).toMatchObject({ error: { code: -32020 }, id: 'mine' });
    expect(json.error.data.details).toContain('Mcp-Method');
  });

  test('§7.1 it is checked for methods that are unknown, too', async () => {
    const { status, json } = await stateless(
      gateway,
      'nope',
      {},
      { headers: { 'mcp-method': 'tools/list' } },
    );
    expect(status).toBe(400);
    expect(json.error.code).toBe(-32020);
  });
});

describe('Mcp-Name', () => {
  const calls = [
    { method: 'tools/call', params: { name: 'tool' }, other: 'prompt with spaces' },
    { method: 'prompts/get', params: { name: 'prompt with spaces' }, other: 'tool' },
    { method: 'resources/read', params: { uri: 'test://plain' }, other: 'test://padded' },
  ];

  test.each(calls)('§7.1 $method without it, or with another: 400 -32020', async (call) => {
    const said = Object.values(call.params)[0] ?? '';
    const wrong = [undefined, '', call.other, said.toUpperCase(), `${said}x`, encoded(call.other)];
    for (const header of wrong) {
      const { status, json } = await named(call.method, call.params, header);
      expect(status).toBe(400);
      expect(json).toMatchObject({ error: { code: -32020 }, id: 'mine' });
      expect(json.error.data.details).toContain('Mcp-Name');
    }
  });

  test.each(calls)('§15 $method: plain and in base64 it is taken', async ({ method, params }) => {
    const said = Object.values(params)[0] ?? '';
    for (const header of [said, encoded(said)]) {
      expect((await named(method, params, header)).status).toBe(200);
    }
  });

  test.each(['server/discover', 'tools/list', 'prompts/list', 'resources/list'])(
    '§15 %s has none, and one that is sent is not looked at',
    async (method) => {
      expect((await named(method, {}, undefined)).status).toBe(200);
      expect((await named(method, {}, 'anything')).status).toBe(200);
    },
  );

  test.each(['test://tschüß', ' test://padded ', '=?base64?dGVzdA==?=', '\uFFFD'])(
    '§15 "%s" comes in base64',
    async (uri) => {
      const { status, json } = await read(uri, encoded(uri));
      expect(status).toBe(200);
      expect(json.result.contents[0].text).toBe(uri);
    },
  );

  test.each([
    { what: 'lacking its padding', header: '=?base64?dGVzdDovL3BsYWk?=', uri: 'test://plai' },
    {
      what: 'with padding too many',
      header: '=?base64?dGVzdDovL3BsYWlu====?=',
      uri: 'test://plain',
    },
    { what: 'with stray bits', header: '=?base64?dGVzdDovL3BsYWl=?=', uri: 'test://plai' },
    { what: 'with a space', header: '=?base64?dGVz dDovL3BsYWlu?=', uri: 'test://plain' },
    { what: 'of the URL alphabet', header: '=?base64?77-9?=', uri: '\uFFFD' },
    { what: 'that is no UTF-8', header: '=?base64?/w==?=', uri: '\uFFFD' },
    {
      what: 'with markers in capitals',
      header: '=?BASE64?dGVzdDovL3BsYWlu?=',
      uri: 'test://plain',
    },
    { what: 'without its end', header: '=?base64?dGVzdDovL3BsYWlu', uri: 'test://plain' },
    {
      what: 'that says the sentinel itself',
      header: '=?base64?dGVzdA==?=',
      uri: '=?base64?dGVzdA==?=',
    },
    { what: 'and nothing in it', header: '=?base64??=', uri: 'test://plain' },
  ])('§7.1 base64 $what: 400 -32020', async ({ header, uri }) => {
    const { status, json } = await read(uri, header);
    expect(status).toBe(400);
    expect(json.error.code).toBe(-32020);
  });

  test('§7.1 bytes beyond ASCII are no value, not even the right ones: 400', async () => {
    const { message, headers } = statelessRequest('resources/read', { uri: 'test://tschüß' });
    const raw = Buffer.from('test://tschüß').toString('latin1');
    expect(await statusOf(message, headers)).toEqual([200]);
    expect(await statusOf(message, { ...headers, 'mcp-name': raw })).toEqual([400]);
    expect(await statusOf(message, { ...headers, 'mcp-name': 'test://tschüß' })).toEqual([400]);
  });

  test('§15 white space around a value is HTTP’s, not the value’s', async () => {
    const { message, headers } = statelessRequest('resources/read', { uri: 'test://plain' });
    const spaced = {
      ...headers,
      'mcp-name': ' \t test://plain \t ',
      'mcp-method': ' resources/read ',
    };
    expect(await statusOf(message, spaced)).toEqual([200]);
    const padded = statelessRequest('resources/read', { uri: ' test://padded ' });
    expect(await statusOf(padded.message, padded.headers)).toEqual([200]);
    const plain = { ...padded.headers, 'mcp-name': ' test://padded ' };
    expect(await statusOf(padded.message, plain)).toEqual([400]);
  });

  test.each([
    'Mcp-Name: test://plain',
    'Mcp-Method: resources/read',
    'MCP-Protocol-Version: 2026-07-28',
  ])('§7.1 given twice: 400 (%s)', async (line) => {
    const { message, headers } = statelessRequest('resources/read', { uri: 'test://plain' });
    expect(await statusOf(message, headers)).toEqual([200]);
    expect(await statusOf(message, headers, [line])).toEqual([400]);
  });

  test.each([
    { method: 'tools/call', params: {} },
    { method: 'tools/call', params: { name: 5 } },
    { method: 'prompts/get', params: { name: null } },
    { method: 'resources/read', params: { uri: {} } },
  ])('§7.1 $method with $params: -32602 without it, -32020 with it', async ({ method, params }) => {
    const without = await named(method, params, undefined);
    expect(without.status).toBe(200);
    expect(without.json).toMatchObject({ error: { code: -32602 }, id: 'mine' });
    for (const header of ['5', 'null', '', '[object Object]']) {
      const { status, json } = await named(method, params, header);
      expect(status).toBe(400);
      expect(json.error.code).toBe(-32020);
    }
  });
});
