// All that there is, as the gateway would list it: names, collisions and the lock included.
import { builtInCatalog } from '../../catalog/index.ts';
import { systemClock } from '../../core/clock.ts';
import type { GatewayFile } from '../../core/gateway-file/gateway-file.ts';
import { generateSecret } from '../../core/ids.ts';
import { noMetrics } from '../../core/metrics/metrics.ts';
import { createSeal } from '../../core/seal/seal.ts';
import type { Catalog, Context, Cursor, Page } from '../../features/mcp/catalog/catalog.ts';
import { LISTING_CONTEXT } from '../../features/mcp/catalog/listing-context.ts';
import type { RuledItem, Rules } from '../../features/rules/rules.ts';
import { createUpstreamCatalogs } from '../../features/upstreams/catalog/upstream-catalogs.ts';
import { createLock } from '../../features/upstreams/lock/lock.ts';
import type { InvokedProcess } from '../invocation.ts';
import { findLockPath, readLockFile } from '../lock/lock-file-on-disk.ts';
import { createStderrLog, openServers } from '../lock/open-servers.ts';
import { showSpinner } from '../spinner.ts';

/** Servers that cannot be reached, or that answer users only, are left out; the log says so. */
export async function listItems(
  path: string,
  file: GatewayFile,
  process: InvokedProcess,
): Promise<readonly RuledItem[]> {
  const log = createStderrLog(process);
  const found = new Map<string, RuledItem>();
  const rules: Rules = {
    needClient: false,
    prepareFor: async () => {},
    decide(item) {
      found.set(`${item.kind} ${item.name}`, item);
      return { kind: 'allowed' };
    },
  };
  const lockFile = readLockFile(findLockPath(path));
  const servers = await openServers(file, { env: process.env, log });
  const seal = createSeal([generateSecret()]);
  const catalogs = createUpstreamCatalogs(
    { file, rules, lock: lockFile && createLock(lockFile) },
    {
      builtIn: builtInCatalog,
      openUpstream: servers.openUpstream,
      relayCall: () => Promise.reject(new Error('Nothing is called here')),
      clientOf: () => undefined,
      store: {
        get: async () => undefined,
        getOrSet: async (_key, value) => value,
        set: async () => {},
        delete: async () => {},
      },
      getSeal: async () => seal,
      sessionKeyPrefix: '',
      sessionTtlSeconds: 60,
      clock: systemClock,
      log,
      metrics: noMetrics,
    },
  );
  const endSpinner = showSpinner('Asking', process);
  try {
    for (const list of listsOf(catalogs.all)) await readAll(list);
    return [...found.values()];
  } finally {
    endSpinner();
    await catalogs.close(0);
    await servers.close();
  }
}

type List = (cursor: Cursor, context: Context) => Promise<Page<object>>;

const listsOf = ({ offers, ...catalog }: Catalog): readonly List[] => [
  ...(offers.tools ? [catalog.listTools] : []),
  ...(offers.prompts ? [catalog.listPrompts] : []),
  ...(offers.resources ? [catalog.listResources, catalog.listResourceTemplates] : []),
];

async function readAll(list: List): Promise<void> {
  let cursor: Cursor;
  do cursor = (await list(cursor, LISTING_CONTEXT)).nextCursor;
  while (cursor !== undefined);
}
