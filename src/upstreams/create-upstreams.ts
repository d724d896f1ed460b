// A part of the composition root: the servers behind the gateway, by the configuration file.

import type { ProviderMetadata } from '../auth/provider-metadata.ts';
import type { Config } from '../config/config.ts';
import type { GatewayFile, UpstreamConfig } from '../config/file/gateway-file.ts';
import type { Endpoint } from '../endpoint/endpoint.ts';
import { GatewayError } from '../errors/gateway-error.ts';
import { LISTING_CONTEXT } from '../mcp/catalog/list-tools.ts';
import type { OwnCatalog } from '../mcp/catalog/served-catalog.ts';
import type { Clock } from '../platform/clock.ts';
import type { Fetch } from '../platform/fetch-with-limits.ts';
import type { Log } from '../platform/log.ts';
import { createWorkQueue } from '../platform/work-queue.ts';
import { joinPolicies } from '../policy/policy.ts';
import { createRules } from '../policy/rules/create-rules.ts';
import type { Rules } from '../policy/rules/rules.ts';
import { createRulesPolicy } from '../policy/rules/rules-policy.ts';
import type { Seal } from '../store/seal/seal.ts';
import type { Store } from '../store/store.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import type { Tracing } from '../telemetry/tracing/tracing.ts';
import type { AccessPreview, PreviewOptions } from './catalog/tools-for-operators.ts';
import {
  type CatalogSetup,
  createUpstreamCatalogs,
  type ServerFacts,
  type UpstreamCatalogs,
} from './catalog/upstream-catalogs.ts';
import { createIdentityEndpoints } from './credentials/endpoints.ts';
import { createLockPolicy, type Lock } from './lock/lock.ts';
import type { StoredLock } from './lock/lock-file.ts';
import { createUpstreamOpener } from './open-upstream.ts';
import { createRelayCall } from './relay/relay-call.ts';
import { createRedeemAnswers } from './relay/rounds.ts';
import { createSuspendedCalls } from './relay/suspended/suspended-calls.ts';
import type { Upstream } from './upstream.ts';
import { traceUpstream } from './wrap-upstream.ts';

/** What may change while the gateway runs: the configuration file, and the lock beside it. */
export interface GatewaySetup {
  readonly file: GatewayFile;
  /** Undefined where there is none: everything is approved. */
  readonly lock?: Lock | undefined;
}

export interface UpstreamParts {
  /** The gateway's own tools, prompts and resources. */
  readonly builtIn: OwnCatalog;
  /** Of this process: programs get PATH, HOME, USER, LANG and TMPDIR of it. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly store: Store;
  getSeal(): Promise<Seal>;
  readonly fetch: Fetch;
  /** Undefined without a provider. */
  readonly metadata: ProviderMetadata | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Undefined where nothing is traced. */
  readonly tracing: Tracing | undefined;
  /** What operators approve is written there; undefined where this process knows no file. */
  readonly storedLock: StoredLock | undefined;
}

export interface GatewayUpstreams {
  readonly catalogs: Pick<UpstreamCatalogs, 'all' | 'findServer' | 'policies'>;
  readonly endpoints: readonly Endpoint[];
  /** Rejects while a server that must be there is not. */
  checkRequired(): Promise<void>;
  /** In the file's order; `processes` is how many of a program run in this process. */
  listServers(): readonly (ServerFacts & { readonly processes: number | undefined })[];
  readonly listServerTools: UpstreamCatalogs['listServerTools'];
  readonly listLockDifferences: UpstreamCatalogs['listLockDifferences'];
  readonly lockApproval: UpstreamCatalogs['lockApproval'];
  /** `operator` is who asks (`sub`). */
  previewAccess(
    options: Omit<PreviewOptions, 'clock' | 'rules' | 'listingContext'>,
    operator: string | undefined,
  ): Promise<AccessPreview>;
  /** Whether something depends on the OAuth client, which is then noted where tokens are handed out. */
  needsClients(): boolean;
  reload(setup: GatewaySetup): Promise<void>;
  close(graceMs: number): Promise<void>;
}

export async function openUpstreams(
  config: Config,
  first: GatewaySetup,
  parts: UpstreamParts,
): Promise<GatewayUpstreams> {
  const { builtIn, store, getSeal, clock, log, metrics, tracing } = parts;
  const { keyPrefix, ttlSeconds } = config.mcp.sessions;
  let setup = first;
  let rules = await createRules(first.file.rules, { clock });
  const suspendedCalls = createSuspendedCalls({
    ...parts,
    keyPrefix,
    maxAnswerBytes: config.upstreams.maxBytes,
  });
  const processCounts = new Map<string, number>();
  const { openUpstream, identity } = createUpstreamOpener(config, {
    ...parts,
    onProcessCount(server, count) {
      processCounts.set(server, count);
      metrics.recordUpstreamProcesses(server, count);
    },
  });

  const toCatalogSetup = ({ file, lock }: GatewaySetup, compiled: Rules): CatalogSetup => ({
    file,
    lock,
    policies: joinPolicies([
      ...(lock === undefined ? [] : [createLockPolicy(lock, metrics)]),
      // Without rules everybody may use everything.
      ...(file.rules.length === 0 ? [] : [createRulesPolicy(compiled)]),
    ]),
  });
  const usesIdentity = () =>
    setup.file.servers.some((one) => one.kind === 'http' && one.auth.type === 'identity');
  // A rule looks at it, or a server is told it.
  const needsClients = () => rules.needClient || usesIdentity();

  const catalogs = createUpstreamCatalogs(toCatalogSetup(first, rules), {
    builtIn,
    openUpstream: tracing === undefined ? openUpstream : openTraced(openUpstream, tracing),
    relayCall: createRelayCall({
      clock,
      log,
      suspendedCalls,
      redeemAnswers: createRedeemAnswers(store, keyPrefix),
    }),
    store,
    getSeal,
    sessionKeyPrefix: keyPrefix,
    sessionTtlSeconds: ttlSeconds,
    storedLock: parts.storedLock,
    hasReplicas: store.isShared,
    clock,
    log,
    metrics,
  });

  // Each takes turns with calls; several at once would take as many turns.
  const previews = createWorkQueue({
    maxRunning: 1,
    maxWaiting: MAX_WAITING_PREVIEWS,
    maxOfOne: MAX_PREVIEWS_OF_ONE,
    createRefusal: () =>
      new GatewayError('overloaded', {
        details: 'Too many previews of rules are asked for at once. Try again in a moment.',
        headers: { 'Retry-After': '1' },
      }),
  });

  return {
    catalogs,
    endpoints: createIdentityEndpoints(identity, usesIdentity),
    async checkRequired() {
      const down = catalogs.listRequired().filter(({ isUp }) => !isUp);
      if (down.length > 0) throw new Error(`not up: ${down.map(({ name }) => name).join(', ')}`);
    },
    listServers: () =>
      catalogs.listServers().map((server) => ({
        ...server,
        processes: server.transport === 'stdio' ? (processCounts.get(server.name) ?? 0) : undefined,
      })),
    listServerTools: catalogs.listServerTools,
    listLockDifferences: catalogs.listLockDifferences,
    lockApproval: catalogs.lockApproval,
    previewAccess: (options, operator) =>
      previews.run(
        () =>
          catalogs.previewAccess({
            ...options,
            rules: rules.withOwnMemory(),
            listingContext: LISTING_CONTEXT,
          }),
        { owner: operator },
      ),
    needsClients,
    async reload(next) {
      const compiled = await createRules(next.file.rules, { clock });
      setup = next;
      rules = compiled;
      await catalogs.reload(toCatalogSetup(next, compiled));
    },
    async close(graceMs) {
      await suspendedCalls.close();
      await catalogs.close(graceMs);
    },
  };
}

/** Of operators, whose page asks for one at a time. */
const MAX_WAITING_PREVIEWS = 20;
/** A script of one operator must not keep out the others. */
const MAX_PREVIEWS_OF_ONE = 4;

const openTraced =
  (open: (config: UpstreamConfig) => Upstream, tracing: Tracing) =>
  (config: UpstreamConfig): Upstream =>
    traceUpstream(open(config), tracing);
