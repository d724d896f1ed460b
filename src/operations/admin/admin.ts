// §22: what operators see and do: the data of each endpoint.

import type { KeySetFacts } from '../../auth/key-set.ts';
import type { LimitsConfig } from '../../config/groups/limits.ts';
import type { CurrentRefusal } from '../../edge/limits/admit-in-store.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { ClientDirectory, ListedClient } from '../../oauth/clients/registered-clients.ts';
import type { LoginFailures } from '../../oauth/login-failures.ts';
import type { JsonObject } from '../../platform/json.ts';
import { describeCause } from '../../platform/log.ts';
import { stripUri } from '../../platform/strip-uri.ts';
import type { RuleCaller, RuleDecision } from '../../policy/rules/rules.ts';
import type { PageRequest, Store } from '../../store/store.ts';
import type { LimitScope } from '../../telemetry/metrics/metrics.ts';
import type { AccessPreview, PreviewOptions } from '../../upstreams/catalog/tools-for-operators.ts';
import type { ServerFacts, UpstreamCatalogs } from '../../upstreams/catalog/upstream-catalogs.ts';
import { createLockActions, type LockActions, type LockSources } from './lock-actions.ts';
import { findRemedy } from './remedies.ts';
import { MAX_TEXT, renderNext, renderNextOf, renderTime } from './render-page.ts';
import { createSessionLists, type SessionLists, type SessionSources } from './session-lists.ts';

/** As the page names what was counted. */
const COUNTED_BY: Readonly<Record<LimitScope, string>> = {
  ip: 'address',
  user: 'user',
  grant: 'login',
  global: 'all callers',
};

/** What is listed of servers is what this process knows of them. */
export interface AdminSources
  extends SessionSources,
    LockSources,
    Pick<UpstreamCatalogs, 'listServerTools'> {
  readonly store: Pick<Store, 'listSessions' | 'countSessions' | 'describe' | 'ping'>;
  readonly clients: ClientDirectory;
  readonly loginFailures: Pick<LoginFailures, 'list'>;
  readonly limits: LimitsConfig;
  /** Of this process. */
  listRefusals(): readonly CurrentRefusal[];
  describeKeySet(): KeySetFacts;
  readonly issuer: string;
  /** Of this process. */
  listServers(): readonly (ServerFacts & { readonly processes: number | undefined })[];
  /** Undefined without a configuration file. */
  previewAccess?:
    | ((
        options: Omit<PreviewOptions, 'clock' | 'rules' | 'listingContext'>,
        operator: string | undefined,
      ) => Promise<AccessPreview>)
    | undefined;
}

export interface Admin extends SessionLists, LockActions {
  listClients(request: PageRequest): Promise<JsonObject>;
  listLoginFailures(): Promise<JsonObject>;
  describeLimits(): JsonObject;
  describeKeySet(): JsonObject;
  describeStore(): Promise<JsonObject>;
  listServers(): JsonObject;
  /** @throws GatewayError `server_not_found`. */
  listTools(server: string, request: PageRequest): JsonObject;
  /** What somebody sees. `operator` is who asks (`sub`). */
  previewAccess(
    caller: RuleCaller,
    request: PageRequest,
    operator: string | undefined,
  ): Promise<JsonObject>;
}

/** Of refusals, which may be of thousands of addresses. */
const MAX_REFUSALS = 100;

export const createAdmin = (sources: AdminSources): Admin => ({
  ...createSessionLists(sources),
  ...createLockActions(sources),
  async listClients(request) {
    const page = await sources.clients.list(request);
    return { clients: page.items.map(describeClient), ...renderNext(page) };
  },
  async listLoginFailures() {
    const failures = await sources.loginFailures.list();
    return { failures: failures.map((one) => ({ ...one, remedy: findRemedy(one.error) })) };
  },
  describeLimits() {
    const { limits } = sources;
    const refusals = sources.listRefusals();
    return {
      enabled: limits.enabled,
      groups: limits.enabled ? Object.values(limits.groups) : [],
      refused: refusals.length,
      refusals: refusals.slice(0, MAX_REFUSALS).map(({ group, caller, refusal }) => ({
        group,
        by: COUNTED_BY[refusal.scope],
        caller,
        max: refusal.limit,
        until: renderTime(sources.clock.now() + refusal.resetInMs),
      })),
    };
  },
  describeKeySet() {
    const { url, fetchedAt, nextFetchAt, ...facts } = sources.describeKeySet();
    return {
      issuer: sources.issuer,
      url: url && stripUri(url),
      ...facts,
      fetchedAt: fetchedAt === undefined ? undefined : renderTime(fetchedAt),
      nextFetchAt: nextFetchAt === undefined ? undefined : renderTime(nextFetchAt),
    };
  },
  async describeStore() {
    const { store, clock } = sources;
    const startedAt = clock.monotonic();
    try {
      await store.ping();
      const latencyMs = Math.round((clock.monotonic() - startedAt) * 100) / 100;
      return { isUp: true, ...(await store.describe()), latencyMs };
    } catch (error) {
      return { isUp: false, problem: describeCause(error) };
    }
  },
  listServers: () => ({
    servers: sources.listServers().map(({ since, ...facts }) => ({
      ...facts,
      since: since === undefined ? undefined : renderTime(since),
    })),
  }),
  listTools(server, { from, limit }) {
    const skip = from?.skip ?? 0;
    const found = sources.listServerTools(server, { skip, limit });
    if (found === undefined) return fail('server_not_found');
    const tools = found.tools.map((tool) => ({ ...tool, name: tool.name.slice(0, MAX_TEXT) }));
    return { server, ...found, tools, ...renderNextOf(found.total, skip + limit) };
  },
  async previewAccess(caller, { from, limit }, operator) {
    const skip = from?.skip ?? 0;
    const found = (await sources.previewAccess?.({ caller, skip, limit }, operator)) ?? NO_PREVIEW;
    const tools = found.tools.map(({ decision, ...tool }) => ({
      ...tool,
      ...renderDecision(decision),
    }));
    return { ...found, tools, ...renderNextOf(found.total, skip + limit) };
  },
});

const NO_PREVIEW: AccessPreview = { total: 0, seen: 0, tools: [], personal: [] };

const describeClient = ({ client, expiresAt }: ListedClient): JsonObject => ({
  id: client.client_id,
  name: client.client_name,
  redirectUris: client.redirect_uris.map(stripUri),
  registeredAt: renderTime(client.client_id_issued_at * 1000),
  expiresAt: renderTime(expiresAt),
  /** Whether it ever got a token. */
  isUsed: client.used === true,
});

const renderDecision = (decision: RuleDecision): JsonObject =>
  decision.kind === 'allowed' && decision.isByArgs === true
    ? { decision: 'by_arguments', rule: decision.rule }
    : { ...decision, kind: undefined, decision: decision.kind };
