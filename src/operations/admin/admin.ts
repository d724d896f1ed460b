// §22: what operators see and do: the data of each endpoint.

import type { KeySetFacts } from '../../auth/key-set.ts';
import type { LimitsConfig } from '../../config/groups/limits.ts';
import type { CurrentRefusal } from '../../edge/limits/windows.ts';
import type { ErrorKey } from '../../errors/catalogue.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { ClientDirectory, ListedClient } from '../../oauth/clients/registered-clients.ts';
import type { LoginFailures } from '../../oauth/login-failures.ts';
import type { JsonObject } from '../../platform/json.ts';
import { describeCause } from '../../platform/log.ts';
import { stripUri } from '../../platform/strip-uri.ts';
import type { GuardFacts } from '../../policy/guards/guards.ts';
import type { RuleCaller, RuleDecision } from '../../policy/rules/rules.ts';
import type { PageRequest } from '../../store/page.ts';
import type { Sessions, Store } from '../../store/store.ts';
import type { LimitScope } from '../../telemetry/metrics/metrics.ts';
import { type ListCost, WARNED_TOKENS } from '../../upstreams/budget/measure-lists.ts';
import type { IdlePattern } from '../../upstreams/catalog/idle-patterns.ts';
import type { AccessPreview, PreviewOptions } from '../../upstreams/catalog/tools-for-operators.ts';
import type { ServerFacts, UpstreamCatalogs } from '../../upstreams/catalog/upstream-catalogs.ts';
import { type ApprovalSources, createApprovalActions } from './approval-actions.ts';
import { type ConnectionSources, createConnectionLists } from './connection-lists.ts';
import { createGrantLists, type GrantSources } from './grant-lists.ts';
import { createLockActions, type LockSources } from './lock-actions.ts';
import { MAX_TEXT, renderNext, renderNextOf, renderTime } from './read-request.ts';
import { createSessionLists, type SessionSources } from './session-lists.ts';

/** As the page names what was counted. */
const COUNTED_BY: Readonly<Record<LimitScope, string>> = {
  ip: 'address',
  user: 'user',
  grant: 'login',
  network: 'network',
  global: 'all callers',
};

/** What is listed of servers is what this process knows of them. */
export interface AdminSources
  extends SessionSources,
    GrantSources,
    ConnectionSources,
    LockSources,
    ApprovalSources,
    Pick<UpstreamCatalogs, 'listServerTools'> {
  readonly store: Pick<Sessions, 'listSessions' | 'countSessions'> &
    Pick<Store, 'describe' | 'ping'>;
  readonly clients: ClientDirectory;
  readonly loginFailures: Pick<LoginFailures, 'list'>;
  readonly limits: LimitsConfig;
  /** Of this process. */
  listRefusals(): readonly CurrentRefusal[];
  describeKeySet(): KeySetFacts;
  /** Of this process. */
  measureLists(): Promise<readonly ListCost[]>;
  listServers(): readonly (ServerFacts & { readonly processes: number | undefined })[];
  /** Of this process; in the order of the file. */
  listGuards(): readonly GuardFacts[];
  /** Patterns of the file that fit nothing, by the lists that this process knows. */
  findIdlePatterns(): readonly IdlePattern[];
  /** Undefined without a configuration file. */
  previewAccess?:
    | ((
        options: Omit<PreviewOptions, 'clock' | 'rules' | 'listingContext'>,
        operator: string | undefined,
      ) => Promise<AccessPreview>)
    | undefined;
}

export type Admin = ReturnType<typeof createAdmin>;

/** Of refusals, which may be of thousands of addresses. */
const MAX_REFUSALS = 100;

export const createAdmin = (sources: AdminSources) => ({
  ...createSessionLists(sources),
  ...createGrantLists(sources),
  ...createConnectionLists(sources),
  ...createLockActions(sources),
  ...createApprovalActions(sources),
  async listClients(request: PageRequest) {
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
  listGuards: () => ({
    guards: sources.listGuards().map(({ check: _, ...facts }) => facts),
  }),
  listIdlePatterns: () => ({ patterns: sources.findIdlePatterns() }),
  listServers: () => ({
    servers: sources.listServers().map(({ since, ...facts }) => ({
      ...facts,
      since: since === undefined ? undefined : renderTime(since),
    })),
  }),
  /** §25.2: what the list of each path costs a model. */
  async measureLists() {
    return { warnedTokens: WARNED_TOKENS, lists: await sources.measureLists() };
  },
  /** @throws GatewayError `server_not_found`. */
  listTools(server: string, { from, limit }: PageRequest) {
    const skip = from?.skip ?? 0;
    const found = sources.listServerTools(server, { skip, limit });
    if (found === undefined) return fail('server_not_found');
    const tools = found.tools.map((tool) => ({ ...tool, name: tool.name.slice(0, MAX_TEXT) }));
    return { server, ...found, tools, ...renderNextOf(found.total, skip + limit) };
  },
  /** What somebody sees. `operator` is who asks (`sub`). */
  async previewAccess(
    caller: RuleCaller,
    { from, limit }: PageRequest,
    operator: string | undefined,
  ) {
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

function renderDecision(decision: RuleDecision): JsonObject {
  if (decision.kind !== 'allowed') return { ...decision, kind: undefined, decision: decision.kind };
  const { rule, isByArgs, ask, askRule, isAskedByArgs } = decision;
  return {
    decision: isByArgs === true ? 'by_arguments' : 'allowed',
    rule,
    ...(ask && { ask, askRule, askByArguments: isAskedByArgs === true }),
  };
}

// §22.4: what to do about a login that failed, by the name that the log has for it.

const REGISTER_AGAIN = 'Remove the server in the client, and add it again.';
const LOG_IN_AGAIN = 'Start the login again in the client.';
const UPDATE_CLIENT = 'Update the client: it asks for something that the gateway does not offer.';

/** Beside the catalogue: what the provider or the user decided. */
type Refusal = 'refused_by_provider' | 'access_denied';

const REMEDIES: Readonly<Partial<Record<ErrorKey | Refusal, string>>> = {
  // Registration.
  invalid_client_metadata: UPDATE_CLIENT,
  invalid_redirect_uri:
    "Update the client. If its callback address has a scheme of the client's own, add that to OAUTH_REDIRECT_SCHEMES.",
  registration_token_required:
    'Give the client the token of DCR_ACCESS_TOKEN, or remove this setting, so that every client may register.',

  // On the way to the provider and back.
  unknown_client: `Its registration has expired (DCR_CLIENT_TTL) or was deleted. ${REGISTER_AGAIN}`,
  unauthenticated_client: `Its registration has expired (DCR_CLIENT_TTL) or was deleted. ${REGISTER_AGAIN}`,
  unregistered_redirect_uri: `The client came with another address or port than it registered. Free the port that it registered. If that does not help: ${lowerFirst(REGISTER_AGAIN)}`,
  oauth_invalid_request: `${LOG_IN_AGAIN} It must go on in the browser in which it began, with cookies, within ten minutes.`,
  unsupported_response_type: UPDATE_CLIENT,
  unsupported_grant_type: UPDATE_CLIENT,
  invalid_target:
    'Compare the address in the client with BASE_URL: the client asked for a token for another address.',
  access_denied: 'Nothing: the user chose Deny, here or at the provider.',
  invalid_origin:
    'A web page opened the login by a script. Open it in a browser, or add the origin to ALLOWED_ORIGINS.',

  // Tokens.
  invalid_grant: LOG_IN_AGAIN,
  authorization_code_reused: `The client sent its authorization code twice, or somebody else had it and what proves that it is theirs. ${LOG_IN_AGAIN}`,
  refresh_token_reused: `A refresh token was used that had been replaced: the client lost its new one, or somebody else had the old one. ${LOG_IN_AGAIN}`,
  refused_by_provider: `See what the provider says. After a refresh token has expired: ${lowerFirst(LOG_IN_AGAIN)}`,
  gateway_refused_by_provider:
    'Compare OAUTH_CLIENT_ID, OAUTH_CLIENT_SECRET and OAUTH_CLIENT_AUTH with the client at the provider.',
  gateway_request_refused:
    'Compare the client at the provider with the message: its redirect URI must be BASE_URL/oauth/callback, and it must allow the scopes of OAUTH_ADDED_SCOPES.',
  unusable_id_token:
    'Change what the message names, here or at the provider. Compare OIDC_ISSUER and OAUTH_CLIENT_ID, character by character.',
  unusable_identity:
    'Change what the message names at the provider: what its ID token and its userinfo endpoint say of users.',
  upstream_failed:
    'Check that the gateway reaches the provider. postern doctor says why it does not.',
  provider_busy: 'Wait: the provider is slow. If it stays so, look at the provider.',
  not_configured: 'Set the variable that the message names.',

  // A token that the gateway does not accept.
  invalid_audience:
    "Compare OIDC_AUDIENCE with the token's aud, character by character, or have the provider put the address of the gateway there.",
  invalid_issuer:
    "Set OIDC_ISSUER to the token's iss, character by character; a slash at the end counts.",
  missing_claim: 'Have the provider put sub into access tokens.',

  internal_error: 'Look at /health/ready and at the log: mostly it is the store.',
};

const BY_NAME: ReadonlyMap<string, string> = new Map(Object.entries(REMEDIES));

/** Always says something. */
const findRemedy = (error: string): string =>
  BY_NAME.get(error) ?? 'The log has more about it at the same time.';

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
