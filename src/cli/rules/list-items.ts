// All that there is, as the gateway would list it: names, collisions and the lock included.
import { builtInCatalog } from '../../catalog/index.ts';
import type { GatewayFile } from '../../gateway/configuration/gateway-file.ts';
import type { Cursor } from '../../mcp/catalog/catalog.ts';
import { LISTING_CONTEXT } from '../../mcp/catalog/list-tools.ts';
import { type ServedCatalog, serveOwnCatalog } from '../../mcp/catalog/served-catalog.ts';
import { systemClock } from '../../platform/clock.ts';
import { generateSecret } from '../../platform/ids.ts';
import { joinPolicies, type Policy } from '../../policy/policy.ts';
import { createRules } from '../../policy/rules/create-rules.ts';
import type { RuledItem } from '../../policy/rules/rules.ts';
import { ALL_KINDS, type ListKind } from '../../protocol/list-kinds.ts';
import { createSeal } from '../../store/seal/seal.ts';
import { noMetrics } from '../../telemetry/metrics/metrics.ts';
import { createUpstreamCatalogs } from '../../upstreams/catalog/upstream-catalogs.ts';
import { createLock, createLockPolicy } from '../../upstreams/lock/lock.ts';
import type { InvokedProcess } from '../command/invocation.ts';
import { showSpinner } from '../command/spinner.ts';
import { findLockPath, readLockFile } from '../setup/lock-file-on-disk.ts';
import { createStderrLog, openServers } from '../setup/open-servers.ts';

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
    {
      setup: { file, lock },
      // What they say of each item is asked apart.
      rules: await createRules([], { clock: systemClock }),
      policies: joinPolicies([...lockPolicies, noteItems]),
    },
    {
      builtIn: serveOwnCatalog(builtInCatalog),
      openUpstream: servers.openUpstream,
      relayCall: () => Promise.reject(new Error('Nothing is called here')),
      store: {
        get: async () => undefined,
        getOrSet: async (_key, value) => value,
        compareAndSet: async () => true,
        getAndDelete: async () => undefined,
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
