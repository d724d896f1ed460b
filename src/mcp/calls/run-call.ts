// The path of a call: what it is about is found, judged by all policies, and run; whoever observes calls is told.

import { fail, GatewayError, getStackFacts, toGatewayError } from '../../errors/gateway-error.ts';
import { generateReference } from '../../platform/ids.ts';
import { hasRepeatedNames, type JsonObject } from '../../platform/json.ts';
import { noteSource } from '../../platform/noted-json.ts';
import { PACKAGE_NAME, PACKAGE_VERSION } from '../../platform/own-files.ts';
import type { JsonPath } from '../../platform/splice-json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { isToolError, readFailure } from '../catalog/define/tool.ts';
import type { Target, WantedItem } from '../catalog/served-catalog.ts';
import { readParams } from '../protocol/json-rpc.ts';
import type { MethodItem } from '../protocol/methods.ts';
import type { Call, Callers, CallRecord } from './call.ts';
import { type CallClient, type CallContext, type CheckTarget, createContext } from './context.ts';
import {
  METHOD_RUNS,
  type RunMethod,
  readArguments,
  readString,
  toResourceResult,
} from './methods.ts';
import { createCountCall, observeCalls } from './observe-calls.ts';
import { InputRequired, type MethodResult, type Outcome, toErrorResult } from './outcome.ts';
import type { Verdict } from './policy.ts';
import {
  type AllowedCall,
  type CallControl,
  createRunTarget,
  judgeAgain,
  refuse,
} from './run-target.ts';

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

  // None of these functions awaits anything while it has the params: V8 would keep them until the call ends, even those that were
  // only arguments of a call within. Waiting is apart from what need not wait: a function whose closures may have to be made pays
  // for what they use in each call.

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
      const context = createContext(call, client, services, params);
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
    return watch(work, call, client, stopCounting);
  }

  /** Finds what the call is about. */
  function runItem(
    { list, param, kind }: MethodItem,
    params: JsonObject,
    context: CallContext,
    call: Call,
    client: CallClient,
  ): Promise<MethodResult> {
    const { record, catalog, sentText } = call;
    let name = readString(params, param);
    let args = kind === 'resource' ? undefined : readArguments(params);
    const inner = kind === 'tool' && args ? catalog.unwrapCall?.(name, args) : undefined;
    // §25.3: from here on there is one call, and it is the inner one.
    if (inner !== undefined) {
      ({ name, args } = inner);
      record.subject = name;
    }
    if (args !== undefined && sentText !== undefined)
      noteSource(args, sentText, inner === undefined ? SENT : SENT_INNER);
    // The headers of the request repeat arguments of the outer tool: they are not checked.
    const checkTarget = inner === undefined ? client.checkTarget : undefined;
    const wanted = { list, name };
    const resolving = catalog.resolve(wanted, context);
    return resolving instanceof Promise
      ? admitOnceFound(resolving, wanted, args, context, call, checkTarget)
      : admit(resolving, wanted, args, context, call, checkTarget);
  }

  function admitOnceFound(
    resolving: Promise<Target>,
    wanted: WantedItem,
    args: JsonObject | undefined,
    context: CallContext,
    call: Call,
    checkTarget: CheckTarget | undefined,
  ): Promise<MethodResult> {
    return resolving.then((target) => admit(target, wanted, args, context, call, checkTarget));
  }

  /** Asks the policies, and tells the observers. */
  function admit(
    target: Target,
    wanted: WantedItem,
    args: JsonObject | undefined,
    context: CallContext,
    call: Call,
    checkTarget: CheckTarget | undefined,
  ): Promise<MethodResult> {
    const { record, catalog } = call;
    record.target = target;
    record.server = target.server ?? record.server;
    const verdict = control.judge(target.item, context, args);
    const checking = verdict.kind === 'denied' ? undefined : checkTarget?.(target, context, args);
    const starting = checking === undefined ? tellStart(record) : tellStartAfter(checking, record);
    const item: AllowedCall = {
      target,
      wanted,
      catalog,
      args: args ?? NO_ARGUMENTS,
      ask: undefined,
      isAmbiguous: false,
      context,
      record,
    };
    return starting === undefined
      ? runJudged(item, verdict, call)
      : runOnceTold(starting, item, verdict, call);
  }

  function tellStartAfter(checking: Promise<void>, record: CallRecord): Promise<void> {
    return checking.then(() => tellStart(record));
  }

  function runOnceTold(
    starting: Promise<void>,
    item: AllowedCall,
    verdict: Verdict,
    call: Call,
  ): Promise<MethodResult> {
    return starting.then(() => {
      // Rules may have been loaded anew meanwhile.
      const now = verdict.kind === 'denied' ? verdict : judgeAgain(control, item, item.args);
      return runJudged(item, now, call);
    });
  }

  function runJudged(item: AllowedCall, verdict: Verdict, call: Call): Promise<MethodResult> {
    const { sentText } = call;
    call.sentText = undefined;
    if (verdict.kind !== 'allowed') return refuse(item, verdict);
    item.ask = verdict.ask;
    // Looked at of calls that somebody is asked about alone.
    if (item.ask !== undefined) item.isAmbiguous = hasRepeatedNames(sentText ?? '');
    return runTarget(item).then(
      item.target.item.kind === 'resource' ? toResourceResult : toItemResult,
    );
  }

  function tellStart(record: CallRecord): Promise<void> | undefined {
    record.hasStarted = true;
    return observer.start(record);
  }

  /** Apart from the call, so that nothing of it is kept while it runs. */
  function watch(
    work: Promise<MethodResult>,
    call: Call,
    client: CallClient,
    stopCounting: (() => void) | undefined,
  ): Promise<Outcome> {
    return work.then(
      (result) => {
        stopCounting?.();
        return end(call, client.isAsking() ? ASKED : judgeResult(result, call.record));
      },
      (thrown: unknown) => {
        stopCounting?.();
        // A call that is refused before its target is known has a start, too.
        const starting = call.record.hasStarted ? undefined : tellStart(call.record);
        return starting === undefined
          ? endThrown(call, client, thrown)
          : starting.then(
              () => endThrown(call, client, thrown),
              (unavailable: unknown) => endThrown(call, client, unavailable),
            );
      },
    );
  }

  function endThrown(call: Call, client: CallClient, thrown: unknown): Outcome {
    return end(call, client.isAsking() ? ASKED : judgeThrown(thrown, call));
  }

  function end({ record }: Call, outcome: Outcome): Outcome {
    record.outcome = outcome;
    observer.end(record);
    return outcome;
  }

  return { services, findClientId, observer, count, run };
}

/** Paths of arguments in a message, and in the arguments of the tool that calls another (§25.3). */
const SENT: JsonPath = ['params', 'arguments'];
const SENT_INNER: JsonPath = [...SENT, 'arguments'];

const NO_ARGUMENTS: JsonObject = {};
const ASKED: Outcome = { kind: 'asked' };
const toItemResult = (result: object): MethodResult => ({ result });

// §4.11: how it ended. Judged here, once; whoever answers, counts, logs or audits it goes by this.

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
  if (deniedBy !== undefined)
    return { kind: 'denied', by: deniedBy, error: toGatewayError(thrown) };
  if (thrown instanceof GatewayError) return { kind: 'failure', error: thrown };
  // The client has cancelled the call, and most tools throw when they are told.
  if (call.signal().aborted)
    return toFailure('request_cancelled', { facts: getStackFacts(thrown) });
  if (method?.item?.kind !== 'tool')
    return toFailure('method_failed', { cause: thrown, facts: getStackFacts(thrown) });
  if (isToolError(thrown))
    return { kind: 'tool_error', result: { result: toErrorResult(readFailure(thrown)) } };
  // The message may have secrets, such as an address with a password: it is for the log alone.
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
