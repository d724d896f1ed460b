// MCP 2026-07-28 "_meta" and "Versioning": what each request says of itself.
import { describe, expect, test } from 'vitest';
import {
  CLIENT_CAPABILITIES,
  CLIENT_INFO,
  PROTOCOL_VERSION,
  STATELESS,
  type StatelessOptions,
  stateless,
} from '../../../support/clients/stateless.ts';
import { useGateway } from '../../../support/gateway/use-gateway.ts';

const gateway = useGateway();

const list = (options: StatelessOptions) => stateless(gateway, 'tools/list', {}, options);

describe('members of _meta', () => {
  test.each([
    { what: 'missing', capabilities: undefined },
    { what: 'null', capabilities: null },
    { what: 'an array', capabilities: [] },
    { what: 'a string', capabilities: 'elicitation' },
    { what: 'true', capabilities: true },
  ])('§7.1 clientCapabilities $what: 400 -32602 that names it', async ({ capabilities }) => {
    const meta = { [CLIENT_CAPABILITIES]: capabilities };
    const { status, json } = await list({ id: 'mine', meta });
    expect(status).toBe(400);
    expect(json).toMatchObject({ error: { code: -32602, message: 'Invalid params' }, id: 'mine' });
    expect(json.error.data.details).toContain(CLIENT_CAPABILITIES);
  });

  test.each([
    { what: 'missing', meta: { [CLIENT_INFO]: undefined } },
    { what: 'of another shape', meta: { [CLIENT_INFO]: 'somebody' } },
    { what: 'beside members that nobody knows', meta: { 'example.com/own': { a: 1 } } },
    {
      what: 'beside capabilities that nobody knows',
      meta: { [CLIENT_CAPABILITIES]: { extensions: { 'example.com/x': {} }, later: 1 } },
    },
  ])('§15 clientInfo $what: 200', async ({ meta }) => {
    const { status, json } = await list({ meta });
    expect(status).toBe(200);
    expect(json.result.resultType).toBe('complete');
  });

  test.each([{ id: 0 }, { id: '' }, { id: 'é\u0000' }, { id: -1.5 }])(
    '§15 the id $id comes back unchanged, with results and errors',
    async ({ id }) => {
      expect((await list({ id })).json.id).toBe(id);
      expect((await list({ id, meta: { [CLIENT_CAPABILITIES]: 1 } })).json.id).toBe(id);
      expect((await list({ id, headers: { 'mcp-method': 'x' } })).json.id).toBe(id);
      expect((await stateless(gateway, 'nope', {}, { id })).json.id).toBe(id);
      const unknown = await stateless(gateway, 'tools/call', { name: 'nope' }, { id });
      expect(unknown.json.id).toBe(id);
    },
  );
});

describe('the version that a request claims', () => {
  const claiming = (version: string, headers: StatelessOptions['headers'] = {}) =>
    list({
      id: 'mine',
      meta: { [PROTOCOL_VERSION]: version },
      headers: { 'mcp-protocol-version': version, ...headers },
    });

  test.each([
    { version: '2027-01-01' },
    { version: '1900-01-01' },
    { version: 'nonsense' },
    { version: 'constructor' },
    { version: '0.1.0' },
    { version: '2025-11-25' },
    { version: '2025-06-18' },
    { version: '2024-11-05' },
  ])('§7.1 $version: 400 -32022 with what is supported', async ({ version }) => {
    const { json: discovered } = await stateless(gateway, 'server/discover');
    const { status, json } = await claiming(version);
    expect(status).toBe(400);
    expect(json).toMatchObject({
      error: {
        code: -32022,
        message: 'Unsupported protocol version',
        data: { requested: version },
      },
      id: 'mine',
    });
    const { supported } = json.error.data;
    expect(supported).toContain(STATELESS);
    // Or its client would try the same once more.
    expect(supported).not.toContain(version);
    expect(discovered.result.supportedVersions).toEqual(expect.arrayContaining(supported));
  });

  test('§7.1 whoever claims a version of sessions hears of versions that are claimed, only', async () => {
    const { json } = await claiming('2025-11-25');
    expect(json.error.data.supported).toEqual([STATELESS]);
    expect(json.error.data.details).toContain('initialize');
  });

  test('§7.1 the version is told before anything else of a message of another revision', async () => {
    const { json } = await list({
      meta: { [PROTOCOL_VERSION]: '2027-01-01', [CLIENT_CAPABILITIES]: undefined },
      headers: { 'mcp-protocol-version': '2027-01-01', 'mcp-method': undefined },
    });
    expect(json.error.code).toBe(-32022);
    const unknown = await stateless(
      gateway,
      'later/method',
      {},
      {
        meta: { [PROTOCOL_VERSION]: '2027-01-01' },
        headers: { 'mcp-protocol-version': '2027-01-01' },
      },
    );
    expect(unknown.json.error.code).toBe(-32022);
  });

  test.each([
    { what: 'missing', header: undefined, claim: STATELESS },
    { what: 'empty', header: '', claim: STATELESS },
    { what: 'of the session era', header: '2025-11-25', claim: STATELESS },
    { what: 'unknown', header: '2027-01-01', claim: STATELESS },
    { what: 'longer', header: `${STATELESS}-rc`, claim: STATELESS },
    { what: 'given twice', header: `${STATELESS}, ${STATELESS}`, claim: STATELESS },
    { what: 'the only one that is known', header: STATELESS, claim: '2027-01-01' },
    { what: 'the newer one', header: STATELESS, claim: '2025-11-25' },
  ])('§7.1 MCP-Protocol-Version $what: 400 -32020', async ({ header, claim }) => {
    const { status, json } = await claiming(claim, { 'mcp-protocol-version': header });
    expect(status).toBe(400);
    expect(json).toMatchObject({ error: { code: -32020 }, id: 'mine' });
    expect(json.error.data.details).toContain('MCP-Protocol-Version');
  });
});
