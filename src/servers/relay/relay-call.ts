// §18.3, §18.4: relays a call to its server, for each pair of client era and server era.

import { GatewayError } from '../../errors/gateway-error.ts';
import { passAnswers, type QuestionGuards } from '../../mcp/calls/guards.ts';
import type {
  Context,
  RawResult,
  RelayedClient,
  RelayedSessionClient,
} from '../../mcp/catalog/catalog.ts';
import type { ClientCapabilities } from '../../mcp/catalog/client-requests.ts';
import type { CacheHint } from '../../mcp/catalog/content.ts';
import type { LogSeverity } from '../../mcp/protocol/methods.ts';
import type { Doors } from '../../mcp/upstream/connection-ports.ts';
import { CallRefusedError, type ToFailedResult } from '../../mcp/upstream/failures.ts';
import {
  findQuestionProblem,
  nameAsker,
  passLog,
  passProgress,
  type RelayCall,
  type RelayedCall,
  type RelayedRequest,
  type RequestClient,
  refuseQuestion,
  toQuestionError,
} from '../../mcp/upstream/server-request.ts';
import { changeUnread, findUnread } from '../../mcp/upstream/unread-result.ts';
import {
  ConnectionNeeded,
  UpstreamError,
  type UpstreamQuestion,
  type UpstreamRuntime,
} from '../../mcp/upstream/upstream.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import { writeExactJson } from '../../platform/exact-json.ts';
import { isObject, type JsonObject, noteWritten, parseObject } from '../../platform/json.ts';
import { findText, readExact, toNoted } from '../../platform/noted-json.ts';
import { type JsonEdit, removeMembers, spliceJson } from '../../platform/splice-json.ts';
import type { TraceContext } from '../../telemetry/tracing/tracing.ts';
import {
  createStatelessRelay,
  type RoundsRequest,
  refuseStopped,
  runRounds,
  sendToServer,
} from './rounds.ts';
import { createSuspendedCalls } from './suspended/suspended-calls.ts';

export function openRelay(runtime: UpstreamRuntime, doors: Doors, toFailedResult: ToFailedResult) {
  const suspendedCalls = createSuspendedCalls(runtime);
  const relayToStatelessClient = createStatelessRelay(runtime, suspendedCalls);

  const relay = (call: RelayedCall, context: Context, client: RelayedClient = context.relay) =>
    client.era === 'session'
      ? runRounds(new SessionRequestClient(call, client, context))
      : relayToStatelessClient(call, client, context);

  /** §24.3: a client that can open pages is sent to the login, and its call then continues; other calls end with a link. */
  async function relayThroughDoors(call: RelayedCall, context: Context): Promise<JsonObject> {
    const client = doors.withoutAnswer(context.relay);
    let mayAsk = ASKING.has(call.request.method);
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await relay(call, context, client);
      } catch (thrown) {
        if (!(thrown instanceof ConnectionNeeded)) throw thrown;
        await doors.pass(thrown, call, context, mayAsk);
        if (attempt === 2) throw thrown;
        // If a client could be asked twice in one call, it could be asked endlessly.
        mayAsk = false;
      }
    }
  }

  const relayCall: RelayCall = async (upstream, caller, request, context) => {
    const call = { upstream, caller, request };
    let result: JsonObject;
    try {
      result =
        upstream.logins === undefined
          ? await relay(call, context)
          : await relayThroughDoors(call, context);
    } catch (thrown) {
      return toFailedResult(upstream.config.name, request, thrown, {
        era: context.relay.era,
        capabilities: caller.capabilities,
      });
    }
    return toRawResult(request.method, result, context);
  };

  return {
    relayCall,
    /** Ends all calls that are waiting for an answer; their clients are asked to call again. */
    close: suspendedCalls.close,
  };
}

/** Methods that do work rather than look something up: for these the client may be asked (MCP 2026-07-28 "Supported Requests"). */
const ASKING: ReadonlySet<RelayedRequest['method']> = new Set([
  'tools/call',
  'prompts/get',
  'resources/read',
]);

// §18.3: results are passed on as received, without the members that only concern the hop between gateway and server.

const SERVER_INFO = 'io.modelcontextprotocol/serverInfo';

function toRawResult(
  method: RelayedRequest['method'],
  result: JsonObject,
  { user, relay }: Pick<Context, 'user' | 'relay'>,
): RawResult {
  // The session era has no result types, so no member belongs to the transport.
  if (result.resultType === undefined && isRaw(result)) {
    // Null is not a valid value there either: it is left out along with everything else that does not fit.
    const isValue = !findUnread(result) && result.structuredContent !== null;
    return relay.era === 'session' && isValue ? toSessionResult(result) : result;
  }
  // The server's description of a task is parsed, and not passed on unchanged (§29.5).
  if (result.resultType === 'task' || method.startsWith('tasks/')) {
    const { cache: _cache, ...said } = result;
    return noteCopy(result, said);
  }
  if (findUnread(result)) return toRawUnread(method, result, user);
  const { resultType, ttlMs: _ttl, cacheScope: _scope, cache: _, _meta: meta, ...members } = result;
  if (resultType === undefined) {
    const shown = { ...members, ...(meta !== undefined && { _meta: meta }) };
    return noteCopy(result, shown);
  }
  const cache = readCacheHint(method, result, user);
  const ofMeta = toMetaMember(meta);
  const isSame = ofMeta === NO_META && cache === undefined;
  const shown = isSame ? members : { ...members, ...ofMeta, ...(cache && { cache }) };
  noteCopy(result, shown);
  return relay.era === 'session' ? toSessionResult(shown) : shown;
}

/**
 * Like `toRawResult`, for a long result of which only `_meta` is parsed. The result contains nothing that clients of the session
 * era must not get.
 */
function toRawUnread(
  method: RelayedRequest['method'],
  result: JsonObject,
  user: Context['user'],
): RawResult {
  const text = findUnread(result)?.meta;
  const meta = text === undefined ? undefined : parseObject(text);
  const isOwn = meta !== undefined && Object.hasOwn(meta, SERVER_INFO);
  const isOnlyOwn = meta !== undefined && Object.keys(meta).length === (isOwn ? 1 : 0);
  const cache = readCacheHint(method, result, user);
  return changeUnread(
    result,
    isOnlyOwn ? OF_ERA_AND_META : OF_ERA,
    isOwn && text !== undefined ? spliceJson(text, [{ path: [SERVER_INFO] }]) : undefined,
    { ...(cache && { cache }) },
  );
}

const OF_ERA = new Set(['resultType', 'ttlMs', 'cacheScope']);
const OF_ERA_AND_META = new Set([...OF_ERA, '_meta']);

/** Notes how to serialize the copy: as the result was written, without the members that the copy lacks. */
function noteCopy<Copy extends JsonObject>(result: JsonObject, copy: Copy): Copy {
  const text = findText(result);
  if (text === undefined) return copy;
  // The copy's member is the gateway's own.
  const isRemoved = (name: string) => name === 'cache' || !Object.hasOwn(copy, name);
  const rest = removeMembers(text, Object.keys(result).filter(isRemoved));
  const hasOtherMeta = copy._meta !== undefined && copy._meta !== result._meta;
  noteWritten(copy, hasOtherMeta ? spliceJson(rest, OWN_META) : rest);
  return copy;
}

const OWN_META: readonly JsonEdit[] = [{ path: ['_meta', SERVER_INFO] }];

/**
 * Since 2026-07-28 structured content may be any value; clients of earlier revisions reject a result in which it is not an object.
 */
function toSessionResult(shown: RawResult): RawResult {
  const { structuredContent } = shown;
  if (structuredContent === undefined || isObject(structuredContent)) return shown;
  const { cache } = shown;
  const { structuredContent: structure, cache: _cache, ...others } = readExact(shown);
  const content: readonly unknown[] = Array.isArray(others.content) ? others.content : [];
  // Servers should also send structured content as text.
  const isSaid = content.some((item) => isObject(item) && item.type === 'text');
  const text = { type: 'text', text: writeExactJson(structure) };
  const members = toNoted(isSaid ? others : { ...others, content: [...content, text] });
  return cache === undefined ? members : Object.assign(members, { cache });
}

/** `cache` is the gateway's own member. */
const isRaw = (result: JsonObject): result is RawResult => !Object.hasOwn(result, 'cache');

function toMetaMember(meta: unknown) {
  if (!isObject(meta)) return meta === undefined ? NO_META : { _meta: meta };
  const { [SERVER_INFO]: _, ...rest } = meta;
  return Object.keys(rest).length === 0 ? NO_META : { _meta: rest };
}

const NO_META: JsonObject = {};

/** Methods whose results have a cache lifetime. */
const CACHED = new Set(['resources/read', 'skills/get']);

/** With logins, nothing is public: rules may hide from one user what another sees. */
function readCacheHint(
  method: RelayedRequest['method'],
  { ttlMs, cacheScope }: JsonObject,
  user: Context['user'],
): CacheHint | undefined {
  if (!CACHED.has(method) || typeof ttlMs !== 'number') return undefined;
  if (!(ttlMs >= 0 && ttlMs < Number.POSITIVE_INFINITY)) return undefined;
  return { ttlMs, scope: cacheScope === 'public' && user === undefined ? 'public' : 'private' };
}

// §18.3: clients of the session era are asked while their call is in flight.

/** The client of one call. A class, since every call has one, and hardly any call asks its client. */
class SessionRequestClient implements RequestClient, RoundsRequest {
  private readonly call: RelayedCall;
  private readonly relay: RelayedSessionClient;
  private readonly context: Context;
  readonly server: string;
  readonly capabilities: ClientCapabilities;
  readonly questionGuards: QuestionGuards | undefined;
  readonly params: JsonObject;
  readonly signal: CancelSignal;
  readonly trace: TraceContext;
  readonly logLevel: LogSeverity | undefined;
  readonly wantsProgress: boolean;

  constructor(call: RelayedCall, relay: RelayedSessionClient, context: Context) {
    this.call = call;
    this.relay = relay;
    this.context = context;
    this.server = call.upstream.config.name;
    this.capabilities = call.caller.capabilities;
    this.params = call.request.params;
    this.questionGuards = relay.questionGuards;
    this.signal = relay.signal;
    this.trace = context.trace;
    this.logLevel = relay.logLevel;
    this.wantsProgress = relay.wantsProgress;
  }

  send(params: JsonObject): Promise<JsonObject> {
    return sendToServer(this.call, params, this);
  }

  progress(params: JsonObject): void {
    passProgress(this.context, params);
  }

  log(params: JsonObject): void {
    passLog(this.context, params);
  }

  /** A server of the session era waits for the answer. */
  async answer(question: UpstreamQuestion, cancelled: CancelSignal): Promise<JsonObject> {
    const problem = findQuestionProblem(question, this.capabilities);
    if (problem !== undefined) throw refuseQuestion(problem.message, problem.code);
    const answer = await this.relay
      .ask(nameAsker(this.server, question), cancelled)
      .catch((thrown: unknown) => {
        throw toQuestionError(thrown, this.signal.aborted);
      });
    if ('result' in answer) return answer.result;
    const { code, message } = answer.error;
    // Guards do not inspect errors. If a guard inspects answers, only an error's code is passed on.
    const isJudged = this.questionGuards?.looksAtAnswer(question.method) === true;
    const told = isJudged ? { code, message: FAILED } : answer.error;
    throw new UpstreamError('error', message, { jsonRpcError: told });
  }

  completeElicitation(elicitationId: string): boolean {
    return this.relay.completeElicitation(elicitationId);
  }

  /** A server of the stateless era has already answered, and gets the request again. */
  async ask(questions: Parameters<RoundsRequest['ask']>[0]): Promise<JsonObject> {
    const answers = Object.entries(questions).map(async ([key, question]) => [
      key,
      await this.askOne(question),
    ]);
    const received = Object.fromEntries(await Promise.all(answers));
    const { questionGuards } = this;
    return questionGuards === undefined
      ? received
      : passAnswers(questions, received, questionGuards).catch(refuseStopped);
  }

  /** The stateless era has no form for an answer that is an error. */
  private async askOne(question: UpstreamQuestion): Promise<JsonObject> {
    const { relay, server } = this;
    const answer = await relay.ask(nameAsker(server, question)).catch((thrown: unknown) => {
      if (relay.signal.aborted || !(thrown instanceof GatewayError)) throw thrown;
      throw createCallRefusal(server, thrown.message);
    });
    if ('result' in answer) return answer.result;
    throw createCallRefusal(server, answer.error.message);
  }
}

const FAILED = 'The client answered with an error.';

const createCallRefusal = (server: string, reason: string) =>
  new CallRefusedError(`${server} asked, and this client gave no answer: ${reason}`);
