// §18.2: resolves the name in a call to its target: the server, the server's own name for the item, and the mirrored arguments.

import { fail, failUpstream, GatewayError } from '../errors/gateway-error.ts';
import { guardCompletion, toCompletionParams } from '../mcp/calls/guard-call.ts';
import type { GuardedItem } from '../mcp/calls/guards.ts';
import type { PolicyItem } from '../mcp/calls/policy.ts';
import type { Completion, CompletionRequest, RawItem, RawResult } from '../mcp/catalog/catalog.ts';
import type { MirroredParam } from '../mcp/catalog/content.ts';
import { findMirroredParams } from '../mcp/catalog/mirrored-params.ts';
import type {
  CallableList,
  CallerContext,
  RelayedTask,
  RelayedTasks,
  ServedCatalog,
  ServedCompletion,
  Target,
  TaskRequest,
  WantedItem,
} from '../mcp/catalog/served-catalog.ts';
import { failUnknownItem, LIST_KINDS } from '../mcp/protocol/list-kinds.ts';
import { readTaskHandle, relayTaskRequest } from '../mcp/tasks/relayed-tasks.ts';
import type { RelayedRequest } from '../mcp/upstream/server-request.ts';
import { findUnread } from '../mcp/upstream/unread-result.ts';
import { computeOnce } from '../platform/bounded-map.ts';
import { JsonNumber } from '../platform/exact-json.ts';
import { isObject, isStringArray, type JsonObject } from '../platform/json.ts';
import { readExact, toRawJson } from '../platform/noted-json.ts';
import { failGone, type PassOn } from './pass-on.ts';
import { type ServedPlan, toWho, type Who } from './plan.ts';
import { BUILT_IN, type Entry } from './prepare-list.ts';
import { findBuiltIn, findDenial, isUnseen, type ServedPath, toItem } from './served-path.ts';
import type { Server } from './server.ts';
import { type FoundItem, failAbsent } from './view.ts';
import type { FindItem } from './views.ts';

export function createResolveTarget(
  path: ServedPath,
  items: FindItem,
  passOn: PassOn,
): ServedCatalog['resolve'] {
  const { view, connectUser, served } = path;
  const { failAsUnknown } = items;
  const calls = { passOn, failAsUnknown, served };

  return function resolveTarget(wanted, context) {
    const who = toWho(context, context);
    const { list, name } = wanted;
    // The entry is nearly always cached, so that there is nothing to wait for.
    const entry = list === 'resources' ? undefined : view.findCurrent(list, name, who.upstream);
    return entry === undefined
      ? findTarget(wanted, who, context)
      : toTarget(entry, wanted, who, context);
  };

  async function findTarget(wanted: WantedItem, who: Who, context: CallerContext): Promise<Target> {
    const { list, name } = wanted;
    if (list !== 'resources')
      return toTarget(await items.find(list, name, who), wanted, who, context);
    const found = await items.findResource(name, who);
    const item = toItem(found);
    const { server, ownUri: uri } = found;
    if (server === BUILT_IN) return toBuiltInTarget(item, wanted, who, context);
    const request = {
      method: 'resources/read',
      params: { uri },
      name: uri,
      clientUri: name,
    } as const;
    return createTarget(item, wanted, who, (_args, running) =>
      passOn(server, who, request, running),
    );
  }

  function toTarget(
    found: FoundItem,
    wanted: WantedItem,
    who: Who,
    context: CallerContext,
  ): Target | Promise<never> {
    if (found.kind === 'absent') return toAbsentTarget(found, wanted, who);
    if (found.server === BUILT_IN) return toBuiltInTarget(found, wanted, who, context);
    if (found.namesBegin !== undefined) return toConnectTarget(found, wanted, who);
    return new ServerTarget(calls, wanted, found, who);
  }

  function createTarget(
    item: Target['item'],
    { list, name }: WantedItem,
    who: Who,
    run: Target['run'],
  ): Target {
    return {
      item,
      server: item.server,
      listMirroredParams: () => NO_PARAMS,
      run,
      failAsUnknown: (_running, facts) => failAsUnknown(list, name, who, facts),
    };
  }

  function toConnectCall(
    { upstream }: Server,
    { list }: WantedItem,
    who: Who,
    context: CallerContext,
  ) {
    return { upstream, caller: who.upstream, method: CALL_METHODS[list], context };
  }

  /** §24.3: the tool that logs a user in to a server. */
  function toConnectTarget(entry: Entry, wanted: WantedItem, who: Who): Target {
    return createTarget(entry, wanted, who, (_args, context) => {
      const server = view.findServer(entry.server) ?? failGone(entry.server);
      const call = toConnectCall(server, wanted, who, context);
      return server.inFlight.run(() => connectUser.connectAndTell(call));
    });
  }

  /** The target for a name of a server that has not listed its entries yet. */
  function toAbsentTarget(
    { server, name }: Extract<FoundItem, { kind: 'absent' }>,
    wanted: WantedItem,
    who: Who,
  ): Target {
    const kind = LIST_KINDS[wanted.list].ruled;
    const item = { kind, name, server: server.name, annotations: NONE };
    const target = createTarget(item, wanted, who, async (args, context) => {
      if (server.upstream.logins === undefined) return failAbsent(server, who);
      const call = toConnectCall(server, wanted, who, context);
      const refused = await server.inFlight.run(() => connectUser.connect(call));
      if (refused !== undefined) return refused;
      // §24.3: the item becomes known only once the user has logged in to the server, so the policies judge the actual item here.
      const found = await items.find(wanted.list, wanted.name, who);
      if (found.kind === 'absent') return failAbsent(server, who);
      const connected = await toTarget(found, wanted, who, context);
      const verdict = served.current.policies.judge(connected.item, who.policy, args);
      if (verdict.kind === 'allowed')
        return verdict.ask === undefined ? connected.run(args, context) : askWithNextCall(server);
      const facts = { server: server.name };
      return verdict.kind === 'denied'
        ? connected.failAsUnknown(context, { ...facts, deniedBy: verdict.by })
        : fail('insufficient_scope', { data: { scopes: verdict.scopes }, facts });
    });
    return { ...target, isAbsent: true };
  }

  /** The target of the built-in catalogue, with the item that policies see on this path. */
  function toBuiltInTarget(
    item: Target['item'] | Entry,
    wanted: WantedItem,
    who: Who,
    context: CallerContext,
  ): Target | Promise<never> {
    const { list, name } = wanted;
    const own = findBuiltIn(path)?.resolve(wanted, context);
    // The built-in catalogue was removed from the configuration after the item was found.
    if (own === undefined) return failAsUnknown(list, name, who);
    return {
      ...own,
      item,
      ...('ownItem' in item && { entry: item }),
      failAsUnknown: (_running, facts) => failAsUnknown(list, name, who, facts),
    };
  }
}

/** §27: the item was not known when the call arrived, so no approval was requested. */
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

// §18.2: the target for a tool or a prompt of a server.

/** Shared by all calls at a path. */
interface PathCalls extends Pick<FindItem, 'failAsUnknown'> {
  readonly passOn: PassOn;
  readonly served: ServedPlan;
}

/** A class, since every call creates one: its closures took more memory than everything else in the call. */
class ServerTarget implements Target, RelayedTasks {
  private readonly path: PathCalls;
  private readonly wanted: WantedItem;
  private readonly who: Who;
  readonly item: Entry;
  readonly entry: Entry;
  readonly server: string;
  readonly relayedTasks: RelayedTasks | undefined;

  constructor(path: PathCalls, wanted: WantedItem, entry: Entry, who: Who) {
    this.path = path;
    this.wanted = wanted;
    this.who = who;
    this.item = entry;
    this.entry = entry;
    this.server = entry.server;
    this.relayedTasks = wanted.list === 'tools' ? this : undefined;
  }

  listMirroredParams(): readonly MirroredParam[] {
    return this.wanted.list === 'tools' ? readMirroredParams(this.item) : NO_PARAMS;
  }

  /** Checks arguments that a guard has changed. Arguments from clients are checked by the server itself. */
  findProblem(args: JsonObject): string | undefined {
    const { ownItem } = this.item;
    return this.wanted.list === 'tools'
      ? this.path.served.current.checkSchema?.(ownItem.inputSchema, 'arguments', args)
      : findPromptProblem(ownItem, args);
  }

  findResultProblem({ structuredContent }: JsonObject): string | undefined {
    if (this.wanted.list !== 'tools') return undefined;
    const { outputSchema } = this.item.ownItem;
    return this.path.served.current.checkSchema?.(
      outputSchema,
      'structuredContent',
      structuredContent,
    );
  }

  run(args: JsonObject, context: CallerContext): Promise<object> {
    const { ownName } = this.item;
    const params = { name: ownName, arguments: toRawJson(args) };
    const request: RelayedRequest =
      this.wanted.list === 'tools'
        ? {
            method: 'tools/call',
            params,
            name: ownName,
            isRepeatable: isRepeatable(this.item),
            mirrored: mirror(this.item, args),
          }
        : { method: 'prompts/get', params, name: ownName };
    return this.path.passOn(this.server, this.who, request, context);
  }

  failAsUnknown(_context: CallerContext, facts: JsonObject): Promise<never> {
    const { list, name } = this.wanted;
    return this.path.failAsUnknown(list, name, this.who, facts);
  }

  readHandle(result: object): RelayedTask | undefined {
    return findUnread(result) || !isObject(result)
      ? undefined
      : readTaskHandle(this.server, result);
  }

  request(request: TaskRequest, context: CallerContext): Promise<RelayedTask | undefined> {
    const { path, server, who } = this;
    return relayTaskRequest(server, request, context, (sent) =>
      path.passOn(server, who, sent, context),
    );
  }
}

/** MCP "ToolAnnotations": the server's own hints, used only to advise the client's model. */
const isRepeatable = ({ annotations }: Entry) =>
  annotations.readOnlyHint === true || annotations.idempotentHint === true;

/** MCP "Prompts": arguments are strings. */
function findPromptProblem({ arguments: named }: RawItem, args: JsonObject): string | undefined {
  const needed = (Array.isArray(named) ? named : []).flatMap((one: unknown) =>
    isObject(one) && one.required === true ? [String(one.name)] : [],
  );
  const missing = needed.find((name) => !Object.hasOwn(args, name));
  if (missing !== undefined) return `arguments has no ${missing}`;
  return Object.values(args).every((value) => typeof value === 'string')
    ? undefined
    : 'arguments must be texts';
}

const CALL_METHODS = {
  tools: 'tools/call',
  prompts: 'prompts/get',
  resources: 'resources/read',
} as const satisfies Readonly<Record<CallableList, RelayedRequest['method']>>;

const NO_PARAMS: readonly MirroredParam[] = [];

// MCP 2026-07-28 "x-mcp-header": arguments of a server's tool that are mirrored in headers.

const readMirroredParams = computeOnce(({ ownItem }: Entry) =>
  findMirroredParams(ownItem.inputSchema),
);

/** The headers of a call, by name; the transport encodes their values. */
function mirror(entry: Entry, args: JsonObject): Readonly<Record<string, string>> {
  const params = readMirroredParams(entry);
  if (params.length === 0) return NOT_MIRRORED;
  const exact = readExact(args);
  return Object.fromEntries(
    params.flatMap(({ header, path }) => {
      const value = getMember(exact, path);
      if (value instanceof JsonNumber) return [[header, value.text]];
      return MIRRORED.has(typeof value) ? [[header, String(value)]] : [];
    }),
  );
}

const NOT_MIRRORED = {};
const MIRRORED = new Set(['string', 'number', 'boolean']);

const getMember = (value: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>(
    (at, key) => (isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined),
    value,
  );

// MCP "Completion": completes arguments; the server that has the prompt or template does so.

/** MCP, completion: at most 100 values per answer. */
const MAX_VALUES = 100;

export function createComplete(
  path: ServedPath,
  items: FindItem,
  passOn: PassOn,
): ServedCatalog['complete'] {
  const { view, served } = path;

  return async function complete(completion, context) {
    const who = toWho(context, context);
    const found = await findReference(completion.ref, who).catch((cause: unknown) => {
      // If the item is unknown, its guards are unknown, too.
      if (!isUnseen(served.current, 'completion/result', cause)) throw cause;
      return failUpstream('The server is not available now; try again in a moment.', { cause });
    });
    const { server, ref } = found;
    const guarded = { guards: served.current.guards, item: found.item, context };
    return guardCompletion(guarded, completion, async (passed) => {
      const builtIn = server === BUILT_IN ? findBuiltIn(path) : undefined;
      if (builtIn) return builtIn.complete(passed, context);
      const description = await view.findServer(server)?.lists.describe(who.upstream, who.patience);
      if (description && !isObject(description.capabilities.completions)) return NOTHING;
      const params = { ...toCompletionParams(passed), ref };
      const request = { method: 'completion/complete', params } as const;
      return readCompletion(await passOn(server, who, request, context));
    });
  };

  /** The reference in the server's own words. A client may send a URI instead of the template that it matches. */
  async function findReference(ref: CompletionRequest['ref'], who: Who): Promise<FoundReference> {
    if (ref.type === 'ref/prompt') {
      const item = await findUsable('prompts', ref.name, who);
      return { server: item.server, ref: { type: ref.type, name: item.ownName }, item };
    }
    if (await view.find('templates', ref.uri, who)) {
      const item = await findUsable('templates', ref.uri, who);
      return { server: item.server, ref: { type: ref.type, uri: item.ownName }, item };
    }
    // Unknown items fail like a denied template, so that the error does not reveal which items exist.
    const found = await items.findResource(ref.uri, who).catch((thrown: unknown) => {
      const isUnknown = thrown instanceof GatewayError && thrown.key === 'invalid_params';
      if (isUnknown) failUnknownItem('templates', ref.uri);
      throw thrown;
    });
    const facts = findDenial(served.current.policies, toItem(found), who);
    if (facts !== undefined) return failUnknownItem('templates', ref.uri, { facts });
    const { server, ownUri } = found;
    return { server, ref: { type: ref.type, uri: ownUri }, item: toItem(found) };
  }

  /** @throws GatewayError if the caller does not see the item, or may not use it. */
  async function findUsable(kind: 'prompts' | 'templates', name: string, who: Who): Promise<Entry> {
    const found = await items.find(kind, name, who);
    const item: PolicyItem =
      found.kind === 'absent'
        ? { kind: 'prompt', name: found.name, server: found.server.name, annotations: {} }
        : found;
    const denial = findDenial(served.current.policies, item, who);
    if (denial !== undefined) return items.failAsUnknown(kind, name, who, denial);
    return found.kind === 'absent' ? failAbsent(found.server, who) : found;
  }
}

const NOTHING: Completion = { values: [], total: 0, hasMore: false };

interface FoundReference {
  readonly server: string;
  /** In the server's own words. */
  readonly ref: JsonObject;
  /** The item that guards see. */
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
