// §18.2: a view as the catalogue of its path: what is asked for is found, and passed on to whose it is.

import { fail } from '../errors/gateway-error.ts';
import type { Guard, GuardedItem, Guards } from '../mcp/calls/guards.ts';
import type { IdentifiedCaller, ServedCatalog } from '../mcp/catalog/served-catalog.ts';
import { canSubscribe } from '../mcp/upstream/description.ts';
import { UpstreamError } from '../mcp/upstream/upstream.ts';
import { createComplete } from './completions.ts';
import { ALL_OFFERS, describeView } from './describe-view.ts';
import { createFindItem } from './find-item.ts';
import { createResolveResource } from './linked-resources.ts';
import { createListPage } from './list-page.ts';
import { createListenToServers } from './listen-to-servers.ts';
import { createPassOn } from './pass-on.ts';
import { BUILT_IN } from './prepare-list.ts';
import { createResolveTarget } from './resolve-target.ts';
import { createServeSkills } from './skills/serve-skills.ts';
import {
  findBuiltIn,
  type ResolveResource,
  type ServedPath,
  toItem,
  toWho,
  type View,
  type Who,
} from './view.ts';

export function createViewCatalog(path: ServedPath): ServedCatalog {
  const { view, links, missedLists } = path;
  const resolveResource = createResolveResource(view, path.joined, links);
  const items = createFindItem(path, resolveResource);
  const passOn = createPassOn(path);

  return {
    server: view.path === '' || view.isCurated ? undefined : view.path,
    view: view.isCurated ? view.path : undefined,
    get title() {
      return view.findConfig()?.title;
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
    const readable = await findReadable(uri, who);
    if (readable === undefined) return false;
    const { server, item } = readable;
    if (!(await guardSubscription(getPlan().guards, item, caller))) return false;
    const description = await server.lists.describe(who.upstream, who.patience);
    return description !== undefined && canSubscribe(description.capabilities);
  }

  /** The server's answer about a resource that the caller may not read would tell that there is one. */
  async function findReadable(uri: string, who: Who) {
    const found = await resolveResource(uri, who);
    const server = found && view.findServer(found.server);
    return server && access.mayRead(found, who)
      ? { server, ownUri: found.ownUri, item: toItem(found) }
      : undefined;
  }

  return {
    canWatch,

    async setWatched(uri, isWatched, caller) {
      const builtIn = view.includes({ server: BUILT_IN, uri }) ? findBuiltIn(path) : undefined;
      if (await builtIn?.canWatch(uri, caller)) return builtIn?.setWatched(uri, isWatched, caller);
      const who = toWho(caller);
      const readable = await findReadable(uri, who);
      if (readable === undefined) return;
      const { server, ownUri, item } = readable;
      await server.upstream
        .request(who.upstream, {
          method: isWatched ? 'resources/subscribe' : 'resources/unsubscribe',
          params: { uri: ownUri },
          name: ownUri,
          // It ends by the server's own time-out.
          signal: new AbortController().signal,
          trace: {},
          logLevel: undefined,
        })
        .catch((error: unknown) =>
          failWithUpstreamError(
            error,
            server.name,
            getPlan().guards?.find('resources/subscribe', item),
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

// §26: what a client wants to hear of: a URI goes to its server with it.

/** True if the guards let it. They cannot change what somebody subscribes to. */
async function guardSubscription(
  guards: Guards | undefined,
  item: GuardedItem,
  { user, clientId, view }: IdentifiedCaller,
): Promise<boolean> {
  const guard = guards?.find('resources/subscribe', item);
  if (guard === undefined) return true;
  const verdict = await guard.judge({
    value: { uri: item.name },
    caller: { user, clientId, view, requestId: undefined, trace: {} },
    findProblem: () => 'what is subscribed to cannot be changed',
  });
  return verdict.kind !== 'refused';
}
