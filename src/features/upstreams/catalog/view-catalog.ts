// §18.2: a view as a catalogue: what is asked for is found, allowed, and passed on to whose it is.
import { fail } from '../../../core/errors/gateway-error.ts';
import type { JsonObject } from '../../../core/json.ts';
import type { Caller, Catalog, Context, RawResult } from '../../mcp/catalog/catalog.ts';
import type { RelayCall, RelayedRequest } from '../relay/relayed-call.ts';
import { type Access, failUnknown, toUsedResource } from './access.ts';
import type { ChangeHub } from './change-hub.ts';
import { complete } from './completion.ts';
import { ALL_OFFERS, describeView } from './describe-view.ts';
import { BUILT_IN, type Entry } from './entry.ts';
import type { Identify } from './identify.ts';
import { type LinkedResources, listLinkedUris } from './linked-resources.ts';
import type { ListKind } from './list-kinds.ts';
import { createListPage } from './list-page.ts';
import { mirrorArguments, readMirroredParams } from './mirrored-params.ts';
import type { Plan } from './plan.ts';
import { createResolveResource } from './resolve-resource.ts';
import type { FoundResource, View, Who } from './view.ts';
import { createWatching } from './watching.ts';

export interface ViewCatalogDeps {
  readonly view: View;
  /** That of `/mcp`. */
  readonly joined: View;
  readonly access: Access;
  readonly identify: Identify;
  readonly relayCall: RelayCall;
  readonly links: LinkedResources;
  readonly hub: ChangeHub;
  getPlan(): Plan;
}

export function createViewCatalog(deps: ViewCatalogDeps): Catalog {
  const { view, access, identify, links, getPlan } = deps;
  const resolveResource = createResolveResource(view, deps.joined, links);
  const watching = createWatching({ ...deps, resolveResource });
  const listPage = createListPage({ ...deps, hasRules: () => getPlan().rules !== undefined });
  const getBuiltIn = () => (view.shown === 'joined' ? getPlan().builtIn?.catalog : undefined);

  /** @throws GatewayError for what the caller does not see, or may not use. */
  async function findEntry(
    kind: ListKind,
    name: string,
    who: Who,
    context: Context,
    args?: JsonObject,
  ): Promise<Entry> {
    const found = await view.find(kind, name, who, context);
    if (found === undefined) return failUnknown(kind, name);
    if (found.kind === 'entry') {
      access.checkUse(kind, { ...found.entry, asked: name }, who, args);
      return found.entry;
    }
    const server = found.server.config.name;
    access.checkUse(kind, { asked: name, name, server, annotations: {} }, who, args);
    return failUnavailable(server);
  }

  /** To a server; a built-in item is answered here. */
  function send(
    server: string,
    who: Who,
    request: RelayedRequest,
    context: Context,
  ): Promise<RawResult> {
    const { upstream } = view.findServer(server) ?? failUnavailable(server);
    return deps.relayCall(upstream, who.upstream, request, context);
  }

  async function rememberLinks(server: string, result: RawResult, who: Who, context: Context) {
    const { sessionId } = who.upstream;
    const uris = sessionId === undefined ? [] : listLinkedUris(result);
    if (sessionId === undefined || uris.length === 0) return result;
    const unknown: string[] = [];
    for (const uri of uris.slice(0, MAX_LINKS)) {
      if ((await view.findResource(uri, who, context)) === undefined) unknown.push(uri);
    }
    await links.remember(sessionId, server, unknown);
    return result;
  }

  async function findResource(uri: string, who: Who, context: Context): Promise<FoundResource> {
    const found = await resolveResource(uri, who, context);
    if (found === undefined) return failUnknown('resources', uri);
    access.checkUse('resources', toUsedResource(uri, found), who);
    return found;
  }

  return {
    get offers() {
      return ALL_OFFERS;
    },
    get mirrorHeaders() {
      return getBuiltIn()?.mirrorHeaders ?? [];
    },
    describe: async (caller) => describeView(deps, await identify(caller), caller),

    listTools: (cursor, context) => listPage('tools', cursor, context),
    async callTool(name, args, context) {
      const who = await identify(context);
      const entry = await findEntry('tools', name, who, context, args);
      const { server, ownName } = entry;
      const builtIn = server === BUILT_IN ? getBuiltIn() : undefined;
      if (builtIn) return builtIn.callTool(ownName, args, context);
      const params = { name: ownName, arguments: args };
      const mirrored = mirrorArguments(entry, args);
      const request = { method: 'tools/call', params, name: ownName, mirrored } as const;
      return send(server, who, request, context).then((result) =>
        rememberLinks(server, result, who, context),
      );
    },
    async mirroredParams(tool, caller) {
      const own = (await getBuiltIn()?.mirroredParams(tool, caller)) ?? [];
      if (own.length > 0) return own;
      const who = await identify(caller);
      const found = await view.find('tools', tool, who, undefined);
      if (found?.kind !== 'entry' || found.entry.server === BUILT_IN) return [];
      return access.mayList('tools', found.entry, who) ? readMirroredParams(found.entry) : [];
    },

    listPrompts: (cursor, context) => listPage('prompts', cursor, context),
    async getPrompt(name, args, context) {
      const who = await identify(context);
      const { server, ownName } = await findEntry('prompts', name, who, context, args);
      const builtIn = server === BUILT_IN ? getBuiltIn() : undefined;
      if (builtIn) return builtIn.getPrompt(ownName, args, context);
      const params = { name: ownName, arguments: args };
      const request = { method: 'prompts/get', params, name: ownName } as const;
      return send(server, who, request, context).then((result) =>
        rememberLinks(server, result, who, context),
      );
    },

    listResources: (cursor, context) => listPage('resources', cursor, context),
    listResourceTemplates: (cursor, context) => listPage('templates', cursor, context),
    async readResource(uri, context) {
      const who = await identify(context);
      const { server, ownUri } = await findResource(uri, who, context);
      const builtIn = server === BUILT_IN ? getBuiltIn() : undefined;
      if (builtIn) return builtIn.readResource(uri, context);
      const request = { method: 'resources/read', params: { uri: ownUri }, name: ownUri } as const;
      return send(server, who, request, context);
    },

    complete: async (completion, context) =>
      complete(
        { view, getBuiltIn, findEntry, findResource, send },
        completion,
        await identify(context),
        context,
      ),

    canWatch: watching.canWatch,
    watchResources: watching.watchResources,
    setWatched: watching.setWatched,
    listen: watching.listen,
    endSession(caller: Caller) {
      const sessionId = caller.session?.sessionId;
      if (sessionId !== undefined) links.forget(sessionId);
      getBuiltIn()?.endSession?.(caller);
      void endSessions(view, identify, caller);
    },
  };
}

/** Of one result. */
const MAX_LINKS = 100;

/** What the gateway itself says of a server that has not said what it has. */
const failUnavailable = (server: string): never =>
  fail('upstream_error', {
    jsonRpc: { code: -32603, message: `${server} is not available now; try again in a moment.` },
  });

async function endSessions(view: View, identify: Identify, caller: Caller): Promise<void> {
  const { upstream: upstreamCaller } = await identify(caller);
  await Promise.all(view.listServers().map(({ upstream }) => upstream.endSession(upstreamCaller)));
}
