// §18.2: a view as the catalogue of its path: what is asked for is found, and passed on to whose it is.

import { fail, GatewayError } from '../../errors/gateway-error.ts';
import type { Completion, CompletionRequest, RawResult } from '../../mcp/catalog/catalog.ts';
import type { OwnCatalog } from '../../mcp/catalog/own-catalog.ts';
import type {
  CallerContext,
  IdentifiedCaller,
  ServedCatalog,
  ServedCompletion,
} from '../../mcp/catalog/served-catalog.ts';
import type { Clock } from '../../platform/clock.ts';
import { isObject, isStringArray, type JsonObject } from '../../platform/json.ts';
import type { Guard, GuardedItem } from '../../policy/guards/guards.ts';
import { failUnknownItem } from '../../protocol/list-kinds.ts';
import { createFindAppTool } from '../apps/find-app-tool.ts';
import type { ConnectUser } from '../connect/connect-user.ts';
import { canSubscribe } from '../messages/description.ts';
import type { RelayCall } from '../relay/server-request.ts';
import { createServeSkills } from '../skills/serve-skills.ts';
import { UpstreamError } from '../upstream.ts';
import type { ChangeHub } from './change-hub.ts';
import { ALL_OFFERS, describeView } from './describe-view.ts';
import { createCompletionGuards } from './guard-completion.ts';
import { guardSubscription } from './guard-subscription.ts';
import { createResolveResource, type LinkedResources } from './linked-resources.ts';
import { createListPage } from './list-page.ts';
import { type ListenDeps, listenToServers } from './listen-to-servers.ts';
import type { MissedLists } from './missed-lists.ts';
import { createPassOn } from './pass-on.ts';
import type { Plan } from './plan.ts';
import { BUILT_IN, type Entry } from './prepare-list.ts';
import { createResolveTarget } from './resolve-target.ts';
import type { PassOn } from './server-target.ts';
import { createSuggestName } from './suggest-name.ts';
import {
  type Access,
  createFindItem,
  type FindItem,
  failAbsent,
  findDenial,
  toItem,
  toWho,
  type View,
  type Who,
} from './view.ts';

export interface ViewCatalogDeps {
  readonly view: View;
  /** That of `/mcp`. */
  readonly joined: View;
  readonly access: Access;
  readonly relayCall: RelayCall;
  readonly connectUser: ConnectUser;
  readonly links: LinkedResources;
  readonly hub: ChangeHub;
  readonly missedLists: MissedLists;
  readonly clock: Clock;
  getPlan(): Plan;
}

export function createViewCatalog(deps: ViewCatalogDeps): ServedCatalog {
  const { view, links, getPlan } = deps;
  const getBuiltIn = () => (view.hasBuiltIn() ? getPlan().builtIn?.catalog : undefined);
  const resolveResource = createResolveResource(view, deps.joined, links);
  const findItem = createFindItem({
    view,
    resolveResource,
    findAppTool: createFindAppTool(deps),
    suggestName: createSuggestName(deps),
  });
  const passOn = createPassOn(deps);
  const parts = { ...deps, ...findItem, passOn, getBuiltIn };

  return {
    server: view.path === '' || view.isCurated ? undefined : view.path,
    view: view.isCurated ? view.path : undefined,
    get title() {
      return view.getTitle();
    },
    offers: ALL_OFFERS,
    isShared: false,
    get mirrorHeaders() {
      return getBuiltIn()?.mirrorHeaders ?? [];
    },
    describe: (caller) => describeView(deps, caller),
    list: createListPage({
      ...deps,
      dependsOnCaller: () => getPlan().policies.dependOnCaller,
      writePage: (page, getItem) => getPlan().writePage(page, getItem),
    }),
    resolve: createResolveTarget(parts),
    ...createServeSkills({ ...parts, resolveResource }),
    complete: createComplete(parts),
    ...createWatching({ ...deps, resolveResource }),
    takeMissedLists: deps.missedLists.take,
    endSession(caller) {
      const sessionId = caller.session?.sessionId;
      if (sessionId !== undefined) {
        links.forget(sessionId);
        deps.missedLists.forget(sessionId);
      }
      getBuiltIn()?.endSession(caller);
      // The session has ended: there is nobody left to tell of a failure.
      endSessions(view, caller).catch(() => {});
    },
  };
}

async function endSessions(view: View, caller: IdentifiedCaller): Promise<void> {
  const who = toWho(caller);
  await Promise.all(view.listServers().map(({ upstream }) => upstream.endSession(who.upstream)));
}

// §18.3: resources that tell when they change, and those who subscribe to them.

type Watching = Pick<ServedCatalog, 'canWatch' | 'setWatched' | 'listen'>;

function createWatching(deps: ListenDeps): Watching {
  const { view, access, resolveResource, getPlan } = deps;
  const getBuiltIn = () => (view.hasBuiltIn() ? getPlan().builtIn?.catalog : undefined);

  async function canWatch(uri: string, caller: IdentifiedCaller): Promise<boolean> {
    const who = toWho(caller);
    const own = { server: BUILT_IN, ownUri: uri, uri, annotations: {} };
    if (view.includes(own) && (await getBuiltIn()?.canWatch(uri, caller))) {
      return access.mayRead(own, who) && guardSubscription(getPlan().guards, toItem(own), caller);
    }
    const found = await resolveResource(uri, who);
    const server = found && view.findServer(found.server);
    if (!server || !access.mayRead(found, who)) return false;
    if (!(await guardSubscription(getPlan().guards, toItem(found), caller))) return false;
    const description = await server.lists.describe(who.upstream, who.patience);
    return description !== undefined && canSubscribe(description.capabilities);
  }

  return {
    canWatch,

    async setWatched(uri, isWatched, caller) {
      const builtIn = view.includes({ server: BUILT_IN, uri }) ? getBuiltIn() : undefined;
      if (await builtIn?.canWatch(uri, caller)) return builtIn?.setWatched(uri, isWatched, caller);
      const who = toWho(caller);
      const found = await resolveResource(uri, who);
      const server = found && view.findServer(found.server);
      // What the server says of a resource that the caller may not read would tell that there is one.
      if (!server || !access.mayRead(found, who)) return;
      await server.upstream
        .request(who.upstream, {
          method: isWatched ? 'resources/subscribe' : 'resources/unsubscribe',
          params: { uri: found.ownUri },
          name: found.ownUri,
          // It ends by the server's own time-out.
          signal: new AbortController().signal,
          trace: {},
          logLevel: undefined,
        })
        .catch((error: unknown) =>
          failWithUpstreamError(
            error,
            server.name,
            getPlan().guards?.find('resources/subscribe', toItem(found)),
          ),
        );
    },

    listen: (caller, listener, uris) => listenToServers(deps, caller, listener, uris),
  };
}

/** @throws GatewayError with the error of the server, or one that says how it failed. */
function failWithUpstreamError(error: unknown, server: string, guard: Guard | undefined): never {
  if (!(error instanceof UpstreamError)) throw error;
  // The words of a server that nobody has looked at.
  const [reason, own] = guard === undefined ? [`: ${error.message}`, error.jsonRpcError] : [''];
  const message = `${server} could not be told of it${reason}.`;
  return fail('upstream_error', { jsonRpc: own ?? { code: -32603, message } });
}

// MCP "Completion": of whose prompt or template it is.

interface CompletionDeps extends FindItem {
  readonly view: View;
  readonly passOn: PassOn;
  /** What the gateway has itself; undefined where this path does not serve it. */
  getBuiltIn(): OwnCatalog | undefined;
  getPlan(): Plan;
}

/** MCP, completion: at most 100 values per answer. */
const MAX_VALUES = 100;

const createComplete =
  (deps: CompletionDeps): ServedCatalog['complete'] =>
  async (completion, context) => {
    const who = toWho(context, context);
    const found = await findReference(deps, completion.ref, who).catch((thrown: unknown) =>
      failUnseen(deps, thrown),
    );
    const guards = createCompletionGuards(deps.getPlan().guards, found.item, context);
    return guards === undefined
      ? completeAt(deps, found, completion, who, context)
      : guards.guard(completion, (passed) => completeAt(deps, found, passed, who, context));
  };

async function completeAt(
  deps: CompletionDeps,
  { server, ref }: FoundReference,
  completion: CompletionRequest,
  who: Who,
  context: CallerContext,
): Promise<ServedCompletion> {
  const builtIn = server === BUILT_IN ? deps.getBuiltIn() : undefined;
  if (builtIn) return builtIn.complete(completion, context);
  const description = await deps.view
    .findServer(server)
    ?.lists.describe(who.upstream, who.patience);
  if (description && !isObject(description.capabilities.completions)) return NOTHING;
  const params = {
    ref,
    argument: completion.argument,
    ...(Object.keys(completion.known).length > 0 && { context: { arguments: completion.known } }),
  };
  const request = { method: 'completion/complete', params } as const;
  return readCompletion(await deps.passOn(server, who, request, context));
}

const NOTHING: Completion = { values: [], total: 0, hasMore: false };

/** What a server says of its failure, where it is not known which guards look at it. @throws always. */
function failUnseen({ getPlan }: CompletionDeps, thrown: unknown): never {
  const isOfServer = thrown instanceof GatewayError && thrown.failure.jsonRpc !== undefined;
  if (!isOfServer || getPlan().guards?.looksAt('completion/result') !== true) throw thrown;
  return fail('upstream_error', {
    jsonRpc: { code: -32603, message: 'The server is not available now; try again in a moment.' },
    cause: thrown,
  });
}

interface FoundReference {
  readonly server: string;
  /** In the server's own words. */
  readonly ref: JsonObject;
  /** As guards see it. */
  readonly item: GuardedItem;
}

/** The reference in the server's own words. A client may name a URI in place of the template that it fits. */
async function findReference(
  deps: CompletionDeps,
  ref: CompletionRequest['ref'],
  who: Who,
): Promise<FoundReference> {
  if (ref.type === 'ref/prompt') {
    const item = await findUsable(deps, 'prompts', ref.name, who);
    return { server: item.server, ref: { type: ref.type, name: item.ownName }, item };
  }
  if (await deps.view.find('templates', ref.uri, who)) {
    const item = await findUsable(deps, 'templates', ref.uri, who);
    return { server: item.server, ref: { type: ref.type, uri: item.ownName }, item };
  }
  const found = await findUsableResource(deps, ref.uri, who);
  const { server, ownUri } = found;
  return { server, ref: { type: ref.type, uri: ownUri }, item: toItem(found) };
}

/** @throws GatewayError for what the caller does not see, or may not use. */
async function findUsable(
  deps: CompletionDeps,
  kind: 'prompts' | 'templates',
  name: string,
  who: Who,
): Promise<Entry> {
  const found = await deps.find(kind, name, who);
  const item =
    found.kind === 'entry'
      ? found.entry
      : ({ kind: 'prompt', name: found.name, server: found.server.name, annotations: {} } as const);
  const denial = findDenial(deps.getPlan().policies, item, who);
  if (denial !== undefined) return deps.failAsUnknown(kind, name, who, denial);
  return found.kind === 'entry' ? found.entry : failAbsent(found.server, who);
}

/** What is unknown is told in the same words as a template that is denied: nobody finds out by them what there is. */
async function findUsableResource(deps: CompletionDeps, uri: string, who: Who) {
  const found = await deps.findResource(uri, who).catch((thrown: unknown) => {
    const isUnknown = thrown instanceof GatewayError && thrown.key === 'invalid_params';
    if (isUnknown) failUnknownItem('templates', uri);
    throw thrown;
  });
  const facts = findDenial(deps.getPlan().policies, toItem(found), who);
  return facts === undefined ? found : failUnknownItem('templates', uri, { facts });
}

function readCompletion({ completion, _meta: meta }: RawResult): ServedCompletion {
  if (!isObject(completion) || !isStringArray(completion.values)) return NOTHING;
  const { values, total, hasMore } = completion;
  return {
    values: values.slice(0, MAX_VALUES),
    ...(Number.isInteger(total) && { total: Number(total) }),
    ...(typeof hasMore === 'boolean' && { hasMore }),
    ...(isObject(meta) && { meta }),
  };
}
