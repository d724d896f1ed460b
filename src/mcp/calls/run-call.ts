// The path of a call: resolve the target, evaluate the policies, notify observers, apply guards and approvals, run, conclude.

import { isDeepStrictEqual } from 'node:util';
import {
  fail,
  failParams,
  GatewayError,
  getStackFacts,
  toGatewayError,
} from '../../errors/gateway-error.ts';
import { generateReference } from '../../platform/ids.ts';
import { hasRepeatedNames, isObject, type JsonObject } from '../../platform/json.ts';
import { forgetSource, noteSource, readExact, toNoted } from '../../platform/noted-json.ts';
import { PACKAGE_NAME, PACKAGE_VERSION } from '../../platform/own-files.ts';
import type { JsonPath } from '../../platform/splice-json.ts';
import { quote } from '../../platform/text.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { TaskTool } from '../catalog/catalog.ts';
import { isToolError, readFailure } from '../catalog/define/tool.ts';
import type { Target } from '../catalog/served-catalog.ts';
import { isMadeAnew, type JsonRpcRequest, readParams, readString } from '../protocol/json-rpc.ts';
import type { MethodItem } from '../protocol/methods.ts';
import {
  type Call,
  type Callers,
  type CallRecord,
  InputRequired,
  type MethodResult,
  type Outcome,
  toErrorResult,
} from './call.ts';
import {
  type CallClient,
  type CallContext,
  type CallTask,
  createContext,
  type ItemCall,
} from './context.ts';
import { findCallGuards, guardArguments, guardEnd } from './guard-call.ts';
import { CallStopped, failStopped, type Guards } from './guards.ts';
import { failWithoutTasks, METHOD_RUNS, type RunMethod, toResourceResult } from './methods.ts';
import { createCountCall, observeCalls } from './observe-calls.ts';
import { ALLOWED, type AskWhom, type Policies, type Verdict } from './policy.ts';

/** Shared by both eras: everything that they do with calls. */
export type Calls = ReturnType<typeof createCalls>;

/** Policies, guards and approvals, as calls pass them. */
export interface CallControl {
  /** All policies as one; undefined without a configuration file. */
  readonly judge: Policies['judge'] | undefined;
  /** Returns the guards of the current configuration; undefined as `judge`. */
  readonly getGuards: (() => Guards | undefined) | undefined;
  /**
   * Resolves once all required approvers have agreed to the call as it will be sent.
   *
   * @throws CallStopped for the client's model; GatewayError; in the stateless era, the error that ends a call that asks.
   */
  askFirst(call: ItemCall, whom: AskWhom): Promise<void>;
}

export function createCalls(runtime: Runtime, control: CallControl, callers: Callers) {
  const { config, clock } = runtime;
  const { displayName, environment } = config.server;
  const { findClientId, getProviderToken, endedGrants } = callers;
  const services = {
    service: { name: PACKAGE_NAME, version: PACKAGE_VERSION, displayName, environment },
    getProviderToken,
    getGuards: control.getGuards,
  };
  const observer = observeCalls(runtime, callers);
  const count = createCountCall(runtime, endedGrants);

  // V8 keeps the registers of an async function while it waits, those of temporaries included: params and arguments are read
  // by synchronous functions, and reach async ones as members of what they hold only.

  /** Runs the method of the call, or `runOwn` instead. Never rejects. The call and the bytes of its body count until it ends. */
  async function runCall(call: Call, client: CallClient, runOwn?: RunMethod): Promise<Outcome> {
    const { record } = call;
    record.startedAt = clock.monotonic();
    record.clientId = findClientId(call);
    let stopCounting: (() => void) | undefined;
    let result: MethodResult | undefined;
    let failure: unknown;
    try {
      const context = createContext(call, client, services);
      stopCounting = count(call);
      const item = record.method?.item;
      result = await (item === undefined
        ? startMethod(call, context, runOwn)
        : runItem(call, openItem(call, item, context), client));
      stopCounting();
    } catch (thrown) {
      stopCounting?.();
      failure = record.hasStarted ? thrown : await startRefused(record, thrown);
    }
    let outcome = ASKED;
    if (client.isAsking?.() !== true)
      outcome = result === undefined ? toFailedOutcome(failure, call) : toOutcome(result, record);
    record.outcome = outcome;
    observer.end(record);
    return outcome;
  }

  /** Observers are also notified of the start of a refused call. Resolves to the reason of the refusal. */
  async function startRefused(record: CallRecord, refusal: unknown): Promise<unknown> {
    try {
      record.hasStarted = true;
      await observer.start(record);
      return refusal;
    } catch (unavailable) {
      return unavailable;
    }
  }

  function startMethod(
    call: Call,
    context: CallContext,
    runOwn: RunMethod | undefined,
  ): Promise<MethodResult> {
    const run = runOwn ?? METHOD_RUNS[call.record.method?.name ?? ''] ?? fail('method_not_found');
    const params = readParams(call.message.params);
    forgetMessage(call);
    return run(params, context, call);
  }

  /** Resolves the target, evaluates the policies and notifies the observers. */
  async function runItem(
    call: Call,
    opened: OpenedCall,
    client: CallClient,
  ): Promise<MethodResult> {
    const { record } = opened;
    const resolving = opened.catalog.resolve(opened.wanted, opened.context);
    const target = resolving instanceof Promise ? await resolving : resolving;
    const item: ItemCall = Object.assign(opened, { target });
    record.target = target;
    record.server = target.server ?? record.server;
    let verdict = judgeItem(control, item);
    // Headers repeat arguments of the outer tool: they are not compared with those of a nested call.
    const checking =
      verdict.kind === 'denied' || item.isNested ? undefined : client.checkTarget?.(item);
    if (checking !== undefined) await checking;
    record.hasStarted = true;
    const starting = observer.start(record);
    if (starting !== undefined) await starting;
    // Rules may have been reloaded in the meantime.
    const hasWaited = checking !== undefined || starting !== undefined;
    if (hasWaited && verdict.kind !== 'denied') verdict = judgeItem(control, item);
    item.ask = verdict.kind === 'allowed' ? verdict.ask : undefined;
    item.isAmbiguous = item.ask !== undefined && hasRepeatedMembers(call);
    forgetMessage(call);
    if (verdict.kind !== 'allowed') return refuse(item, verdict);
    const result = await runAllowed(item, control);
    return target.item.kind === 'resource' ? toResourceResult(result) : { result };
  }

  return { services, findClientId, observer, count, run: runCall };
}

/** Before its target is resolved. */
type OpenedCall = Omit<ItemCall, 'target'>;

/** Determines the called item. If an outer tool was called (§25.3), the only call from here on is the nested one. */
function openItem(
  { record, catalog, sentText, message }: Call,
  { list, param, kind }: MethodItem,
  context: CallContext,
): OpenedCall {
  const params = readParams(message.params);
  let name = readString(params, param);
  let args = NO_ARGUMENTS;
  let isNested = false;
  if (kind !== 'resource') {
    const { arguments: sent = {} } = params;
    args = isObject(sent) ? sent : failParams('params.arguments must be an object');
    const nested = kind === 'tool' ? catalog.unwrapCall?.(name, args) : undefined;
    if (nested !== undefined) {
      ({ name, args } = nested);
      isNested = true;
      record.subject = name;
    }
    if (sentText !== undefined) noteSource(args, sentText, isNested ? SENT_NESTED : SENT);
  }
  const wanted = { list, name };
  return { wanted, catalog, record, args, context, ask: undefined, isAmbiguous: false, isNested };
}

/** Paths of the arguments in a message, and of those of a nested call (§25.3). */
const SENT: JsonPath = ['params', 'arguments'];
const SENT_NESTED: JsonPath = [...SENT, 'arguments'];

const NO_ARGUMENTS: JsonObject = {};

/** Calls may wait for minutes: memory for what was sent is released before. */
function forgetMessage(call: Call) {
  call.message = FORGOTTEN;
  call.sentText = undefined;
}

const hasRepeatedMembers = ({ sentText = '' }: Call) => hasRepeatedNames(sentText);

const FORGOTTEN: JsonRpcRequest = { kind: 'request', id: '', method: '', params: undefined };

const judgeItem = (
  { judge }: CallControl,
  { target: { item }, context, args }: ItemCall,
): Verdict => judge?.(item, context, item.kind === 'resource' ? undefined : args) ?? ALLOWED;

/** Runs a call that the policies allow: guards on the request, approval, the target, guards on the result (§26, §27). */
export async function runAllowed(item: ItemCall, control: CallControl): Promise<object> {
  const { target, record } = item;
  // No approval is requested for a call that cannot be made.
  if (target.task?.isRequired && record.era !== 'session' && item.context.task === undefined)
    failWithoutTasks(`Calls of ${target.item.name} are tasks: this needs a client`);
  const configured = control.getGuards?.();
  const guards = configured && findCallGuards(configured, target);
  try {
    if (guards?.before !== undefined && (await guardArguments(item, guards.before))) {
      const verdict = judgeItem(control, item);
      if (verdict.kind !== 'allowed') return await refuse(item, verdict);
      item.ask = verdict.ask;
      item.isAmbiguous = false;
    }
    if (item.ask !== undefined && target.isAbsent !== true) await getApproval(item, control);
    const running = startTarget(item);
    if (guards === undefined) return await running;
    const { context } = item;
    const { signal } = context.relay;
    const message = { caller: record, signal };
    try {
      return await guardEnd(running, { ...guards, target, message, context });
    } finally {
      // Messages that were sent before the response must arrive before it.
      await context.flush();
    }
  } catch (thrown) {
    if (!(thrown instanceof CallStopped)) throw thrown;
    // The caller of a tool gets a result, which its model reads; anything else is an error.
    record.deniedBy = thrown.by;
    return target.item.kind === 'tool' ? toErrorResult(thrown.message) : failStopped(thrown);
  }
}

/** Waits for approval. Minutes may pass: exactly what was approved runs, if the caller may still call it. */
async function getApproval(item: ItemCall, control: CallControl): Promise<void> {
  const { target, ask } = item;
  if (ask === undefined) return;
  // `_meta` is part of what is approved, and the same call may be made again with that approval: members that the client creates
  // for each call are neither shown nor sent.
  const { meta } = item.context.relay;
  if (meta !== undefined && Object.keys(meta).some(isMadeAnew)) {
    const kept = Object.entries(readExact(meta)).filter(([key]) => !isMadeAnew(key));
    const lasting = kept.length === 0 ? undefined : toNoted(Object.fromEntries(kept));
    item.context = item.context.withMeta(lasting);
  }
  await control.askFirst(item, ask);
  const now = await item.catalog.resolve(item.wanted, item.context);
  const verdict = judgeItem(control, item);
  if (verdict.kind !== 'allowed') return refuse(item, verdict);
  const isAsApproved = verdict.ask === undefined || verdict.ask === ask;
  if (!isSameTool(target, now) || !isAsApproved) throw new CallStopped('approval', CHANGED);
  item.target = now;
}

/** What is approved includes the server's description of the tool. */
const isSameTool = (one: Target, other: Target) =>
  one.item.server === other.item.server &&
  one.entry?.ownName === other.entry?.ownName &&
  isDeepStrictEqual(one.entry?.ownItem, other.entry?.ownItem);

const CHANGED =
  'The tool, or the rules about it, have changed since this call was approved, so nothing was done. Call again to request approval again.';

/** Starts the target. §29: from here on a call may continue as a task; guards and approvers have been asked before. */
function startTarget(item: ItemCall): Promise<object> {
  const { target, args, context } = item;
  // A waiting call does not keep its arguments: the target keeps what it needs.
  item.args = NO_ARGUMENTS;
  // Tools in this process get values, and may keep them: the text of the message would be kept, too.
  if (target.server === undefined) forgetSource(args);
  const { task } = context;
  if (task === undefined) return target.run(args, context);
  if (target.task !== undefined) return runAsTask(target.task, args, context, task);
  const running = target.run(args, context);
  return target.relayedTasks === undefined ? running : adoptTask(running, target, task);
}

/** §29.5: the server may answer with its own task. */
async function adoptTask(
  running: Promise<object>,
  { relayedTasks, server }: Target,
  task: CallTask,
): Promise<object> {
  const result = await running;
  return relayedTasks === undefined || server === undefined
    ? result
    : task.adopt(relayedTasks, server, result);
}

async function runAsTask(
  { prepare }: TaskTool,
  args: JsonObject,
  context: CallContext,
  task: CallTask,
): Promise<object> {
  const work = await prepare(args, context);
  await task.begin();
  return work(context);
}

/** Maximum length of a number in an error, in characters. */
const MAX_NUMBER = 40;

/** A denied item is unknown to its caller; RFC 6750 §3.1 for scopes. */
async function refuse(
  { record, target, context }: ItemCall,
  verdict: Exclude<Verdict, { kind: 'allowed' }>,
): Promise<never> {
  const deniedBy = verdict.kind === 'denied' ? verdict.by : 'insufficient_scope';
  const facts = { deniedBy, server: target.item.server };
  record.deniedBy = deniedBy;
  if (verdict.kind === 'scopes_missing')
    fail('insufficient_scope', { data: { scopes: verdict.scopes }, facts });
  if (verdict.rounded !== undefined)
    fail(target.item.kind === 'tool' ? 'invalid_tool_input' : 'invalid_params', {
      details: `A rule looks at the number ${quote(verdict.rounded, MAX_NUMBER)}, which cannot be compared exactly here. Send one of at most 15 digits.`,
      facts,
    });
  return target.failAsUnknown(context, facts);
}

// §4.11: the outcome, which answers, metrics, the log and the audit log share.

const ASKED: Outcome = { kind: 'asked' };

function toOutcome(result: MethodResult, { deniedBy }: CallRecord): Outcome {
  if (deniedBy !== undefined) return { kind: 'denied', by: deniedBy, result };
  return 'isError' in result.result && result.result.isError === true
    ? { kind: 'tool_error', result }
    : { kind: 'success', result };
}

/** Anything but a GatewayError is unexpected: its cause goes to the log only. */
function toFailedOutcome(thrown: unknown, call: Call): Outcome {
  const { method, subject = '', deniedBy } = call.record;
  if (thrown instanceof InputRequired) return ASKED;
  if (deniedBy !== undefined)
    return { kind: 'denied', by: deniedBy, error: toGatewayError(thrown) };
  if (thrown instanceof GatewayError) return { kind: 'failure', error: thrown };
  // The client has cancelled the call: most tools throw when they are aborted.
  if (call.signal().aborted)
    return toFailure('request_cancelled', { facts: getStackFacts(thrown) });
  if (method?.item?.kind !== 'tool')
    return toFailure('method_failed', { cause: thrown, facts: getStackFacts(thrown) });
  if (isToolError(thrown))
    return { kind: 'tool_error', result: { result: toErrorResult(readFailure(thrown)) } };
  // The message may contain secrets, such as an address with a password: it goes to the log only.
  const reference = generateReference();
  return toFailure('tool_failed', {
    details: `${subject} failed; reference ${reference}.`,
    cause: thrown,
    facts: { ...getStackFacts(thrown), reference },
  });
}

const toFailure = (...error: ConstructorParameters<typeof GatewayError>): Outcome => ({
  kind: 'failure',
  error: new GatewayError(...error),
});
