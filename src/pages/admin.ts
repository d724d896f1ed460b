// §22: the operators' page: endpoints made of panels, its access control and audit lines, and records about people.

import type { Config } from '../config/config.ts';
import { fail } from '../errors/gateway-error.ts';
import { createCallList } from '../http/endpoint/admin-calls.ts';
import type {
  AdminAct,
  AdminPanel,
  AdminView,
  AdminWork,
  PreparedAct,
} from '../http/endpoint/admin-panel.ts';
import {
  createPeople,
  createPersonIndex,
  createRecentCallers,
} from '../http/endpoint/admin-people.ts';
import { renderTime } from '../http/endpoint/admin-requests.ts';
import type { Endpoint, ProtectedCall, ProtectedEndpoint } from '../http/endpoint/endpoint.ts';
import {
  createJsonReply,
  identifyCredential,
  type Reply,
  readClaimedClient,
  type UserContext,
} from '../http/endpoint/message.ts';
import { OPERATORS_CLIENT_ID } from '../http/endpoint/own-clients.ts';
import { renderPage } from '../http/endpoint/own-page-parts.ts';
import { JSONRPC } from '../http/endpoint/render-error.ts';
import type { ListRefusals } from '../http/limits/refusals.ts';
import type { ClientOf } from '../mcp/calls/call.ts';
import { createBoundedMap, createExpiringMap } from '../platform/bounded-map.ts';
import { describeCause } from '../platform/log.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { buildTokenClientKey } from '../store/keys.ts';
import { type Audit, noAudit } from '../telemetry/audit/audit.ts';
import type { LimitScope } from '../telemetry/metrics/metrics.ts';
import { getTraceId } from '../telemetry/tracing/tracing.ts';
import { OPEN } from './open-site.ts';

/**
 * Opens the records about people for operators. Undefined without `ADMIN_GROUPS`, and without authentication. `findIssuerOf`
 * distinguishes users of the gateway itself from those of the provider.
 */
export function openOperatorsNotes(
  runtime: Runtime,
  findIssuerOf: (
    sub: string,
    known: { readonly baseUrl: string; readonly issuer: string },
  ) => string,
) {
  const { admin, auth, server } = runtime.config;
  if (admin.groups.length === 0 || !auth.required) return undefined;
  const { issuer } = auth.provider;
  const known = { issuer, baseUrl: server.baseUrl };
  const people = createPeople(runtime);
  const calls = admin.listsCalls ? createCallList(runtime) : undefined;
  const personIndex = createPersonIndex(runtime);
  return {
    people,
    calls,
    personIndex,
    recentCallers: createRecentCallers(runtime, people),
    issuers: { issuer, findIssuerOf: (sub: string) => findIssuerOf(sub, known) },
    clock: runtime.clock,
    /** Records who has opened a session, so that operators can find them. */
    async sealPerson(user: UserContext, sessionId: string) {
      const [sealed] = await Promise.all([people.seal(user, sessionId), personIndex.note(user)]);
      return sealed;
    },
  };
}

/** In place of the operators' page, for developers: elsewhere, strangers would learn of a setting. */
export const createOperatorsHint = ({ auth, server }: Config): Endpoint => ({
  ...OPEN,
  method: 'GET',
  path: '/admin',
  handle: () =>
    renderPage(server, {
      status: 404,
      title: 'The operators’ page is off',
      body: auth.required
        ? '<p>Set <code>ADMIN_GROUPS</code> in <code>.env</code> to the groups of your operators, as your provider names them, and open this page again.</p>'
        : '<p>It needs a login, and <code>AUTH_REQUIRED=false</code> turns logins off. Remove that setting, and open this page again.</p>',
    }),
});

const API = '/admin/api';

/** `clientOf` returns the OAuth client of a refused token. */
export function createOperatorEndpoints(
  runtime: Runtime,
  clientOf: ClientOf,
  limiter: { readonly listRefusals: ListRefusals },
  panels: readonly AdminPanel[],
): readonly Endpoint[] {
  const operators = createOperators(runtime);
  const isViewedAgain = createIsViewedAgain(runtime);
  const runAudited = createRunAudited(runtime.audit ?? noAudit, operators, clientOf);

  /** Nothing is checked before the request is counted. */
  const createView = ({ path, table, show }: AdminView): ProtectedEndpoint => ({
    ...GUARDED,
    method: 'GET',
    path: API + path,
    judge: (call) => ({
      access: undefined,
      run() {
        const query = new URLSearchParams(call.request.query);
        // Includes the user or server whose sessions or tools were viewed: the whole query, so that no value hides behind another.
        const whose = WHOSE.flatMap((name) => query.getAll(name)).filter((value) => value !== '');
        const target = path.slice(1) + (whose.length === 0 ? '' : ` of ${whose.join(', ')}`);
        const isAgain = table?.follows === true && isViewedAgain(call);
        return runAudited(call, { action: 'show', target, isAgain }, async () =>
          createJsonReply(200, await show(query, call.user?.sub)),
        );
      },
    }),
  });

  const createAct = ({ method, path, hasParameter, prepare }: AdminAct): ProtectedEndpoint => ({
    ...GUARDED,
    method,
    path: API + path,
    ...(method === 'POST' && { body: 'json' }),
    ...(hasParameter && { hasParameter }),
    judge(call) {
      const { run, ...what } = prepare(call);
      return { access: undefined, run: () => runAudited(call, what, run) };
    },
  });

  /** For the front page, which links to the operators' page. It tells callers nothing but their own groups. */
  const access: ProtectedEndpoint = {
    ...GUARDED,
    method: 'GET',
    path: `${API}/access`,
    judge: ({ user }) => ({
      access: undefined,
      run: () => createJsonReply(200, { isOperator: operators.isOperator(user) }),
    }),
  };

  const all = [...panels, ...createServicePanels(runtime, limiter)];
  const tables: AdminView = {
    method: 'GET',
    path: '/tables',
    show: () => ({
      tables: all.flatMap((panel) =>
        panel.method === 'GET' && panel.table ? [{ path: panel.path, ...panel.table }] : [],
      ),
    }),
  };
  return [
    access,
    ...[tables, ...all].map((panel) =>
      panel.method === 'GET' ? createView(panel) : createAct(panel),
    ),
  ];
}

const WHOSE = ['user', 'issuer', 'person', 'email', 'group', 'server', 'name'] as const;

const GUARDED = {
  kind: 'protected',
  errors: JSONRPC,
  limit: 'admin',
  isForOwnPages: true,
  headers: { 'Cache-Control': 'no-store', 'Cross-Origin-Resource-Policy': 'same-origin' },
} as const;

// §22.1: operators and their clients: an operator's token for another client may be in other hands.

type Operators = ReturnType<typeof createOperators>;

function createOperators({ config, store }: Runtime) {
  const groups = new Set(config.admin.groups);
  const clients = new Set(config.admin.clients);
  /** Tokens of the page, by their SHA-256. Records about a token never change. */
  const ofPage = createBoundedMap<string, true>('operatorTokens');

  return {
    isOperator: (user: UserContext | undefined) =>
      user?.groups?.some((group) => groups.has(group)) === true,
    /**
     * The client that the token was issued to; undefined for one whose tokens are not accepted.
     *
     * @throws the store's errors.
     */
    async findClient(user: UserContext) {
      const granted = user.grant?.clientId;
      if (granted !== undefined)
        return granted === OPERATORS_CLIENT_ID || clients.has(granted) ? granted : undefined;
      const claimed = readClaimedClient(user.claims);
      if (claimed !== undefined && clients.has(claimed)) return claimed;
      const digest = identifyCredential(user);
      if (ofPage.get(digest)) return OPERATORS_CLIENT_ID;
      // The store has a record for each token of the operators' page.
      const noted = await store.get(buildTokenClientKey(digest));
      if (noted !== OPERATORS_CLIENT_ID) return undefined;
      ofPage.set(digest, true);
      return noted;
    },
  };
}

// §22.1, §21.1: the audit log records everything that operators read and do, and all refusals.

const createRunAudited = (audit: Audit, operators: Operators, clientOf: ClientOf) =>
  /** @throws GatewayError `operators_only` or `operators_client_only`, or the work's error. */
  async function runAudited(
    { request, user }: ProtectedCall,
    { isAgain, ...what }: AdminWork & { readonly isAgain?: boolean },
    work: PreparedAct['run'],
  ): Promise<Reply> {
    const action = {
      event: 'admin',
      ...what,
      user: user?.sub,
      issuer: user?.issuer,
      grant: user?.grant?.id,
      ip: request.clientIp,
      trace: getTraceId(request),
    } as const;

    async function refuse(reason: 'operators_only' | 'operators_client_only'): Promise<never> {
      audit.write({ ...action, client: clientOf({ user }) }, { outcome: 'denied', reason });
      return fail(reason);
    }

    if (user === undefined || !operators.isOperator(user)) return refuse('operators_only');
    const client = await operators.findClient(user);
    if (client === undefined) return refuse('operators_client_only');
    const note = (part: AdminWork) =>
      audit.write({ ...action, client, ...part }, { outcome: 'success' });
    return isAgain ? work(note) : audit.run({ ...action, client }, () => work(note));
  };

const AGAIN_MS = 60_000;

/** The page follows some tables and polls every two seconds: one audit line per minute, operator and query is enough. */
function createIsViewedAgain({ clock }: Runtime) {
  const viewed = createExpiringMap<true>('adminViews', clock.monotonic);
  return function isViewedAgain({ request, user }: ProtectedCall): boolean {
    const view = JSON.stringify([user?.issuer, user?.sub, request.path, request.query]);
    if (viewed.get(view)) return true;
    viewed.set(view, true, clock.monotonic() + AGAIN_MS);
    return false;
  };
}

// §22: panels about the gateway itself.

/** The page's names for what is counted. */
const COUNTED_BY: Readonly<Record<LimitScope, string>> = {
  ip: 'address',
  user: 'user',
  grant: 'login',
  network: 'network',
  global: 'all callers',
};

/** Limit of listed refusals, which may come from thousands of addresses. */
const MAX_REFUSALS = 100;

/** Its limits, as this process knows them, and its store. */
function createServicePanels(
  { config, store, clock }: Runtime,
  { listRefusals }: { readonly listRefusals: ListRefusals },
): readonly AdminPanel[] {
  const { limits } = config;

  return [
    {
      method: 'GET',
      path: '/limits',
      show() {
        const refusals = listRefusals();
        return {
          enabled: limits.enabled,
          groups: limits.enabled ? Object.values(limits.groups) : [],
          refused: refusals.length,
          refusals: refusals.slice(0, MAX_REFUSALS).map(({ group, caller, refusal }) => ({
            group,
            by: COUNTED_BY[refusal.scope],
            caller,
            max: refusal.limit,
            until: renderTime(clock.now() + refusal.resetInMs),
          })),
        };
      },
    },
    {
      method: 'GET',
      path: '/store',
      async show() {
        const startedAt = clock.monotonic();
        try {
          await store.ping();
          const latencyMs = Math.round((clock.monotonic() - startedAt) * 100) / 100;
          return { isUp: true, ...(await store.describe()), latencyMs };
        } catch (error) {
          return { isUp: false, problem: describeCause(error) };
        }
      },
    },
  ];
}
