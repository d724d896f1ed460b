// §18.2: what a call is about, and how it is made: by whose server, and under its own name.

import { fail } from '../errors/gateway-error.ts';
import type { CallerContext, Target, WantedItem } from '../mcp/catalog/served-catalog.ts';
import { LIST_KINDS } from '../mcp/protocol/list-kinds.ts';
import type { JsonObject } from '../platform/json.ts';
import type { FindItem } from './find-item.ts';
import { failGone } from './pass-on.ts';
import { BUILT_IN, type Entry } from './prepare-list.ts';
import { findBuiltIn, type ServedPath } from './served-path.ts';
import type { Server } from './server.ts';
import { CALL_METHODS, NO_PARAMS, type PassOn, ServerTarget } from './server-target.ts';
import { type FoundItem, type FoundResource, failAbsent, toItem, toWho, type Who } from './view.ts';

type ResolveTarget = (wanted: WantedItem, context: CallerContext) => Target | Promise<Target>;

export function createResolveTarget(
  path: ServedPath,
  { find, findResource, failAsUnknown }: FindItem,
  passOn: PassOn,
): ResolveTarget {
  const { view, connectUser, getPlan } = path;
  const calls = { passOn, failAsUnknown, getPlan };

  return resolveTarget;

  function resolveTarget(wanted: WantedItem, context: CallerContext): Target | Promise<Target> {
    const who = toWho(context, context);
    if (wanted.list === 'resources') {
      return findResource(wanted.name, who).then((found) =>
        toResourceTarget(found, wanted, who, context),
      );
    }
    // The item is nearly always known at once: then nothing is waited for.
    const finding = find(wanted.list, wanted.name, who);
    return finding instanceof Promise
      ? finding.then((found) => toTarget(found, wanted, who, context))
      : toTarget(finding, wanted, who, context);
  }

  function toTarget(
    found: FoundItem,
    wanted: WantedItem,
    who: Who,
    context: CallerContext,
  ): Target | Promise<Target> {
    if (found.kind === 'absent') return toAbsentTarget(found, wanted, who);
    const { entry } = found;
    if (entry.server === BUILT_IN) return toBuiltInTarget(entry, wanted, who, context);
    if (entry.namesBegin !== undefined) return toConnectTarget(entry, wanted, who);
    return new ServerTarget(calls, wanted, entry, who);
  }

  /** §24.3: the tool by which a user logs in at a server. */
  function toConnectTarget(entry: Entry, { list, name }: WantedItem, who: Who): Target {
    return {
      item: entry,
      server: entry.server,
      listMirroredParams: () => NO_PARAMS,
      run(_args, context) {
        const { usage, upstream } = view.findServer(entry.server) ?? failGone(entry.server);
        const call = { upstream, caller: who.upstream, method: CALL_METHODS[list], context };
        return usage.run(() => connectUser.connectAndTell(call));
      },
      failAsUnknown: (_running, facts) => failAsUnknown(list, name, who, facts),
    };
  }

  /** §24.3: what it is, is known once its user has logged in at the server. Then it is judged as what it is. */
  async function runOnceConnected(
    server: Server,
    wanted: WantedItem,
    who: Who,
    args: JsonObject,
    context: CallerContext,
  ): Promise<object> {
    const call = {
      upstream: server.upstream,
      caller: who.upstream,
      method: CALL_METHODS[wanted.list],
      context,
    };
    const refused = await server.usage.run(() => connectUser.connect(call));
    if (refused !== undefined) return refused;
    const found = await find(wanted.list === 'prompts' ? 'prompts' : 'tools', wanted.name, who);
    if (found.kind === 'absent') return failAbsent(server, who);
    const target = await toTarget(found, wanted, who, context);
    const verdict = getPlan().policies.judge(target.item, who.policy, args);
    if (verdict.kind === 'allowed')
      return verdict.ask === undefined ? target.run(args, context) : askWithNextCall(server);
    const facts = { server: server.name };
    return verdict.kind === 'denied'
      ? target.failAsUnknown(context, { ...facts, deniedBy: verdict.by })
      : fail('insufficient_scope', { data: { scopes: verdict.scopes }, facts });
  }

  /** It is a name of a server that has not said what it has. */
  function toAbsentTarget(
    { server, name }: Extract<FoundItem, { kind: 'absent' }>,
    wanted: WantedItem,
    who: Who,
  ): Target {
    const { list, name: askedName } = wanted;
    return {
      item: { kind: LIST_KINDS[list].ruled, name, server: server.name, annotations: NONE },
      server: server.name,
      isAbsent: true,
      listMirroredParams: () => NO_PARAMS,
      run: async (args, context) =>
        server.upstream.logins === undefined
          ? failAbsent(server, who)
          : runOnceConnected(server, wanted, who, args, context),
      failAsUnknown: (_running, facts) => failAsUnknown(list, askedName, who, facts),
    };
  }

  function toResourceTarget(
    found: FoundResource,
    wanted: WantedItem,
    who: Who,
    context: CallerContext,
  ): Target | Promise<Target> {
    if (found.server === BUILT_IN) return toBuiltInTarget(toItem(found), wanted, who, context);
    const { server, ownUri } = found;
    const request = {
      method: 'resources/read',
      params: { uri: ownUri },
      name: ownUri,
      asked: wanted.name,
    } as const;
    return {
      item: toItem(found),
      server,
      listMirroredParams: () => NO_PARAMS,
      run: (_args, running) => passOn(server, who, request, running),
      failAsUnknown: (_running, facts) => failAsUnknown('resources', wanted.name, who, facts),
    };
  }

  /** As the catalogue makes it, and as policies see it here. */
  function toBuiltInTarget(
    item: Target['item'] | Entry,
    wanted: WantedItem,
    who: Who,
    context: CallerContext,
  ): Target | Promise<Target> {
    const { list, name } = wanted;
    const own = findBuiltIn(path)?.resolve(wanted, context);
    const described = 'ownItem' in item ? item : undefined;
    // The configuration has changed since it was found.
    if (own === undefined) return failAsUnknown(list, name, who);
    const ruled = (target: Target): Target => ({
      ...target,
      item,
      ...(described && { own: described }),
      failAsUnknown: (_running, facts) => failAsUnknown(list, name, who, facts),
    });
    return own instanceof Promise ? own.then(ruled) : ruled(own);
  }
}

/** §27: what the call is was not known when it came, and nobody was asked. */
const askWithNextCall = ({ name }: Server): object => ({
  content: [
    {
      type: 'text',
      text: `${name} is connected now, and nothing else was done: this call needs an approval first. Call again to ask for it.`,
    },
  ],
  isError: true,
});
const NONE: JsonObject = {};
