// §22: what operators see and do: the data of each endpoint.
import type { Clock } from '../../core/clock.ts';
import type { LimitsConfig } from '../../core/config/groups/limits.ts';
import { fail } from '../../core/errors/gateway-error.ts';
import type { JsonObject } from '../../core/json.ts';
import { isObject, parseObject } from '../../core/json.ts';
import { describeCause } from '../../core/log.ts';
import type {
  LimitScope,
  ListedSession,
  Page,
  PageRequest,
  Store,
} from '../../core/store/store.ts';
import { stripUri } from '../../core/strip-uri.ts';
import type { KeySetFacts } from '../auth/key-set.ts';
import type { CurrentRefusal } from '../limits/remembered-refusals.ts';
import type { ClientDirectory, ListedClient } from '../oauth/clients/registered-clients.ts';
import type { RuleCaller, RuleDecision } from '../rules/rules.ts';
import type { Approved, LockApproval } from '../upstreams/catalog/lock-approval.ts';
import type { AccessPreview, PreviewOptions } from '../upstreams/catalog/preview-access.ts';
import type { ServerFacts, UpstreamCatalogs } from '../upstreams/catalog/upstream-catalogs.ts';
import type { LoginFailures } from './login-failures.ts';
import { lookThrough } from './look-through.ts';
import { matchesPerson, type People, type Person } from './people.ts';
import type { PersonIndex } from './person-index.ts';
import { type AdminPageRequest, type AdminPlace, renderCursor } from './read-page-request.ts';
import type { RecentCaller, RecentCallers } from './recent-callers.ts';
import { findRemedy } from './remedies.ts';
import { EXCERPT, renderDifference, renderLockCommand } from './render-difference.ts';
import { renderReviews } from './render-review.ts';

/** As the page names what was counted. */
const COUNTED_BY: Readonly<Record<LimitScope, string>> = {
  ip: 'address',
  user: 'user',
  grant: 'login',
  global: 'all callers',
};

/** What is listed of servers is what this process knows of them. */
export interface AdminSources
  extends Pick<UpstreamCatalogs, 'listServerTools' | 'listLockDifferences'> {
  readonly store: Pick<Store, 'listSessions' | 'countSessions' | 'describe' | 'ping'>;
  readonly clock: Clock;
  readonly people: People;
  readonly personIndex: Pick<PersonIndex, 'find'>;
  readonly recentCallers: Pick<RecentCallers, 'list'>;
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
      ) => Promise<AccessPreview>)
    | undefined;
  /** Undefined without a configuration file. */
  readonly lockApproval: LockApproval | undefined;
  /** Of the configuration file, as it was named at the start; the lock lies beside it. */
  readonly configPath: string | undefined;
  /** `postern lock`, as it can be typed where the gateway was started. */
  readonly lockCommand: string;
}

export interface Admin {
  /** `owner` for those of one user. */
  listSessions(request: PageRequest, owner: string | undefined): Promise<JsonObject>;
  /** Those of people whose user ID, e-mail or name the text is, or is a part of. */
  findSessions(request: AdminPageRequest, text: string): Promise<JsonObject>;
  /** Users who called without a session. */
  listCallers(request: PageRequest): Promise<JsonObject>;
  findCallers(request: PageRequest, text: string): Promise<JsonObject>;
  listClients(request: PageRequest): Promise<JsonObject>;
  listLoginFailures(): Promise<JsonObject>;
  describeLimits(): JsonObject;
  describeKeySet(): JsonObject;
  describeStore(): Promise<JsonObject>;
  listServers(): JsonObject;
  /** @throws GatewayError `server_not_found`. */
  listTools(server: string, request: PageRequest): JsonObject;
  listLockDifferences(request: PageRequest): Promise<JsonObject>;
  /** What approving them would change. @throws GatewayError as `LockApproval.review`. */
  reviewLock(servers: readonly string[]): Promise<JsonObject>;
  /** @throws GatewayError as `LockApproval.approve`. */
  approveLock(digests: ReadonlyMap<string, string>): Promise<Approved>;
  /** What somebody sees. */
  previewAccess(caller: RuleCaller, request: PageRequest): Promise<JsonObject>;
}

/** Of refusals, which may be of thousands of addresses. */
const MAX_REFUSALS = 100;

export const createAdmin = (sources: AdminSources): Admin => ({
  async listSessions(request, owner) {
    const [page, active] = await Promise.all([
      readSessions(sources, request, owner),
      sources.store.countSessions(),
    ]);
    return { sessions: page.items.map(describeSession), active, ...renderNext(page) };
  },
  async findSessions({ from }, text) {
    const isMeant = ({ listed, person }: PersonsSession) =>
      matchesPerson(text, listed.record.userId, person);
    const find = async () => {
      const { clock } = sources;
      // A cursor names a list of the address, or none while all sessions are looked through.
      if (from === undefined || from.list !== undefined) {
        const { items, next } = await readSessionsOfAddress(sources, text, from);
        const meant = items.filter(isMeant);
        if (meant.length > 0 || next !== undefined || from !== undefined)
          return { items: meant, next };
      }
      return lookThrough((request) => readSessions(sources, request), isMeant, { from, clock });
    };
    const [page, active] = await Promise.all([find(), sources.store.countSessions()]);
    return { sessions: page.items.map(describeSession), active, ...renderNext(page) };
  },
  async listCallers(request) {
    const page = await sources.recentCallers.list(request);
    return { callers: page.items.map(describeCaller), ...renderNext(page) };
  },
  async findCallers({ from }, text) {
    const page = await lookThrough(
      sources.recentCallers.list,
      ({ user, person }) => matchesPerson(text, user, person),
      { from, clock: sources.clock },
    );
    return { callers: page.items.map(describeCaller), ...renderNext(page) };
  },
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
  async listLockDifferences({ from, limit }) {
    const skip = from?.skip ?? 0;
    const found = sources.listLockDifferences({ skip, limit });
    const command = renderLockCommand(sources.lockCommand, sources.configPath);
    if (found === undefined) return { isLocked: false, command };
    return {
      isLocked: true,
      command,
      ...found,
      obstacle: await sources.lockApproval?.findObstacle(),
      differences: found.differences.map((one) => renderDifference(one, EXCERPT)),
      ...renderNextOf(found.total, skip + limit),
    };
  },
  async reviewLock(servers) {
    const reviews = (await sources.lockApproval?.review(servers)) ?? fail('lock_not_approvable');
    return { servers: renderReviews(reviews) };
  },
  approveLock: async (digests) =>
    sources.lockApproval?.approve(digests) ?? fail('lock_not_approvable'),
  async previewAccess(caller, { from, limit }) {
    const skip = from?.skip ?? 0;
    const found = (await sources.previewAccess?.({ caller, skip, limit })) ?? NO_PREVIEW;
    const tools = found.tools.map(({ decision, ...tool }) => ({
      ...tool,
      ...renderDecision(decision),
    }));
    return { ...found, tools, ...renderNextOf(found.total, skip + limit) };
  },
});

const NO_PREVIEW: AccessPreview = { total: 0, seen: 0, tools: [], personal: [] };

/** Of a list that is in memory, in which a place is a number. */
const renderNextOf = (total: number, skip: number): JsonObject => ({
  nextCursor: renderCursor(skip < total ? { time: 0, skip } : undefined),
});

interface AdminPage<Item> extends Page<Item> {
  readonly next: AdminPlace | undefined;
}

const renderNext = ({ next }: AdminPage<unknown>): JsonObject => ({
  nextCursor: renderCursor(next),
});

interface PersonsSession {
  readonly listed: ListedSession;
  readonly person: Person;
}

async function readSessions(
  { store, people }: Pick<AdminSources, 'store' | 'people'>,
  request: PageRequest,
  owner?: string,
): Promise<Page<PersonsSession>> {
  const { items, next } = await store.listSessions(request, owner);
  const named = items.map(async (listed) => ({
    listed,
    person: await people.open(listed.record.person, listed.record.sessionId),
  }));
  return { items: await Promise.all(named), next };
}

/** Of those whose e-mail address this is: the last ones of each. */
async function readSessionsOfAddress(
  sources: AdminSources,
  text: string,
  from: AdminPlace | undefined,
): Promise<AdminPage<PersonsSession>> {
  if (!text.includes('@')) return { items: [], next: undefined };
  const { users, next } = await sources.personIndex.find(text, from);
  const pages = await Promise.all(
    users.map((user) => readSessions(sources, { from: undefined, limit: SESSIONS_OF_USER }, user)),
  );
  return { items: pages.flatMap(({ items }) => items), next };
}

const SESSIONS_OF_USER = 50;

const describeCaller = ({ user, person, lastSeenAt }: RecentCaller): JsonObject => ({
  user,
  ...person,
  lastSeenAt,
});

function describeSession({ listed, person }: PersonsSession): JsonObject {
  const { record, expiresAt } = listed;
  const { sessionId: id, userId: user, server, protocolVersion } = record;
  return {
    id,
    user,
    ...person,
    server,
    protocolVersion,
    client: readClientInfo(record.clientInfo),
    createdAt: renderTime(record.createdAt),
    lastUsedAt: renderTime(record.lastAccessedAt),
    expiresAt: renderTime(expiresAt),
  };
}

/** What the client says of itself. */
function readClientInfo(text: string | undefined): JsonObject | undefined {
  const info = text === undefined ? undefined : parseObject(text);
  if (!isObject(info)) return undefined;
  return {
    name: readShort(info.name),
    title: readShort(info.title),
    version: readShort(info.version),
  };
}

const MAX_TEXT = 200;

const readShort = (value: unknown): string | undefined =>
  typeof value === 'string' ? value.slice(0, MAX_TEXT) : undefined;

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

const renderTime = (time: number): string => new Date(time).toISOString();
