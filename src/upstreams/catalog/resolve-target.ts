// §18.2: what a call is about, and how it is made: by whose server, and under its own name.

import type { MirroredParam } from '../../mcp/catalog/descriptions.ts';
import type { OwnCatalog } from '../../mcp/catalog/own-catalog.ts';
import type {
  CallableList,
  CallerContext,
  Target,
  WantedItem,
} from '../../mcp/catalog/served-catalog.ts';
import type { JsonObject } from '../../platform/json.ts';
import { LIST_KINDS } from '../../protocol/list-kinds.ts';
import type { RelayedRequest } from '../relay/relayed-call.ts';
import { toItem } from './access.ts';
import { BUILT_IN, type Entry } from './entry.ts';
import { type FindItem, failAbsent } from './find-item.ts';
import { toWho } from './identify.ts';
import { mirrorArguments, readMirroredParams } from './mirrored-params.ts';
import type { PassOn } from './pass-on.ts';
import type { Found, FoundResource, Who } from './view.ts';

export type ResolveTarget = (
  wanted: WantedItem,
  context: CallerContext,
) => Target | Promise<Target>;

export interface ResolveTargetDeps extends FindItem {
  readonly passOn: PassOn;
  /** What the gateway has itself; undefined where this path does not serve it. */
  getBuiltIn(): OwnCatalog | undefined;
}

export function createResolveTarget(deps: ResolveTargetDeps): ResolveTarget {
  const { find, findResource, failAsUnknown, passOn, getBuiltIn } = deps;

  return function resolveTarget(wanted, context) {
    const who = toWho(context);
    if (wanted.list === 'resources') {
      return findResource(wanted.name, who, context).then((found) =>
        toResourceTarget(found, wanted, who, context),
      );
    }
    // What is called is nearly always known at once: then nothing is waited for.
    const finding = find(wanted.list, wanted.name, who, context);
    return finding instanceof Promise
      ? finding.then((found) => toTarget(found, wanted, who, context))
      : toTarget(finding, wanted, who, context);
  };

  function toTarget(
    found: Found,
    wanted: WantedItem,
    who: Who,
    context: CallerContext,
  ): Target | Promise<Target> {
    if (found.kind === 'absent') return toAbsentTarget(found, wanted, who);
    const { entry } = found;
    if (entry.server === BUILT_IN) return toBuiltInTarget(entry, wanted, who, context);
    const { list } = wanted;
    return {
      item: entry,
      server: entry.server,
      listMirroredParams: () => (list === 'tools' ? readMirroredParams(entry) : NO_PARAMS),
      run: (args, running) => passOn(entry.server, who, toRequest(list, entry, args), running),
      failAsUnknown: (running, facts) => failAsUnknown(list, wanted.name, who, running, facts),
    };
  }

  /** It is a name of a server that has not said what it has. */
  function toAbsentTarget(
    { server, name }: Extract<Found, { kind: 'absent' }>,
    { list, name: askedName }: WantedItem,
    who: Who,
  ): Target {
    return {
      item: { kind: LIST_KINDS[list].ruled, name, server: server.name, annotations: NONE },
      server: server.name,
      listMirroredParams: () => NO_PARAMS,
      run: async () => failAbsent(server, who),
      failAsUnknown: (running, facts) => failAsUnknown(list, askedName, who, running, facts),
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
    const request = { method: 'resources/read', params: { uri: ownUri }, name: ownUri } as const;
    return {
      item: toItem(found),
      server,
      listMirroredParams: () => NO_PARAMS,
      run: (_args, running) => passOn(server, who, request, running),
      failAsUnknown: (running, facts) =>
        failAsUnknown('resources', wanted.name, who, running, facts),
    };
  }

  /** As the catalogue makes it, and as policies see it here. */
  function toBuiltInTarget(
    item: Target['item'],
    wanted: WantedItem,
    who: Who,
    context: CallerContext,
  ): Target | Promise<Target> {
    const { list, name } = wanted;
    const own = getBuiltIn()?.resolve(wanted, context);
    // The configuration has changed since it was found.
    if (own === undefined) return failAsUnknown(list, name, who, context);
    const ruled = (target: Target): Target => ({
      ...target,
      item,
      failAsUnknown: (running, facts) => failAsUnknown(list, name, who, running, facts),
    });
    return own instanceof Promise ? own.then(ruled) : ruled(own);
  }
}

const NONE: JsonObject = {};
const NO_PARAMS: readonly MirroredParam[] = [];

/** Under the server's own name. */
function toRequest(list: CallableList, entry: Entry, args: JsonObject): RelayedRequest {
  const { ownName } = entry;
  const params = { name: ownName, arguments: args };
  return list === 'tools'
    ? { method: 'tools/call', params, name: ownName, mirrored: mirrorArguments(entry, args) }
    : { method: 'prompts/get', params, name: ownName };
}
