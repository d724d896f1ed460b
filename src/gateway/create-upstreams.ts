// Part of the composition root: the servers in the configuration file.
import { WARNED_TOKENS } from '../catalog/budget/list-costs.ts';
import { type CatalogSetup, listGuardServers } from '../catalog/plan.ts';
import { UpstreamCatalogs } from '../catalog/upstream-catalogs.ts';
import type { Env } from '../config/setting.ts';
import { createGuards } from '../control/guards/create-guards.ts';
import type { AskServer } from '../control/guards/define-guard.ts';
import {
  createRules,
  createRulesPolicy,
  type PreviewRequest,
  previewAccess,
} from '../control/rules/create-rules.ts';
import type { Rules } from '../control/rules/rules.ts';
import { GatewayError } from '../errors/gateway-error.ts';
import type { ProtectedEndpoint } from '../http/endpoint/endpoint.ts';
import { createJsonReply } from '../http/endpoint/message.ts';
import { JSONRPC } from '../http/endpoint/render-error.ts';
import { createLockPolicy } from '../lock/lock.ts';
import { createLockApproval } from '../lock/lock-approval.ts';
import type { StoredLock } from '../lock/lock-file.ts';
import { createNoteHidden } from '../lock/note-hidden.ts';
import type { ClientOf } from '../mcp/calls/call.ts';
import { joinPolicies } from '../mcp/calls/policy.ts';
import type { OwnCatalog } from '../mcp/catalog/own-catalog.ts';
import { createToFailedResult } from '../mcp/upstream/failures.ts';
import type { Upstream } from '../mcp/upstream/upstream.ts';
import type { ServedFile } from '../mcp/upstream/upstream-config.ts';
import { traceUpstream } from '../mcp/upstream/wrap-upstream.ts';
import { createWorkQueue } from '../platform/work-queue.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { createConnectUser, createDoors } from '../servers/doors/doors.ts';
import { openRelay } from '../servers/relay/relay-call.ts';
import {
  findFacts,
  findServerCredentials,
  findTransport,
} from '../servers/transport/transports.ts';
import type { GatewayFile, Setup } from './configuration/gateway-file.ts';
import { createAskGuardServer } from './guard-servers.ts';
import { createUpstreamOpener, type UpstreamCallers } from './open-upstream.ts';

/** The surroundings of the servers in a gateway, besides its runtime. */
export interface UpstreamPorts extends UpstreamCallers {
  /** The gateway's own tools, prompts and resources. */
  readonly ownCatalog: OwnCatalog;
  /** This process's environment: programs get a few of its variables, such as PATH (`PASSED_ON`). */
  readonly environment: Env;
  readonly findClientId: ClientOf;
  /** Written when operators approve; undefined if this process does not know of a lock file. */
  readonly storedLock: StoredLock | undefined;
}

export type GatewayUpstreams = Awaited<ReturnType<typeof openUpstreams>>;

export async function openUpstreams(runtime: Runtime, first: Setup, ports: UpstreamPorts) {
  const { clock, metrics, tracing } = runtime;
  const { baseUrl } = runtime.config.server;
  const { ownCatalog, environment, connections, findClientId, storedLock } = ports;
  const askServer = createAskGuardServer(() => catalogs.served.current.guardServers, clock);
  /** The configuration that is currently in effect. */
  let current = await compileSetup(runtime, first, askServer);
  const processCounts = new Map<string, number>();
  const { openUpstream, credentials } = createUpstreamOpener(runtime, ports, true, {
    environment,
    onProcessCount(server, count) {
      processCounts.set(server, count);
      metrics.recordUpstreamProcesses(server, count);
    },
  });
  const toFailedResult = createToFailedResult(runtime);
  const doors = createDoors(baseUrl, connections?.requests);
  const relay = openRelay(runtime, doors, toFailedResult);
  const catalogs = new UpstreamCatalogs(runtime, current, {
    builtIn: ownCatalog,
    openUpstream(config) {
      const upstream = openUpstream(config);
      notifyWhenDown(runtime, upstream);
      return tracing === undefined ? upstream : traceUpstream(upstream, tracing);
    },
    findFacts,
    relay: { relayCall: relay.relayCall, connectUser: createConnectUser(doors, toFailedResult) },
  });

  connections?.connections.onChange((owner, name) => catalogs.noteConnectionChange(owner, name));

  const listCredentials = () => current.file.servers.map(findServerCredentials);

  // Previews run one at a time, since each takes event loop turns away from calls.
  const previews = createWorkQueue({
    maxRunning: 1,
    maxWaiting: MAX_WAITING_PREVIEWS,
    maxWaitingOfOne: MAX_WAITING_PREVIEWS_OF_ONE,
    createRefusal: () =>
      new GatewayError('overloaded', {
        details: 'Too many previews of rules were requested at once. Try again in a moment.',
        headers: { 'Retry-After': '1' },
      }),
  });

  return {
    catalogs,
    endpoints: [
      ...credentials.createEndpoints((type) => listCredentials().includes(type)),
      createPathsEndpoint(baseUrl, catalogs, findClientId),
    ],
    /** Rejects while a required server is unavailable. */
    async checkRequired() {
      const down = catalogs
        .listServers()
        .filter(({ isRequired, isUp }) => isRequired && isUp !== true);
      if (down.length > 0) throw new Error(`not up: ${down.map(({ name }) => name).join(', ')}`);
    },
    /**
     * In the order of the configuration file; `processes` is the number of a program's running processes that this process started.
     */
    listServers: () =>
      catalogs.listServers().map((server) => ({
        ...server,
        processes: findTransport({ kind: server.transport }).hasProcesses
          ? (processCounts.get(server.name) ?? 0)
          : undefined,
      })),
    /** Approves descriptions, for operators. */
    lockApproval: createLockApproval(
      runtime,
      () => catalogs.listApprovable(),
      () => current.lock,
      storedLock,
    ),
    /** `operator` is the `sub` of the operator who asks. */
    previewAccess: (request: PreviewRequest, operator: string | undefined) =>
      previews.run(
        async () => previewAccess(clock, current.rules, await catalogs.listJoinedTools(), request),
        { owner: operator },
      ),
    /** All claims and groups that rules name. */
    getNamedFacts: () => current.rules.namedFacts,
    async prepare(next: Setup) {
      const compiledNext = await compileSetup(runtime, next, askServer);
      return async () => {
        await catalogs.reload(compiledNext);
        current = compiledNext;
      };
    },
    async close() {
      await relay.close();
      await catalogs.close(0);
    },
  };
}

/** Compiles rules and guards. This has no effect yet: if rules cannot be compiled, the current configuration stays in effect. */
async function compileSetup(
  runtime: Runtime,
  { file, lock }: Setup,
  askServer: AskServer,
): Promise<CatalogSetup & { readonly file: GatewayFile; readonly rules: Rules }> {
  const rules = await createRules(runtime, file.rules);
  return {
    file,
    lock,
    rules,
    guards: await createGuards(runtime, file.guards, askServer),
    // Needed only with guards, since only they change values.
    checkSchema:
      file.guards === undefined
        ? undefined
        : (await import('../mcp/catalog/foreign-schema.ts')).checkForeignSchema,
    policies: joinPolicies([
      lock && createLockPolicy(lock, createNoteHidden(runtime)),
      createRulesPolicy(rules),
    ]),
  };
}

function notifyWhenDown({ notifier }: Runtime, { config: { name }, onStateChange }: Upstream) {
  onStateChange((isUp, reason) => {
    if (isUp) return;
    notifier.notify({
      kind: 'servers',
      about: name,
      text: `The MCP server ${name} is not available: ${reason}`,
      data: { server: name, reason },
    });
  });
}

/** Maximum number of waiting previews; each operators' page requests one preview at a time. */
const MAX_WAITING_PREVIEWS = 20;
/** Maximum per operator, so that one operator's script does not lock out the others. */
const MAX_WAITING_PREVIEWS_OF_ONE = 3;

// §25.2: the paths that a logged-in user can connect to, with the costs of their tool lists.

/** `/mcp`, and the views that show the caller at least one tool. */
const createPathsEndpoint = (
  baseUrl: string,
  catalogs: UpstreamCatalogs,
  findClientId: ClientOf,
): ProtectedEndpoint => ({
  kind: 'protected',
  method: 'GET',
  path: '/paths.json',
  errors: JSONRPC,
  limit: 'mcp',
  isForOwnPages: true,
  headers: { 'Cache-Control': 'no-store', 'Cross-Origin-Resource-Policy': 'same-origin' },
  judge: ({ user }) => ({
    access: undefined,
    async run() {
      const costs = await catalogs.measureListsOf({ user, clientId: findClientId({ user }) });
      const shown = costs.filter(({ kind, tools }) => kind === 'all' || tools > 0);
      return createJsonReply(200, {
        warnedTokens: WARNED_TOKENS,
        paths: shown.map(({ kind, name, title, ...cost }) => ({
          url: kind === 'all' ? `${baseUrl}/mcp` : `${baseUrl}/mcp/${name}`,
          ...(title !== undefined && { title }),
          ...cost,
        })),
      });
    },
  }),
});

// The configuration file in effect.

/** `replace` is called when the servers match the new file. */
export interface OpenServedFile extends ServedFile {
  replace(file: GatewayFile): void;
}

export function createServedFile(file: GatewayFile): OpenServedFile {
  let served = readFile(file);

  return {
    has: (name) => served.titles.has(name),
    getTitle: (name) => served.titles.get(name),
    listConnectionServers: () => served.connectionServers,
    listNamedClaims: () => served.namedClaims,
    replace(next) {
      served = readFile(next);
    },
  };
}

const readFile = (file: GatewayFile) => {
  const guards = listGuardServers(file);
  return {
    /** Keyed by the name in `/mcp/<name>`; undefined for a server, which has no title. */
    titles: new Map<string, string | undefined>([
      ...file.servers
        .filter(({ name }) => !guards.includes(name))
        .map(({ name }) => [name, undefined] as const),
      ...(file.views ?? []).map(({ name, title }) => [name, title] as const),
    ]),
    connectionServers: file.servers.flatMap((server) => findFacts(server).connection ?? []),
    namedClaims: file.rules.flatMap(({ who }) =>
      who === 'everyone'
        ? []
        : [...Object.keys(who.claims ?? {}), ...(who.groups === undefined ? [] : ['groups'])],
    ),
  };
};
