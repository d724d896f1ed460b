// §18.2: what a call is about, and how it is made: by whose server, under its own name, and what may go with it.

import { fail } from '../errors/gateway-error.ts';
import type { RawItem } from '../mcp/catalog/catalog.ts';
import type { MirroredParam } from '../mcp/catalog/content.ts';
import { findMirroredParams } from '../mcp/catalog/mirrored-params.ts';
import type {
  CallableList,
  CallerContext,
  RelayedTask,
  RelayedTasks,
  ServedCatalog,
  Target,
  TaskRequest,
  WantedItem,
} from '../mcp/catalog/served-catalog.ts';
import { LIST_KINDS } from '../mcp/protocol/list-kinds.ts';
import { readTaskHandle, relayTaskRequest } from '../mcp/tasks/relayed-tasks.ts';
import type { RelayedRequest } from '../mcp/upstream/server-request.ts';
import { isUnread } from '../mcp/upstream/unread-result.ts';
import { computeOnce } from '../platform/compute-once.ts';
import { JsonNumber } from '../platform/exact-json.ts';
import { isObject, type JsonObject } from '../platform/json.ts';
import { readExact, toRawJson } from '../platform/noted-json.ts';
import type { FindItem } from './find-item.ts';
import { failGone, type PassOn } from './pass-on.ts';
import type { Plan } from './plan.ts';
import { BUILT_IN, type Entry } from './prepare-list.ts';
import { findBuiltIn, type ServedPath } from './served-path.ts';
import type { Server } from './server.ts';
import { type AbsentItem, type FoundItem, failAbsent, toItem, toWho, type Who } from './view.ts';

export function createResolveTarget(
  path: ServedPath,
  { find, findResource, failAsUnknown }: FindItem,
  passOn: PassOn,
): ServedCatalog['resolve'] {
  const { view, connectUser, getPlan } = path;
  const calls = { passOn, failAsUnknown, getPlan };

  return function resolveTarget(wanted, context) {
    const who = toWho(context, context);
    if (wanted.list === 'resources') return findResourceTarget(wanted, who, context);
    // The item is nearly always known at once: then nothing is waited for.
    const finding = find(wanted.list, wanted.name, who);
    return finding instanceof Promise
      ? finding.then((found) => toTarget(found, wanted, who, context))
      : toTarget(finding, wanted, who, context);
  };

  function toTarget(
    found: FoundItem,
    wanted: WantedItem,
    who: Who,
    context: CallerContext,
  ): Target | Promise<Target> {
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

  /** §24.3: the tool by which a user logs in at a server. */
  function toConnectTarget(entry: Entry, wanted: WantedItem, who: Who): Target {
    return createTarget(entry, wanted, who, (_args, context) => {
      const server = view.findServer(entry.server) ?? failGone(entry.server);
      const call = toConnectCall(server, wanted, who, context);
      return server.usage.run(() => connectUser.connectAndTell(call));
    });
  }

  /** §24.3: what it is, is known once its user has logged in at the server. Then it is judged as what it is. */
  async function runOnceConnected(
    server: Server,
    wanted: WantedItem,
    who: Who,
    args: JsonObject,
    context: CallerContext,
  ): Promise<object> {
    const call = toConnectCall(server, wanted, who, context);
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
  function toAbsentTarget({ server, name }: AbsentItem, wanted: WantedItem, who: Who): Target {
    const kind = LIST_KINDS[wanted.list].ruled;
    const item = { kind, name, server: server.name, annotations: NONE };
    const target = createTarget(item, wanted, who, async (args, context) =>
      server.upstream.logins === undefined
        ? failAbsent(server, who)
        : runOnceConnected(server, wanted, who, args, context),
    );
    return { ...target, isAbsent: true };
  }

  async function findResourceTarget(
    wanted: WantedItem,
    who: Who,
    context: CallerContext,
  ): Promise<Target> {
    const found = await findResource(wanted.name, who);
    if (found.server === BUILT_IN) return toBuiltInTarget(toItem(found), wanted, who, context);
    const { server, ownUri: uri } = found;
    const asked = wanted.name;
    const request = { method: 'resources/read', params: { uri }, name: uri, asked } as const;
    return createTarget(toItem(found), wanted, who, (_args, running) =>
      passOn(server, who, request, running),
    );
  }

  /** As the catalogue makes it, and as policies see it here. */
  function toBuiltInTarget(
    item: Target['item'] | Entry,
    wanted: WantedItem,
    who: Who,
    context: CallerContext,
  ): Target | Promise<never> {
    const { list, name } = wanted;
    const own = findBuiltIn(path)?.resolve(wanted, context);
    // The configuration has changed since it was found.
    if (own === undefined) return failAsUnknown(list, name, who);
    return {
      ...own,
      item,
      ...('ownItem' in item && { own: item }),
      failAsUnknown: (_running, facts) => failAsUnknown(list, name, who, facts),
    };
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

// §18.2: a tool or a prompt of a server, found.

/** The same for all calls at a path. */
interface PathCalls extends Pick<FindItem, 'failAsUnknown'> {
  readonly passOn: PassOn;
  getPlan(): Plan;
}

/** A class, since every call has one: closures, of which it calls one or two, took more of it than all else. */
class ServerTarget implements Target, RelayedTasks {
  private readonly path: PathCalls;
  private readonly wanted: WantedItem;
  private readonly who: Who;
  readonly item: Entry;
  readonly own: Entry;
  readonly server: string;
  readonly relayedTasks: RelayedTasks | undefined;

  constructor(path: PathCalls, wanted: WantedItem, entry: Entry, who: Who) {
    this.path = path;
    this.wanted = wanted;
    this.who = who;
    this.item = entry;
    this.own = entry;
    this.server = entry.server;
    this.relayedTasks = wanted.list === 'tools' ? this : undefined;
  }

  listMirroredParams(): readonly MirroredParam[] {
    return this.wanted.list === 'tools' ? readMirroredParams(this.item) : NO_PARAMS;
  }

  /** Checks arguments that a guard has changed: a client's own are for the server to look at. */
  findProblem(args: JsonObject): string | undefined {
    const { ownItem } = this.item;
    return this.wanted.list === 'tools'
      ? this.path.getPlan().checkSchema?.(ownItem.inputSchema, 'arguments', args)
      : findPromptProblem(ownItem, args);
  }

  findResultProblem({ structuredContent }: JsonObject): string | undefined {
    if (this.wanted.list !== 'tools') return undefined;
    const { outputSchema } = this.item.ownItem;
    return this.path.getPlan().checkSchema?.(outputSchema, 'structuredContent', structuredContent);
  }

  run(args: JsonObject, context: CallerContext): Promise<object> {
    const { ownName } = this.item;
    const params = { name: ownName, arguments: toRawJson(args) };
    const request: RelayedRequest =
      this.wanted.list === 'tools'
        ? { method: 'tools/call', params, name: ownName, mirrored: mirror(this.item, args) }
        : { method: 'prompts/get', params, name: ownName };
    return this.path.passOn(this.server, this.who, request, context);
  }

  failAsUnknown(_context: CallerContext, facts: JsonObject): Promise<never> {
    const { list, name } = this.wanted;
    return this.path.failAsUnknown(list, name, this.who, facts);
  }

  readHandle(result: object): RelayedTask | undefined {
    return isUnread(result) || !isObject(result) ? undefined : readTaskHandle(this.server, result);
  }

  request(request: TaskRequest, context: CallerContext): Promise<RelayedTask | undefined> {
    const { path, server, who } = this;
    return relayTaskRequest(server, request, context, (sent) =>
      path.passOn(server, who, sent, context),
    );
  }
}

/** MCP "Prompts": arguments are texts. */
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

// MCP 2026-07-28 "x-mcp-header": arguments of a server's tool that are repeated in headers.

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
