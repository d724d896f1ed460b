// §18.2: a view as the catalogue of its path: what is asked for is found, and passed on to whose it is.

import { fail, GatewayError } from '../../errors/gateway-error.ts';
import type { Completion, CompletionRequest, RawResult } from '../../mcp/catalog/catalog.ts';
import type {
  CallerContext,
  IdentifiedCaller,
  ServedCatalog,
  ServedCompletion,
} from '../../mcp/catalog/served-catalog.ts';
import { isObject, isStringArray, type JsonObject } from '../../platform/json.ts';
import type { Guard, GuardedItem } from '../../policy/guards/guards.ts';
import { failUnknownItem } from '../../protocol/list-kinds.ts';
import { createFindAppTool } from '../apps/find-app-tool.ts';
import { canSubscribe } from '../messages/description.ts';
import { createServeSkills } from '../skills/serve-skills.ts';
import { UpstreamError } from '../upstream.ts';
import { ALL_OFFERS, describeView } from './describe-view.ts';
import { createCompletionGuards } from './guard-completion.ts';
import { guardSubscription } from './guard-subscription.ts';
import { createResolveResource } from './linked-resources.ts';
import { createListPage } from './list-page.ts';
import { createListenToServers } from './listen-to-servers.ts';
import { createPassOn } from './pass-on.ts';
import { BUILT_IN, type Entry } from './prepare-list.ts';
import { createResolveTarget } from './resolve-target.ts';
import { findBuiltIn, type ServedPath } from './served-path.ts';
import type { PassOn } from './server-target.ts';
import { createSuggestName } from './suggest-name.ts';
import {
  createFindItem,
  type FindItem,
  failAbsent,
  findDenial,
  type ResolveResource,
  toItem,
  toWho,
  type View,
  type Who,
} from './view.ts';

export function createViewCatalog(path: ServedPath): ServedCatalog {
  const { view, links, missedLists } = path;
  const resolveResource = createResolveResource(view, path.joined, links);
  const items = createFindItem(
    view,
    resolveResource,
    createFindAppTool(path),
    createSuggestName(path),
  );
  const passOn = createPassOn(path);

  return {
    server: view.path === '' || view.isCurated ? undefined : view.path,
    view: view.isCurated ? view.path : undefined,
    get title() {
      return view.getTitle();
    },
    offers: ALL_OFFERS,
    isShared: false,
    get mirrorHeaders() {
      return findBuiltIn(path)?.mirrorHeaders ?? [];
    },
    describe: (caller) => describeView(path, caller),
    list: createListPage(path),
    resolve: createResolveTarget(path, items, passOn),
    ...createServeSkills(path, passOn, resolveResource),
    complete: createComplete(path, items, passOn),
    ...createWatching(path, resolveResource),
    takeMissedLists: missedLists.take,
    endSession(caller) {
      const sessionId = caller.session?.sessionId;
      if (sessionId !== undefined) {
        links.forget(sessionId);
        missedLists.forget(sessionId);
      }
      findBuiltIn(path)?.endSession(caller);
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

function createWatching(path: ServedPath, resolveResource: ResolveResource): Watching {
  const { view, access, getPlan } = path;

  async function canWatch(uri: string, caller: IdentifiedCaller): Promise<boolean> {
    const who = toWho(caller);
    const own = { server: BUILT_IN, ownUri: uri, uri, annotations: {} };
    if (view.includes(own) && (await findBuiltIn(path)?.canWatch(uri, caller))) {
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
      const builtIn = view.includes({ server: BUILT_IN, uri }) ? findBuiltIn(path) : undefined;
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

    listen: createListenToServers(path, resolveResource),
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

/** MCP, completion: at most 100 values per answer. */
const MAX_VALUES = 100;

function createComplete(
  path: ServedPath,
  items: FindItem,
  passOn: PassOn,
): ServedCatalog['complete'] {
  const { view, getPlan } = path;

  return async function complete(completion, context) {
    const who = toWho(context, context);
    const found = await findReference(completion.ref, who).catch(failUnseen);
    const guards = createCompletionGuards(getPlan().guards, found.item, context);
    return guards === undefined
      ? completeAt(found, completion, who, context)
      : guards.guard(completion, (passed) => completeAt(found, passed, who, context));
  };

  async function completeAt(
    { server, ref }: FoundReference,
    completion: CompletionRequest,
    who: Who,
    context: CallerContext,
  ): Promise<ServedCompletion> {
    const builtIn = server === BUILT_IN ? findBuiltIn(path) : undefined;
    if (builtIn) return builtIn.complete(completion, context);
    const description = await view.findServer(server)?.lists.describe(who.upstream, who.patience);
    if (description && !isObject(description.capabilities.completions)) return NOTHING;
    const params = {
      ref,
      argument: completion.argument,
      ...(Object.keys(completion.known).length > 0 && { context: { arguments: completion.known } }),
    };
    const request = { method: 'completion/complete', params } as const;
    return readCompletion(await passOn(server, who, request, context));
  }

  /** What a server says of its failure, where it is not known which guards look at it. @throws always. */
  function failUnseen(thrown: unknown): never {
    const isOfServer = thrown instanceof GatewayError && thrown.failure.jsonRpc !== undefined;
    if (!isOfServer || getPlan().guards?.looksAt('completion/result') !== true) throw thrown;
    return fail('upstream_error', {
      jsonRpc: { code: -32603, message: 'The server is not available now; try again in a moment.' },
      cause: thrown,
    });
  }

  /** The reference in the server's own words. A client may name a URI in place of the template that it fits. */
  async function findReference(ref: CompletionRequest['ref'], who: Who): Promise<FoundReference> {
    if (ref.type === 'ref/prompt') {
      const item = await findUsable('prompts', ref.name, who);
      return { server: item.server, ref: { type: ref.type, name: item.ownName }, item };
    }
    if (await view.find('templates', ref.uri, who)) {
      const item = await findUsable('templates', ref.uri, who);
      return { server: item.server, ref: { type: ref.type, uri: item.ownName }, item };
    }
    const found = await findUsableResource(ref.uri, who);
    const { server, ownUri } = found;
    return { server, ref: { type: ref.type, uri: ownUri }, item: toItem(found) };
  }

  /** @throws GatewayError for what the caller does not see, or may not use. */
  async function findUsable(kind: 'prompts' | 'templates', name: string, who: Who): Promise<Entry> {
    const found = await items.find(kind, name, who);
    const item =
      found.kind === 'entry'
        ? found.entry
        : ({
            kind: 'prompt',
            name: found.name,
            server: found.server.name,
            annotations: {},
          } as const);
    const denial = findDenial(getPlan().policies, item, who);
    if (denial !== undefined) return items.failAsUnknown(kind, name, who, denial);
    return found.kind === 'entry' ? found.entry : failAbsent(found.server, who);
  }

  /** What is unknown is told in the same words as a template that is denied: nobody finds out by them what there is. */
  async function findUsableResource(uri: string, who: Who) {
    const found = await items.findResource(uri, who).catch((thrown: unknown) => {
      const isUnknown = thrown instanceof GatewayError && thrown.key === 'invalid_params';
      if (isUnknown) failUnknownItem('templates', uri);
      throw thrown;
    });
    const facts = findDenial(getPlan().policies, toItem(found), who);
    return facts === undefined ? found : failUnknownItem('templates', uri, { facts });
  }
}

const NOTHING: Completion = { values: [], total: 0, hasMore: false };

interface FoundReference {
  readonly server: string;
  /** In the server's own words. */
  readonly ref: JsonObject;
  /** As guards see it. */
  readonly item: GuardedItem;
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
