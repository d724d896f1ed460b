// Every kind of answer of the stateless era against the published schema of its revision.
import { beforeAll, describe, expect, test } from 'vitest';
import type { Catalog } from '../../src/index.ts';
import { specCatalog } from '../support/catalogs/spec-catalog.ts';
import { askingCatalog } from '../support/catalogs/stateless-asking-catalog.ts';
import { loadMcpSchemas, type McpSchemas } from '../support/clients/mcp-schemas.ts';
import {
  ASKABLE,
  accepted,
  CLIENT_CAPABILITIES,
  eventsIn,
  PROTOCOL_VERSION,
  STATELESS,
  type StatelessOptions,
  stateless,
} from '../support/clients/stateless.ts';
import { startGateway } from '../support/gateway/gateway.ts';
import { useGateway } from '../support/gateway/use-gateway.ts';
import { INSTALLATION_MS, installConformance } from '../support/tools/conformance.ts';

let schemas: McpSchemas;

beforeAll(async () => {
  schemas = await loadMcpSchemas(await installConformance());
}, INSTALLATION_MS);

interface Row {
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly options?: StatelessOptions;
  /** The error expected; a result where there is none. */
  readonly code?: number;
}

const VERSION_1900 = {
  meta: { [PROTOCOL_VERSION]: '1900-01-01' },
  headers: { 'mcp-protocol-version': '1900-01-01' },
};

const CATALOGS: readonly { what: string; catalog: Catalog; rows: readonly Row[] }[] = [
  {
    what: 'the catalogue of the specification',
    catalog: specCatalog,
    rows: [
      { method: 'server/discover' },
      { method: 'tools/list' },
      { method: 'prompts/list' },
      { method: 'resources/list' },
      { method: 'resources/templates/list' },
      { method: 'resources/read', params: { uri: 'config://server' } },
      { method: 'resources/read', params: { uri: 'user://profile' } },
      { method: 'tools/call', params: { name: 'service_ping' } },
      { method: 'tools/call', params: { name: 'service_ping', arguments: { message: 1 } } },
      { method: 'prompts/get', params: { name: 'user-context' } },
      { method: 'nope', code: -32601 },
      { method: 'tools/call', params: { name: 'nope' }, code: -32602 },
      { method: 'resources/read', params: { uri: 'test://nope' }, code: -32602 },
      { method: 'tools/list', options: { meta: { [CLIENT_CAPABILITIES]: 1 } }, code: -32602 },
      { method: 'tools/list', options: { headers: { 'mcp-method': 'x' } }, code: -32020 },
      { method: 'tools/list', options: VERSION_1900, code: -32022 },
    ],
  },
  {
    what: 'a catalogue that asks',
    catalog: askingCatalog,
    rows: [
      { method: 'tools/call', params: { name: 'several' }, options: { meta: ASKABLE } },
      { method: 'prompts/get', params: { name: 'asks' }, options: { meta: ASKABLE } },
      { method: 'resources/read', params: { uri: 'test://asks' }, options: { meta: ASKABLE } },
      {
        method: 'tools/call',
        params: { name: 'once', inputResponses: { who: accepted({ name: 'Ada' }) } },
        options: { meta: ASKABLE },
      },
      { method: 'tools/call', params: { name: 'several' }, code: -32021 },
    ],
  },
];

describe.each(CATALOGS)('$what', ({ catalog, rows }) => {
  const gateway = useGateway({ deps: { catalog } });

  test.each(rows)('§4.4 $method of $params, $code', async ({ method, params, options, code }) => {
    const { json } = await stateless(gateway, method, params, options);
    expect(json.error?.code).toBe(code);
    const asked = code === -32601 ? 'tools/list' : method;
    expect(schemas.responseProblems(STATELESS, asked, json)).toEqual([]);
  });
});

test('§4.4 what is said before the answer fits, too', async () => {
  const gateway = await startGateway({ deps: { catalog: askingCatalog } });
  try {
    const { text } = await stateless(
      gateway,
      'tools/call',
      { name: 'talks' },
      {
        meta: { ...ASKABLE, progressToken: 1 },
        headers: { accept: 'application/json, text/event-stream' },
      },
    );
    const [progress, answer] = eventsIn(text);
    expect(schemas.messageProblems(STATELESS, progress)).toEqual([]);
    expect(schemas.responseProblems(STATELESS, 'tools/call', answer)).toEqual([]);
  } finally {
    await gateway.close();
  }
});
