// The path of a call: what it is about is found, judged by all policies, and run; whoever observes calls is told.

import { fail } from '../../errors/gateway-error.ts';
import type { Clock } from '../../platform/clock.ts';
import { hasRepeatedNames, type JsonObject } from '../../platform/json.ts';
import { noteSource } from '../../platform/noted-json.ts';
import { PACKAGE_NAME, PACKAGE_VERSION } from '../../platform/own-files.ts';
import type { JsonPath } from '../../platform/splice-json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { InnerCall, Target, WantedItem } from '../catalog/served-catalog.ts';
import { readParams } from '../protocol/json-rpc.ts';
import type { MethodItem } from '../protocol/methods.ts';
import type { Call, Callers, CallRecord, ClientOf } from './call.ts';
import {
  type CallClient,
  type CallContext,
  type CheckTarget,
  type ContextServices,
  createContext,
} from './context.ts';
import {
  METHOD_RUNS,
  type RunMethod,
  readArguments,
  readString,
  toItemResult,
  toResourceResult,
} from './methods.ts';
import {
  type CallObserver,
  type CountCall,
  createCountCall,
  observeCalls,
} from './observe-calls.ts';
import { judgeResult, judgeThrown, type MethodResult, type Outcome } from './outcome.ts';
import type { Verdict } from './policy.ts';
import { type CallControl, createRunTarget, nameDenial, refuse } from './run-target.ts';

/**
 * Runs the method of the call, or `run` in its place. Never rejects. The call, and the bytes of its body, count until the
 * work is done, whether somebody waits for it or not.
 */
type RunCall = (
  call: Call,
  client: CallClient,
  params: unknown,
  run?: RunMethod,
) => Promise<Outcome>;

/** Shared by both eras: all that they do with calls. */
export interface Calls extends ContextServices {
  readonly run: RunCall;
  readonly count: CountCall;
  readonly observer: Required<CallObserver>;
  readonly findClientId: ClientOf;
}

export function createCalls(runtime: Runtime, control: CallControl, callers: Callers): Calls {
  const { displayName, environment } = runtime.config.server;
  const { findClientId, getProviderToken, endedGrants } = callers;
  const calls = {
    service: { name: PACKAGE_NAME, version: PACKAGE_VERSION, displayName, environment },
    getProviderToken,
    getGuards: control.getGuards,
    findClientId,
    observer: observeCalls(runtime, callers),
    count: createCountCall(runtime, endedGrants),
  };
  return { ...calls, run: createRunCall(calls, control, runtime.clock) };
}

// None of these functions awaits anything while it has the params: V8 would keep them until the call ends.
function createRunCall(calls: Omit<Calls, 'run'>, control: CallControl, clock: Clock): RunCall {
  const { observer, findClientId, count } = calls;
  const runTarget = createRunTarget(control);

  return function runCall(call, client, params, run) {
    call.record.startedAt = clock.monotonic();
    call.record.clientId = findClientId(call);
    let stopCounting: (() => void) | undefined;
    let work: Promise<MethodResult>;
    try {
      const context = createContext(call, client, calls, params, call.sentText);
      const args = readParams(params);
      stopCounting = count(call);
      work = runMethod(call, client, args, context, run);
    } catch (thrown) {
      work = Promise.reject(thrown);
    }
    return watch(work, call, client, stopCounting);
  };

  // Waiting is apart from what need not wait, here and below: a function whose closures may have to be made pays for what
  // they use in each call.

  function runMethod(
    call: Call,
    client: CallClient,
    params: JsonObject,
    context: CallContext,
    run: RunMethod | undefined,
  ): Promise<MethodResult> {
    const { item, name = '' } = call.record.method ?? {};
    if (item !== undefined) return resolveItem(item, params, context, call, client);
    call.sentText = undefined;
    const runOwn = run ?? METHOD_RUNS[name] ?? fail('method_not_found');
    return runOwn(params, context, call);
  }

  function resolveItem(
    { list, param, kind }: MethodItem,
    params: JsonObject,
    context: CallContext,
    call: Call,
    client: CallClient,
  ): Promise<MethodResult> {
    const name = readString(params, param);
    const args = kind === 'resource' ? undefined : readArguments(params);
    const inner =
      kind === 'tool' && args !== undefined ? call.catalog.unwrapCall?.(name, args) : undefined;
    noteSent(
      call,
      inner === undefined ? args : inner.args,
      inner === undefined ? SENT : SENT_INNER,
    );
    return inner === undefined
      ? resolve({ list, name }, args, context, call, client.checkTarget)
      : resolveInner(inner, context, call);
  }

  /** §25.3: from here on there is one call, and it is the inner one. */
  function resolveInner(
    { name, args }: InnerCall,
    context: CallContext,
    call: Call,
  ): Promise<MethodResult> {
    call.record.subject = name;
    // The headers of the request repeat arguments of the outer tool: they are not checked.
    return resolve({ list: 'tools', name }, args, context, call, undefined);
  }

  function resolve(
    wanted: WantedItem,
    args: JsonObject | undefined,
    context: CallContext,
    call: Call,
    checkTarget: CheckTarget | undefined,
  ): Promise<MethodResult> {
    const resolving = call.catalog.resolve(wanted, context);
    return resolving instanceof Promise
      ? judgeOnceFound(resolving, wanted, args, context, call, checkTarget)
      : judge(resolving, wanted, args, context, call, checkTarget);
  }

  function judgeOnceFound(
    resolving: Promise<Target>,
    wanted: WantedItem,
    args: JsonObject | undefined,
    context: CallContext,
    call: Call,
    checkTarget: CheckTarget | undefined,
  ): Promise<MethodResult> {
    return resolving.then((target) => judge(target, wanted, args, context, call, checkTarget));
  }

  function judge(
    target: Target,
    wanted: WantedItem,
    args: JsonObject | undefined,
    context: CallContext,
    call: Call,
    checkTarget: CheckTarget | undefined,
  ): Promise<MethodResult> {
    const { record } = call;
    record.target = target;
    record.server = target.server ?? record.server;
    const verdict = control.judge(target.item, context, args);
    const checking = verdict.kind === 'denied' ? undefined : checkTarget?.(target, context, args);
    const starting = checking === undefined ? tellStart(record) : tellStartAfter(checking, record);
    return starting === undefined
      ? runJudged(verdict, target, wanted, args, context, call)
      : runOnceTold(starting, verdict, target, wanted, args, context, call);
  }

  function tellStartAfter(checking: Promise<void>, record: CallRecord): Promise<void> {
    return checking.then(() => tellStart(record));
  }

  function runOnceTold(
    starting: Promise<void>,
    verdict: Verdict,
    target: Target,
    wanted: WantedItem,
    args: JsonObject | undefined,
    context: CallContext,
    call: Call,
  ): Promise<MethodResult> {
    return starting.then(() => {
      // Rules may have been loaded anew meanwhile.
      const now = verdict.kind === 'denied' ? verdict : control.judge(target.item, context, args);
      return runJudged(now, target, wanted, args, context, call);
    });
  }

  function runJudged(
    verdict: Verdict,
    target: Target,
    wanted: WantedItem,
    args: JsonObject = NO_ARGUMENTS,
    context: CallContext,
    call: Call,
  ): Promise<MethodResult> {
    const { record, catalog, sentText } = call;
    call.sentText = undefined;
    if (verdict.kind !== 'allowed') {
      record.deniedBy = nameDenial(verdict);
      return refuse(verdict, target, context);
    }
    const { ask } = verdict;
    // Looked at of calls that somebody is asked about alone.
    const isAmbiguous = ask !== undefined && sentText !== undefined && hasRepeatedNames(sentText);
    return runTarget({ target, wanted, catalog, args, ask, isAmbiguous, context, record }).then(
      target.item.kind === 'resource' ? toResourceResult : toItemResult,
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
        const { deniedBy } = call.record;
        return end(call, client.isAsking() ? ASKED : judgeResult(result, deniedBy));
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
    const outcome = client.isAsking()
      ? ASKED
      : judgeThrown(thrown, call.record, () => call.signal().aborted);
    return end(call, outcome);
  }

  function end({ record }: Call, outcome: Outcome): Outcome {
    record.outcome = outcome;
    observer.end(record);
    return outcome;
  }
}

/** Paths of arguments in a message, and in the arguments of the tool that calls another (§25.3). */
const SENT: JsonPath = ['params', 'arguments'];
const SENT_INNER: JsonPath = [...SENT, 'arguments'];

function noteSent({ sentText }: Call, args: JsonObject | undefined, path: JsonPath): void {
  if (args !== undefined && sentText !== undefined) noteSource(args, sentText, path);
}

const ASKED: Outcome = { kind: 'asked' };
const NO_ARGUMENTS: JsonObject = {};
