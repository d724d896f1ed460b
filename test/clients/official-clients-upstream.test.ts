// Every official client in every era, logged in for real, and the same steps for each: all of it stands on a server behind the
// gateway, of the client's era or the other. That server is a Postern of its own, which knows the user by the token that
// the gateway makes for it.
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { createGateway } from '../../src/gateway/gateway.ts';
import {
  createClientTestCatalog,
  TODAY,
  TOMORROW,
} from '../support/catalogs/client-test-catalog.ts';
import type { OfficialClient } from '../support/clients/official-client.ts';
import { CLIENT_STEPS } from '../support/clients/official-client-steps.ts';
import { OFFICIAL_CLIENTS } from '../support/clients/official-clients.ts';
import { freePort } from '../support/gateway/ports.ts';
import { startService } from '../support/gateway/service.ts';
import { useShared } from '../support/lifetimes.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { readFile } from '../support/upstreams/gateway-file.ts';
import { hideStatelessEra } from '../support/upstreams/one-era.ts';

/** On a busy machine; nothing here asserts by the clock. */
const PATIENT = { timeout: 20_000 } as const;

const SERVERS = ['both eras', 'sessions only'] as const;

const own = createClientTestCatalog();
const fronts = Object.fromEntries(
  SERVERS.map((server) => [server, useShared(() => startFront(server))]),
);
const clients = new Map<string, OfficialClient>();

async function startFront(server: (typeof SERVERS)[number]) {
  const port = await freePort();
  const innerUrl = `http://127.0.0.1:${port}/mcp`;
  const proxy = server === 'both eras' ? undefined : await hideStatelessEra(innerUrl);
  const url = proxy?.url ?? innerUrl;
  const behind = { url, prefix: '', auth: { type: 'identity' }, required: true };
  const file = await readFile({ builtIn: false, mcpServers: { behind } });
  const front = await startService({
    mode: 'broker',
    deps: { file },
    env: { MCP_STREAMS: 'true' },
  });
  const folder = await createTemporaryFolder();
  const inner = await createGateway(
    loadConfig({
      HOST: '127.0.0.1',
      PORT: String(port),
      BASE_URL: `http://127.0.0.1:${port}`,
      OIDC_ISSUER: front.baseUrl,
      OIDC_JWKS_URL: `${front.baseUrl}/.well-known/jwks.json`,
      OIDC_AUDIENCE: url,
      DATA_DIR: folder.path,
      MCP_STREAMS: 'true',
      MCP_RATE_LIMIT_MAX: '100000',
      LOG_LEVEL: 'error',
    }),
    { catalog: own.catalog },
  );
  await inner.listen();
  // It found nobody there before.
  await vi.waitFor(async () => {
    expect((await fetch(`${front.baseUrl}/health/ready`)).status).toBe(200);
  }, PATIENT);
  return {
    mcpUrl: front.mcpUrl,
    async close() {
      await front.close();
      await inner.close();
      await proxy?.close();
      await folder.close();
    },
  };
}

const rows = SERVERS.flatMap((server) =>
  OFFICIAL_CLIENTS.map((row) => ({ server, row, key: `${server}, ${row.title}` })),
);

beforeAll(async () => {
  for (const { key, server, row } of rows) {
    const url = fronts[server]?.mcpUrl;
    if (url === undefined) continue;
    const client = await row.connect(url);
    clients.set(key, client);
    // A user's first list does not wait long for a server on a busy machine.
    await vi.waitFor(async () => expect((await client.listTools()).tools).not.toEqual([]), PATIENT);
  }
});
afterAll(async () => {
  for (const client of clients.values()) await client.close();
});

const steps = rows.flatMap(({ server, row, key }) =>
  CLIENT_STEPS.map(([step, take]) => ({ server, client: row.title, step, row, take, key })),
);

test.for(steps)(
  '§18.3 a server of $server, official client $client: $step',
  async ({ key, row, take }) => {
    const client = clients.get(key);
    if (client === undefined) throw new Error(`There is no client for ${key}.`);
    await take(client, row, own);
  },
);

test.for(rows)(
  '§18.3 a server of $server, official client $row.title: hears of changes of the resource that it subscribed to',
  async ({ key }) => {
    const client = clients.get(key);
    if (client === undefined) throw new Error(`There is no client for ${key}.`);
    await client.watch(TODAY);
    // The streams on the way are opened meanwhile: what changes before they are is told to nobody.
    await expect
      .poll(() => {
        own.change(TOMORROW);
        own.change(TODAY);
        return client.updated[0];
      }, PATIENT)
      .toBe(TODAY);
    expect(new Set(client.updated)).toEqual(new Set([TODAY]));
  },
);
