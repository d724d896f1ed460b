// All that there is, as the gateway would list it: names, collisions and the lock included.
import { builtInCatalog } from '../../catalog/index.ts';
import { systemClock } from '../../core/clock.ts';
import type { GatewayFile } from '../../core/gateway-file/gateway-file.ts';
import { generateSecret } from '../../core/ids.ts';
import { noMetrics } from '../../core/metrics/metrics.ts';
import { createSeal } from '../../core/seal/seal.ts';
import type { Cursor } from '../../features/mcp/catalog/catalog.ts';
import { LISTING_CONTEXT } from '../../features/mcp/catalog/listing-context.ts';
import { serveOwnCatalog } from '../../features/mcp/catalog/own-catalog.ts';
import type { ServedCatalog } from '../../features/mcp/catalog/served-catalog.ts';
import { joinPolicies, type Policy } from '../../features/policy/policy.ts';
import type { RuledItem } from '../../features/rules/rules.ts';
import { createUpstreamCatalogs } from '../../features/upstreams/catalog/upstream-catalogs.ts';
import { createLock } from '../../features/upstreams/lock/lock.ts';
import { createLockPolicy } from '../../features/upstreams/lock/lock-policy.ts';
import { ALL_KINDS, type ListKind } from '../../protocol/list-kinds.ts';
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
  const noteItems: Policy = {
    judge({ kind, name, server, annotations }, _caller, args) {
      found.set(`${kind} ${name}`, { kind, name, server, annotations, args });
      return { kind: 'allowed' };
    },
  };
  const lockFile = readLockFile(findLockPath(path));
  const lock = lockFile && createLock(lockFile);
  const lockPolicies = lock === undefined ? [] : [createLockPolicy(lock, noMetrics)];
  const servers = await openServers(file, { env: process.env, log });
  const seal = createSeal([generateSecret()]);
  const catalogs = createUpstreamCatalogs(
    { file, policies: joinPolicies([...lockPolicies, noteItems]), lock },
    {
      builtIn: serveOwnCatalog(builtInCatalog),
      openUpstream: servers.openUpstream,
      relayCall: () => Promise.reject(new Error('Nothing is called here')),
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
    for (const kind of ALL_KINDS) await readAll(catalogs.all, kind);
    return [...found.values()];
  } finally {
    endSpinner();
    await catalogs.close(0);
    await servers.close();
  }
}

async function readAll({ list }: ServedCatalog, kind: ListKind): Promise<void> {
  let cursor: Cursor;
  do cursor = (await list(kind, cursor, LISTING_CONTEXT)).nextCursor;
  while (cursor !== undefined);
}
