// §18.2: a view as a catalogue: what is asked for is found, allowed, and passed on to whose it is.
import type { Clock } from '../../../core/clock.ts';
import type { Caller, Catalog } from '../../mcp/catalog/catalog.ts';
import type { MirroredParam } from '../../mcp/catalog/descriptions.ts';
import type { RelayCall } from '../relay/relayed-call.ts';
import type { Access } from './access.ts';
import type { ChangeHub } from './change-hub.ts';
import { complete } from './completion.ts';
import { ALL_OFFERS, describeView } from './describe-view.ts';
import { BUILT_IN } from './entry.ts';
import { createFindItem } from './find-item.ts';
import type { Identify } from './identify.ts';
import type { LinkedResources } from './linked-resources.ts';
import { createListPage } from './list-page.ts';
import { mirrorArguments, readMirroredParams } from './mirrored-params.ts';
import { createPassOn } from './pass-on.ts';
import type { Plan } from './plan.ts';
import { createResolveResource } from './resolve-resource.ts';
import type { Found, View, Who } from './view.ts';
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
  readonly clock: Clock;
  getPlan(): Plan;
}

export function createViewCatalog(deps: ViewCatalogDeps): Catalog {
  const { view, access, identify, links, getPlan } = deps;
  const resolveResource = createResolveResource(view, deps.joined, links);
  const { findEntry, findResource } = createFindItem({ ...deps, resolveResource });
  const passOn = createPassOn(view, deps.relayCall, links);
  const watching = createWatching({ ...deps, resolveResource });
  const listPage = createListPage({ ...deps, hasRules: () => getPlan().rules !== undefined });
  const getBuiltIn = () => (view.shown === 'joined' ? getPlan().builtIn?.catalog : undefined);
  /** Where the item is one of the built-in catalogue. */
  const pickBuiltIn = (server: string) => (server === BUILT_IN ? getBuiltIn() : undefined);

  function findMirroredParams(tool: string, who: Who, own: readonly MirroredParam[]) {
    if (own.length > 0) return maySeeBuiltIn(deps, tool, who) ? own : [];
    const finding = view.find('tools', tool, who, undefined);
    return finding instanceof Promise
      ? finding.then((found) => listMirroredParams(found, who))
      : listMirroredParams(finding, who);
  }

  function listMirroredParams(found: Found | undefined, who: Who): readonly MirroredParam[] {
    if (found?.kind !== 'entry' || found.entry.server === BUILT_IN) return [];
    return access.mayList('tools', found.entry, who) ? readMirroredParams(found.entry) : [];
  }

  return {
    offers: ALL_OFFERS,
    get mirrorHeaders() {
      return getBuiltIn()?.mirrorHeaders ?? [];
    },
    describe: async (caller) => describeView(deps, await identify(caller), caller),

    listTools: (cursor, context) => listPage('tools', cursor, context),
    async callTool(name, args, context) {
      // Who calls and what is called are nearly always known at once: then nothing is waited for.
      const identifying = identify(context);
      const who = identifying instanceof Promise ? await identifying : identifying;
      const finding = findEntry('tools', name, who, context, args);
      const entry = finding instanceof Promise ? await finding : finding;
      const { server, ownName } = entry;
      const builtIn = pickBuiltIn(server);
      if (builtIn) return builtIn.callTool(ownName, args, context);
      const params = { name: ownName, arguments: args };
      const mirrored = mirrorArguments(entry, args);
      return passOn(
        server,
        who,
        { method: 'tools/call', params, name: ownName, mirrored },
        context,
      );
    },
    mirroredParams(tool, caller) {
      // Nearly always both are known at once: then nothing is waited for.
      const identifying = identify(caller);
      const own = getBuiltIn()?.mirroredParams(tool, caller) ?? NO_PARAMS;
      return identifying instanceof Promise || own instanceof Promise
        ? Promise.all([identifying, own]).then(([who, params]) =>
            findMirroredParams(tool, who, params),
          )
        : findMirroredParams(tool, identifying, own);
    },

    findServerOf(kind, name, caller) {
      const identifying = identify(caller);
      return identifying instanceof Promise
        ? identifying.then((who) => view.findOwner(kind, name, who))
        : view.findOwner(kind, name, identifying);
    },

    listPrompts: (cursor, context) => listPage('prompts', cursor, context),
    async getPrompt(name, args, context) {
      const who = await identify(context);
      const { server, ownName } = await findEntry('prompts', name, who, context, args);
      const builtIn = pickBuiltIn(server);
      if (builtIn) return builtIn.getPrompt(ownName, args, context);
      const params = { name: ownName, arguments: args };
      return passOn(server, who, { method: 'prompts/get', params, name: ownName }, context);
    },

    listResources: (cursor, context) => listPage('resources', cursor, context),
    listResourceTemplates: (cursor, context) => listPage('templates', cursor, context),
    async readResource(uri, context) {
      const who = await identify(context);
      const { server, ownUri } = await findResource(uri, who, context);
      const builtIn = pickBuiltIn(server);
      if (builtIn) return builtIn.readResource(uri, context);
      const params = { uri: ownUri };
      return passOn(server, who, { method: 'resources/read', params, name: ownUri }, context);
    },

    async complete(completion, context) {
      const who = await identify(context);
      const parts = { view, pickBuiltIn, findEntry, findResource, passOn };
      return complete(parts, completion, who, context);
    },

    ...watching,
    endSession(caller) {
      const sessionId = caller.session?.sessionId;
      if (sessionId !== undefined) links.forget(sessionId);
      getBuiltIn()?.endSession?.(caller);
      // Whoever it belongs to cannot be told any more.
      endSessions(view, identify, caller).catch(() => {});
    },
  };
}

const NO_PARAMS: readonly MirroredParam[] = [];

function maySeeBuiltIn({ access, getPlan }: ViewCatalogDeps, tool: string, who: Who): boolean {
  const annotations = getPlan().builtIn?.peek('tools').byName.get(tool)?.annotations ?? {};
  return access.mayList('tools', { name: tool, server: BUILT_IN, annotations }, who);
}

async function endSessions(view: View, identify: Identify, caller: Caller): Promise<void> {
  const { upstream: upstreamCaller } = await identify(caller);
  await Promise.all(view.listServers().map(({ upstream }) => upstream.endSession(upstreamCaller)));
}
