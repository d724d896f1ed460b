// The path of a call: what it is about is found, judged by all policies, and run; whoever observes calls is told.

import { fail, GatewayError, getStackFacts, toGatewayError } from '../../errors/gateway-error.ts';
import { generateReference } from '../../platform/ids.ts';
import { hasRepeatedNames, type JsonObject } from '../../platform/json.ts';
import { noteSource } from '../../platform/noted-json.ts';
import { PACKAGE_NAME, PACKAGE_VERSION } from '../../platform/own-files.ts';
import type { JsonPath } from '../../platform/splice-json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { isToolError, readFailure } from '../catalog/define/tool.ts';
import { readParams } from '../protocol/json-rpc.ts';
import type { MethodItem } from '../protocol/methods.ts';
import type { Call, Callers, CallRecord } from './call.ts';
import { type CallClient, type CallContext, createContext } from './context.ts';
import {
  METHOD_RUNS,
  type RunMethod,
  readArguments,
  readString,
  toResourceResult,
} from './methods.ts';
import { createCountCall, observeCalls } from './observe-calls.ts';
import { InputRequired, type MethodResult, type Outcome, toErrorResult } from './outcome.ts';
import { type CallControl, createRunTarget, refuse } from './run-target.ts';

/** Shared by both eras: all that they do with calls. */
export type Calls = ReturnType<typeof createCalls>;

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
  const runTarget = createRunTarget(control);

  /**
   * Runs the method of the call, or `runOwn` in its place. Never rejects. The call, and the bytes of its body, count until the
   * work is done, whether somebody waits for it or not.
   */
  function run(
    call: Call,
    client: CallClient,
    params: unknown,
    runOwn?: RunMethod,
  ): Promise<Outcome> {
    const { record } = call;
    record.startedAt = clock.monotonic();
    record.clientId = findClientId(call);
    let stopCounting: (() => void) | undefined;
    let work: Promise<MethodResult>;
    try {
      const context = createContext(call, client, services, params, call.sentText);
      const members = readParams(params);
      stopCounting = count(call);
      const { item, name = '' } = record.method ?? {};
      if (item === undefined) {
        call.sentText = undefined;
        const runMethod = runOwn ?? METHOD_RUNS[name] ?? fail('method_not_found');
        work = runMethod(members, context, call);
      } else {
        work = runItem(item, members, context, call, client);
      }
    } catch (thrown) {
      work = Promise.reject(thrown);
    }
    return finish(work, call, client, stopCounting);
  }

  /** Finds what the call is about, asks the policies, tells the observers, and runs it. */
  async function runItem(
    { list, param, kind }: MethodItem,
    params: JsonObject,
    context: CallContext,
    call: Call,
    client: CallClient,
  ): Promise<MethodResult> {
    const { record, catalog } = call;
    let name = readString(params, param);
    let args = kind === 'resource' ? undefined : readArguments(params);
    let inner = kind === 'tool' && args ? catalog.unwrapCall?.(name, args) : undefined;
    // The headers of the request repeat arguments of the outer tool: they are not checked.
    const checkTarget = inner === undefined ? client.checkTarget : undefined;
    const path = inner === undefined ? SENT : SENT_INNER;
    // §25.3: from here on there is one call, and it is the inner one.
    if (inner !== undefined) {
      ({ name, args } = inner);
      record.subject = name;
    }
    if (args !== undefined && call.sentText !== undefined) noteSource(args, call.sentText, path);

    const wanted = { list, name };
    const resolving = catalog.resolve(wanted, context);
    const target = resolving instanceof Promise ? await resolving : resolving;
    record.target = target;
    record.server = target.server ?? record.server;

    let verdict = control.judge(target.item, context, args);
    const isDenied = verdict.kind === 'denied';
    const checking = isDenied ? undefined : checkTarget?.(target, context, args);
    if (checking !== undefined) await checking;
    record.hasStarted = true;
    const starting = observer.start(record);
    if (starting !== undefined) await starting;
    // Rules may have been loaded anew meanwhile.
    const hasWaited = checking !== undefined || starting !== undefined;
    if (hasWaited && !isDenied) verdict = control.judge(target.item, context, args);

    const ask = verdict.kind === 'allowed' ? verdict.ask : undefined;
    // Looked at of calls that somebody is asked about alone.
    const isAmbiguous = ask !== undefined && hasRepeatedNames(call.sentText ?? '');
    call.sentText = undefined;
    if (verdict.kind !== 'allowed') return refuse({ record, target, context }, verdict);
    const running = runTarget({
      target,
      wanted,
      catalog,
      args: args ?? NONE,
      ask,
      isAmbiguous,
      context,
      record,
    });
    // What was sent is not kept while it runs.
    params = NONE;
    args = undefined;
    inner = undefined;
    const result = await running;
    return kind === 'resource' ? toResourceResult(result) : { result };
  }

  /** Tells the observers how it ended. */
  async function finish(
    work: Promise<MethodResult>,
    call: Call,
    client: CallClient,
    stopCounting: (() => void) | undefined,
  ): Promise<Outcome> {
    const { record } = call;
    let result: MethodResult | undefined;
    let reason: unknown;
    try {
      result = await work;
    } catch (thrown) {
      reason = thrown;
    }
    stopCounting?.();
    // A call that is refused before its target is known has a start, too.
    if (result === undefined && !record.hasStarted) {
      record.hasStarted = true;
      try {
        await observer.start(record);
      } catch (unavailable) {
        reason = unavailable;
      }
    }
    let outcome: Outcome = { kind: 'asked' };
    if (!client.isAsking()) {
      outcome = result === undefined ? judgeThrown(reason, call) : judgeResult(result, record);
    }
    record.outcome = outcome;
    observer.end(record);
    return outcome;
  }

  return { services, findClientId, observer, count, run };
}

/** Paths of arguments in a message, and in the arguments of the tool that calls another (§25.3). */
const SENT: JsonPath = ['params', 'arguments'];
const SENT_INNER: JsonPath = [...SENT, 'arguments'];

const NONE: JsonObject = {};

// §4.11: how it ended. Judged here, once; whoever answers, counts, logs or audits it goes by this.

/** `deniedBy` is what stopped the call; undefined where nothing did. */
function judgeResult(result: MethodResult, { deniedBy }: CallRecord): Outcome {
  if (deniedBy !== undefined) return { kind: 'denied', by: deniedBy, result };
  return 'isError' in result.result && result.result.isError === true
    ? { kind: 'tool_error', result }
    : { kind: 'success', result };
}

/** Anything that a method throws beside GatewayErrors is unexpected: its cause is for the log alone. */
function judgeThrown(thrown: unknown, call: Call): Outcome {
  const { method, subject = '', deniedBy } = call.record;
  if (thrown instanceof InputRequired) return { kind: 'asked' };
  if (deniedBy !== undefined) {
    return { kind: 'denied', by: deniedBy, error: toGatewayError(thrown) };
  }
  if (thrown instanceof GatewayError) return { kind: 'failure', error: thrown };
  const facts = getStackFacts(thrown);
  // The client has cancelled the call, and most tools throw when they are told.
  if (call.signal().aborted) return toFailure('request_cancelled', { facts });
  if (method?.item?.kind !== 'tool') return toFailure('method_failed', { cause: thrown, facts });
  if (isToolError(thrown)) {
    return { kind: 'tool_error', result: { result: toErrorResult(readFailure(thrown)) } };
  }
  // The message may have secrets, such as an address with a password: it is for the log alone.
  const reference = generateReference();
  return toFailure('tool_failed', {
    details: `${subject} failed; reference ${reference}.`,
    cause: thrown,
    facts: { ...facts, reference },
  });
}

const toFailure = (...error: ConstructorParameters<typeof GatewayError>): Outcome => ({
  kind: 'failure',
  error: new GatewayError(...error),
});
