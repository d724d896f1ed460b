// §18.3, §18.4: a call goes through to its server, whatever the eras of client and server.

import type { Context, RawResult, Relay } from '../../mcp/catalog/catalog.ts';
import type { CacheHint } from '../../mcp/catalog/content.ts';
import { writeExactJson } from '../../platform/exact-json.ts';
import { isObject, type JsonObject, noteWritten } from '../../platform/json.ts';
import { findText, readExact, toNoted } from '../../platform/noted-json.ts';
import { type JsonEdit, removeMembers, spliceJson } from '../../platform/splice-json.ts';
import { type ConnectUser, createConnectUser } from '../connect/connect-user.ts';
import { type Doors, withoutDoorAnswer } from '../connect/doors.ts';
import { isUnread } from '../messages/unread-result.ts';
import { ConnectionNeeded, type UpstreamRuntime } from '../upstream.ts';
import { createToFailedResult } from './failures.ts';
import { createRedeemAnswers } from './rounds.ts';
import type { RelayCall, RelayedCall, RelayedRequest } from './server-request.ts';
import { relayToSessionClient } from './session-client.ts';
import { relayToStatelessClient } from './stateless-client.ts';
import { createSuspendedCalls } from './suspended/suspended-calls.ts';

export interface CallRelay {
  readonly relayCall: RelayCall;
  readonly connectUser: ConnectUser;
  /** Ends all calls that wait for an answer; their clients are told to call again. */
  close(): Promise<void>;
}

export function openRelay(runtime: UpstreamRuntime, doors: Doors): CallRelay {
  const toFailedResult = createToFailedResult(runtime);
  const suspendedCalls = createSuspendedCalls(runtime);
  const resumption = { suspendedCalls, redeemAnswers: createRedeemAnswers(runtime) };

  const relay = (
    call: RelayedCall,
    context: Context,
    client: Relay = context.relay,
  ): Promise<JsonObject> =>
    client.era === 'session'
      ? relayToSessionClient(call, client, context)
      : relayToStatelessClient(resumption, call, client, context);

  /** §24.3: once its user has logged in at the server, a call goes on by itself. */
  function relayThroughDoors(call: RelayedCall, context: Context): Promise<JsonObject> {
    const mayAsk = ASKING.has(call.request.method);
    const client = withoutDoorAnswer(context.relay);
    return relay(call, context, client).catch(async (thrown: unknown) => {
      if (!(thrown instanceof ConnectionNeeded)) throw thrown;
      await doors.pass(thrown, call, context, mayAsk);
      return relay(call, context, client).catch(async (again: unknown) => {
        // A client that is asked twice in one call would be asked without end.
        if (again instanceof ConnectionNeeded) await doors.pass(again, call, context, false);
        throw again;
      });
    });
  }

  const relayCall: RelayCall = (upstream, caller, request, context) => {
    const call = { upstream, caller, request };
    const relaying =
      upstream.logins === undefined ? relay(call, context) : relayThroughDoors(call, context);
    return relaying.then(
      (result) => toRawResult(request.method, result, context),
      (thrown: unknown) =>
        toFailedResult(upstream.config.name, request.method, thrown, {
          era: context.relay.era,
          capabilities: caller.capabilities,
        }),
    );
  };

  return {
    relayCall,
    connectUser: createConnectUser(doors, toFailedResult),
    close: suspendedCalls.close,
  };
}

/** Others are looked up, not called: nobody is asked anything for them (MCP 2026-07-28 "Supported Requests"). */
const ASKING: ReadonlySet<RelayedRequest['method']> = new Set([
  'tools/call',
  'prompts/get',
  'resources/read',
]);

// §18.3: results are passed on as they came, without what belongs to the way between the gateway and the server.

const SERVER_INFO = 'io.modelcontextprotocol/serverInfo';

function toRawResult(
  method: RelayedRequest['method'],
  result: JsonObject,
  { user, relay }: Pick<Context, 'user' | 'relay'>,
): RawResult {
  // The session era has no result types: there nothing is the transport's own.
  if (result.resultType === undefined && isRaw(result)) {
    // Nor is null a value there: it is left out together with all else that does not fit.
    const isValue = !isUnread(result) && result.structuredContent !== null;
    return relay.era === 'session' && isValue ? toSessionResult(result) : result;
  }
  // What it says of a task is read, and not passed on as it is (§29.5).
  if (result.resultType === 'task' || method.startsWith('tasks/')) {
    const { cache: _cache, ...said } = result;
    return noteCopy(result, said);
  }
  const { resultType, ttlMs, cacheScope, cache: _, _meta: meta, ...members } = result;
  if (resultType === undefined) {
    const shown = { ...members, ...(meta !== undefined && { _meta: meta }) };
    return noteCopy(result, shown);
  }
  const cache = CACHED.has(method) ? readCacheHint(ttlMs, cacheScope, user) : undefined;
  const ofMeta = toMetaMember(meta);
  const isSame = ofMeta === NO_META && cache === undefined;
  const shown = isSame ? members : { ...members, ...ofMeta, ...(cache && { cache }) };
  noteCopy(result, shown);
  return relay.era === 'session' ? toSessionResult(shown) : shown;
}

/** The copy is written as the result was, without what the copy lacks. */
function noteCopy<Copy extends JsonObject>(result: JsonObject, copy: Copy): Copy {
  const text = findText(result);
  if (text === undefined) return copy;
  // That of the copy is the gateway's.
  const isRemoved = (name: string) => name === 'cache' || !Object.hasOwn(copy, name);
  const rest = removeMembers(text, Object.keys(result).filter(isRemoved));
  const hasOtherMeta = copy._meta !== undefined && copy._meta !== result._meta;
  noteWritten(copy, hasOtherMeta ? spliceJson(rest, OWN_META) : rest);
  return copy;
}

const OWN_META: readonly JsonEdit[] = [{ path: ['_meta', SERVER_INFO] }];

/** Since 2026-07-28 it may be any value; clients of the revisions before refuse a result where it is no object. */
function toSessionResult(shown: RawResult): RawResult {
  const { structuredContent } = shown;
  if (structuredContent === undefined || isObject(structuredContent)) return shown;
  const { cache } = shown;
  const { structuredContent: structure, cache: _cache, ...others } = readExact(shown);
  const content: readonly unknown[] = Array.isArray(others.content) ? others.content : [];
  // Servers are to say it as text, too.
  const isSaid = content.some((item) => isObject(item) && item.type === 'text');
  const text = { type: 'text', text: writeExactJson(structure) };
  const members = toNoted(isSaid ? others : { ...others, content: [...content, text] });
  return cache === undefined ? members : Object.assign(members, { cache });
}

/** Of those servers say how long their result may be kept. */
const CACHED: ReadonlySet<string> = new Set(['resources/read', 'skills/get']);

/** `cache` is the gateway's own word. */
const isRaw = (result: JsonObject): result is RawResult => !Object.hasOwn(result, 'cache');

function toMetaMember(meta: unknown): JsonObject {
  if (!isObject(meta)) return meta === undefined ? NO_META : { _meta: meta };
  const { [SERVER_INFO]: _, ...rest } = meta;
  return Object.keys(rest).length === 0 ? NO_META : { _meta: rest };
}

const NO_META: JsonObject = {};

/** Behind a login nothing is public: rules may show one user what another does not see. */
function readCacheHint(
  ttlMs: unknown,
  scope: unknown,
  user: Context['user'],
): CacheHint | undefined {
  if (typeof ttlMs !== 'number' || !(ttlMs >= 0 && ttlMs < Number.POSITIVE_INFINITY))
    return undefined;
  return { ttlMs, scope: scope === 'public' && user === undefined ? 'public' : 'private' };
}
