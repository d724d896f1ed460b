// A part of the composition root: the servers behind the gateway, by the configuration file.

import type { ProviderMetadata } from '../auth/provider-metadata.ts';
import type { Config } from '../config/config.ts';
import type { ConnectionServer } from '../connections/connection.ts';
import type { ConnectionParts } from '../connections/connections.ts';
import type { Endpoint } from '../endpoint/endpoint.ts';
import type { GetProviderToken, UserContext } from '../endpoint/message.ts';
import { GatewayError } from '../errors/gateway-error.ts';
import type { CheckSchema } from '../mcp/catalog/foreign-schema.ts';
import { LISTING_CONTEXT } from '../mcp/catalog/list-tools.ts';
import type { OwnCatalog } from '../mcp/catalog/served-catalog.ts';
import type { Clock } from '../platform/clock.ts';
import type { Fetch } from '../platform/fetch-with-limits.ts';
import type { Log } from '../platform/log.ts';
import { createWorkQueue } from '../platform/work-queue.ts';
import { createGuards } from '../policy/guards/create-guards.ts';
import type { Guards } from '../policy/guards/guards.ts';
import type { AskServer } from '../policy/guards/mcp-guard.ts';
import { joinPolicies } from '../policy/policy.ts';
import { createRules, createRulesPolicy } from '../policy/rules/create-rules.ts';
import type { RuleConfig } from '../policy/rules/rule-config.ts';
import type { NamedFacts } from '../policy/rules/when/inspect-expression.ts';
import type { Seal } from '../store/seal/seal.ts';
import type { Store } from '../store/store.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import type { Tracing } from '../telemetry/tracing/tracing.ts';
import { createAskGuardServer } from './ask-guard-server.ts';
import type { ListCost } from './budget/measure-lists.ts';
import { createPathsEndpoint } from './budget/paths-endpoint.ts';
import type { CompiledSetup, Setup } from './catalog/plan.ts';
import type { AccessPreview, PreviewOptions } from './catalog/tools-for-operators.ts';
import {
  createUpstreamCatalogs,
  type ServerFacts,
  type UpstreamCatalogs,
} from './catalog/upstream-catalogs.ts';
import type { UpstreamConfig } from './config/upstream-config.ts';
import { createConnectUser } from './connect/connect-user.ts';
import { createDoors } from './connect/doors.ts';
import { findServerCredentials, readConnectionServer } from './credentials/server-credentials.ts';
import { createLockPolicy } from './lock/lock.ts';
import type { StoredLock } from './lock/lock-file.ts';
import { createUpstreamOpener } from './open-upstream.ts';
import { createToFailedResult } from './relay/failures.ts';
import { createRelayCall } from './relay/relay-call.ts';
import { createRedeemAnswers } from './relay/rounds.ts';
import { createSuspendedCalls } from './relay/suspended/suspended-calls.ts';
import type { Upstream } from './upstream.ts';
import { traceUpstream } from './wrap-upstream.ts';

export interface UpstreamParts {
  /** The gateway's own tools, prompts and resources. */
  readonly builtIn: OwnCatalog;
  /** Of this process: programs get PATH, HOME, USER, LANG and TMPDIR of it. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly store: Store;
  getSeal(): Promise<Seal>;
  readonly fetch: Fetch;
  readonly getProviderToken: GetProviderToken;
  /** Undefined where it is not known, or nothing depends on it. */
  findClientId(caller: {
    readonly user: UserContext | undefined;
  }): string | undefined | Promise<string | undefined>;
  /** Undefined where clients get the provider's tokens: then nobody can connect. */
  readonly connections: ConnectionParts | undefined;
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
  readonly catalogs: Pick<UpstreamCatalogs, 'all' | 'findNamed' | 'policies'>;
  /** Those of the file as it is now; undefined where it has none. */
  getGuards(): Guards | undefined;
  readonly endpoints: readonly Endpoint[];
  /** Rejects while a server that must be there is not. */
  checkRequired(): Promise<void>;
  /** In the file's order; `processes` is how many of a program run in this process. */
  listServers(): readonly (ServerFacts & { readonly processes: number | undefined })[];
  readonly listServerTools: UpstreamCatalogs['listServerTools'];
  readonly listLockDifferences: UpstreamCatalogs['listLockDifferences'];
  readonly lockApproval: UpstreamCatalogs['lockApproval'];
  readonly findIdlePatterns: UpstreamCatalogs['findIdlePatterns'];
  /** §25.2, for operators: what is known now. */
  measureLists(): Promise<readonly ListCost[]>;
  /** `operator` is who asks (`sub`). */
  previewAccess(
    options: Omit<PreviewOptions, 'clock' | 'rules' | 'listingContext'>,
    operator: string | undefined,
  ): Promise<AccessPreview>;
  /** In the file's order: those at which users log in themselves (§24). */
  listConnectionServers(): readonly ConnectionServer[];
  /** The claims that rules ask for: without them nobody knows what a user may. */
  listNamedClaims(): readonly string[];
  /** All that rules name of users. */
  getNamedFacts(): NamedFacts;
  reload(setup: Setup): Promise<void>;
  close(graceMs: number): Promise<void>;
}

export async function openUpstreams(
  config: Config,
  first: Setup,
  parts: UpstreamParts,
): Promise<GatewayUpstreams> {
  const { builtIn, store, getSeal, clock, log, metrics, tracing } = parts;
  const { keyPrefix, ttlSeconds } = config.mcp.sessions;
  const askServer = createAskGuardServer(() => catalogs.getPlan().guardServers, clock);
  const compileParts = { ...parts, askServer };
  const compiled = await compileSetup(first, compileParts);
  const suspendedCalls = createSuspendedCalls({
    ...parts,
    keyPrefix,
    maxAnswerBytes: config.upstreams.maxBytes,
  });
  const processCounts = new Map<string, number>();
  const { openUpstream, credentials } = createUpstreamOpener(config, {
    ...parts,
    onProcessCount(server, count) {
      processCounts.set(server, count);
      metrics.recordUpstreamProcesses(server, count);
    },
  });

  const doors = createDoors({
    requests: parts.connections?.requests,
    baseUrl: config.server.baseUrl,
  });
  const toFailedResult = createToFailedResult({ clock, log });

  const catalogs = createUpstreamCatalogs(compiled, {
    builtIn,
    openUpstream: tracing === undefined ? openUpstream : openTraced(openUpstream, tracing),
    relayCall: createRelayCall({
      doors,
      toFailedResult,
      suspendedCalls,
      redeemAnswers: createRedeemAnswers(store, keyPrefix),
    }),
    connectUser: createConnectUser({ doors, toFailedResult }),
    store,
    getSeal,
    sessionKeyPrefix: keyPrefix,
    sessionTtlSeconds: ttlSeconds,
    listWaitMs: config.upstreams.listWaitMs,
    storedLock: parts.storedLock,
    hasReplicas: store.isShared,
    clock,
    log,
    metrics,
  });

  parts.connections?.connections.onChange((owner, server) =>
    catalogs.noteConnectionChange(owner, server),
  );

  const listCredentials = () => catalogs.getPlan().setup.file.servers.map(findServerCredentials);
  let reloading: Promise<void> = Promise.resolve();

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
    getGuards: () => catalogs.getPlan().guards,
    endpoints: [
      ...credentials.createEndpoints((type) => listCredentials().includes(type)),
      createPathsEndpoint({
        baseUrl: config.server.baseUrl,
        measureListsOf: catalogs.measureListsOf,
        findClientId: parts.findClientId,
      }),
    ],
    async checkRequired() {
      const down = catalogs.listRequired().filter(({ isUp }) => !isUp);
      if (down.length > 0) throw new Error(`not up: ${down.map(({ name }) => name).join(', ')}`);
    },
    listServers: () =>
      catalogs.listServers().map((server) => ({
        ...server,
        processes: server.transport === 'stdio' ? (processCounts.get(server.name) ?? 0) : undefined,
      })),
    listConnectionServers: () =>
      catalogs
        .getPlan()
        .setup.file.servers.map(readConnectionServer)
        .filter((server) => server !== undefined),
    listServerTools: catalogs.listServerTools,
    listLockDifferences: catalogs.listLockDifferences,
    lockApproval: catalogs.lockApproval,
    findIdlePatterns: catalogs.findIdlePatterns,
    measureLists: () => catalogs.measureLists({ waits: false }),
    previewAccess: (options, operator) =>
      previews.run(
        () =>
          catalogs.previewAccess({
            ...options,
            rules: catalogs.getPlan().rules.withOwnMemory(),
            listingContext: LISTING_CONTEXT,
          }),
        { owner: operator },
      ),
    listNamedClaims: () =>
      catalogs.getPlan().setup.file.rules?.flatMap(({ who }) => listClaims(who)) ?? [],
    getNamedFacts: () => catalogs.getPlan().rules.namedFacts,
    reload(next) {
      // One after the other: rules that take long to compile must not replace later ones.
      const loading = reloading.then(async () =>
        catalogs.reload(await compileSetup(next, compileParts)),
      );
      reloading = loading.catch(() => {});
      return loading;
    },
    async close(graceMs) {
      await suspendedCalls.close();
      await catalogs.close(graceMs);
    },
  };
}

/** Nothing is changed yet: rules that cannot be compiled leave what is served as it is. */
async function compileSetup(
  setup: Setup,
  parts: Pick<UpstreamParts, 'clock' | 'metrics' | 'fetch' | 'log'> & { askServer: AskServer },
): Promise<CompiledSetup> {
  const { clock, metrics } = parts;
  const { file, lock } = setup;
  const rules = await createRules(file.rules, { clock });
  return {
    setup,
    rules,
    guards: await createGuards(file.guards, parts),
    checkSchema: file.guards === undefined ? undefined : await loadCheckSchema(),
    policies: joinPolicies([
      ...(lock === undefined ? [] : [createLockPolicy(lock, metrics)]),
      // Without rules everybody may use everything.
      ...(file.rules.length === 0 ? [] : [createRulesPolicy(rules)]),
    ]),
  };
}

/** Nobody needs it where nothing is changed on its way. */
const loadCheckSchema = async (): Promise<CheckSchema> =>
  (await import('../mcp/catalog/foreign-schema.ts')).checkForeignSchema;

/** Of operators, whose page asks for one at a time. */
const MAX_WAITING_PREVIEWS = 20;
/** A script of one operator must not keep out the others. */
const MAX_PREVIEWS_OF_ONE = 4;

const openTraced =
  (open: (config: UpstreamConfig) => Upstream<UpstreamConfig>, tracing: Tracing) =>
  (config: UpstreamConfig): Upstream<UpstreamConfig> =>
    traceUpstream(open(config), tracing);

const listClaims = (who: RuleConfig['who']): readonly string[] =>
  who === 'everyone'
    ? []
    : [...Object.keys(who.claims ?? {}), ...(who.groups === undefined ? [] : ['groups'])];
