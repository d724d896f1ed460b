// A gateway with servers behind it, as a configuration file would put them there.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Clock, systemClock } from '../../../src/core/clock.ts';
import type { GatewayFile, UpstreamConfig } from '../../../src/core/gateway-file/gateway-file.ts';
import { noMetrics } from '../../../src/core/metrics/metrics.ts';
import { createPrometheusMetrics } from '../../../src/core/metrics/prometheus.ts';
import { createSeal } from '../../../src/core/seal/seal.ts';
import { openEmbeddedStore } from '../../../src/core/store/embedded/open.ts';
import type { Catalog } from '../../../src/features/mcp/catalog/catalog.ts';
import { createRules } from '../../../src/features/rules/create-rules.ts';
import {
  createUpstreamCatalogs,
  type UpstreamCatalogs,
} from '../../../src/features/upstreams/catalog/upstream-catalogs.ts';
import { createHttpUpstream } from '../../../src/features/upstreams/http/http-upstream.ts';
import type { Lock } from '../../../src/features/upstreams/lock/lock.ts';
import { createRelayCall } from '../../../src/features/upstreams/relay/relay-call.ts';
import { createSuspendedCalls } from '../../../src/features/upstreams/relay/suspended/suspended-calls.ts';
import { createLocalCatalog } from '../../../src/index.ts';
import { startGateway, type TestGateway } from '../gateway/gateway.ts';
import { collectLog, type LogLine } from '../gateway/log.ts';
import { closeAfterTest } from '../lifetimes.ts';
import { readFile } from './gateway-file.ts';

export interface CatalogGateway extends TestGateway {
  readonly catalogs: UpstreamCatalogs;
  /** Lines of what stands behind the gateway. */
  readonly lines: readonly LogLine[];
  reload(file: object, lock?: Lock): Promise<void>;
  /** The members of a list as a client gets them in a session, all pages. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into items of every shape
  list(method: string, session?: string, token?: string): Promise<readonly any[]>;
  /** Names, or URIs, of what is listed. */
  listNames(method: string, session?: string, token?: string): Promise<readonly string[]>;
}

export interface CatalogGatewayOptions {
  /** As the configuration file has it; a text in place of a server is its URL. */
  readonly file: object;
  /** Serves `/mcp/<view>` at `/mcp`. */
  readonly view?: string;
  readonly builtIn?: Catalog;
  readonly lock?: Lock;
  readonly clock?: Clock;
  readonly env?: Readonly<Record<string, string>>;
  readonly maxUsers?: number;
}

const EMPTY = createLocalCatalog({});
const KEY_PREFIX = 'mcp:session:';

export async function startCatalogGateway(options: CatalogGatewayOptions): Promise<CatalogGateway> {
  const { view, builtIn = EMPTY, lock, clock = systemClock, env, maxUsers } = options;
  const { log, lines } = collectLog();
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-catalog-'));
  const store = await openEmbeddedStore({ dataDir, sessionKeyPrefix: KEY_PREFIX, clock, log });
  const seal = createSeal(['a secret of more than thirty-two characters']);
  const getSeal = async () => seal;
  const metrics = createPrometheusMetrics();
  const suspendedCalls = createSuspendedCalls({
    store,
    getSeal,
    clock,
    log,
    metrics: noMetrics,
    keyPrefix: KEY_PREFIX,
  });

  const toSetup = async (content: object, withLock: Lock | undefined) => {
    const file = await parseServers(content);
    const rules = file.rules.length > 0 ? await createRules(file.rules, { clock }) : undefined;
    return { file, rules, lock: withLock };
  };
  const openUpstream = (config: UpstreamConfig) => {
    if (config.kind !== 'http') throw new Error('these tests have HTTP servers only');
    return createHttpUpstream(config, {
      clock,
      log,
      store,
      getSeal,
      getHeaders: async ({ user }) => (user === undefined ? {} : { 'x-user': user.sub }),
      maxBytes: 64_000_000,
      outbound: { httpProxy: undefined, httpsProxy: undefined, noProxy: [] },
      sessionKeyPrefix: KEY_PREFIX,
      sessionTtlSeconds: 3600,
    });
  };
  const catalogs = createUpstreamCatalogs(await toSetup(options.file, lock), {
    builtIn,
    openUpstream,
    relayCall: createRelayCall({ clock, log, suspendedCalls }),
    clientOf: () => undefined,
    store,
    getSeal,
    sessionKeyPrefix: KEY_PREFIX,
    sessionTtlSeconds: 3600,
    clock,
    log,
    metrics,
    ...(maxUsers !== undefined && { maxUsers }),
  });
  const catalog = view === undefined ? catalogs.all : catalogs.findServer(view);
  if (catalog === undefined) throw new Error(`There is no server ${view}.`);
  const gateway = await startGateway({
    ...(env && { env }),
    deps: { catalog, clock, metrics },
  });

  async function list(method: string, session?: string, token?: string) {
    const withToken = token === undefined ? {} : { token };
    const id = session ?? (await gateway.open(withToken));
    const items: unknown[] = [];
    let cursor: string | undefined;
    do {
      const params = cursor === undefined ? {} : { cursor };
      const message = { jsonrpc: '2.0', id: 1, method, params };
      const { json } = await gateway.rpc(message, { session: id, ...withToken });
      const { nextCursor, ...members } = json.result;
      items.push(...Object.values(members).flat());
      cursor = nextCursor;
    } while (cursor !== undefined);
    // biome-ignore lint/suspicious/noExplicitAny: tests look into items of every shape
    return items as any[];
  }

  return {
    ...gateway,
    catalogs,
    lines,
    list,
    listNames: async (method, session, token) =>
      (await list(method, session, token)).map(
        ({ uriTemplate, uri, name }) => uriTemplate ?? uri ?? name,
      ),
    reload: async (file, newLock) => catalogs.reload(await toSetup(file, newLock)),
    async close() {
      await gateway.close();
      await suspendedCalls.close();
      await catalogs.close(0);
      await store.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** Closed once the test has ended. */
export const startForTest = async (options: CatalogGatewayOptions): Promise<CatalogGateway> =>
  closeAfterTest(await startCatalogGateway(options));

/** Each server may be its URL alone. */
async function parseServers(content: object): Promise<GatewayFile> {
  const { mcpServers, ...rest } = content as { mcpServers: Record<string, unknown> };
  const servers = Object.entries(mcpServers).map(([name, server]) => [
    name,
    typeof server === 'string' ? { url: server } : server,
  ]);
  return readFile({ mcpServers: Object.fromEntries(servers), ...rest }, { hasStateSecret: true });
}
