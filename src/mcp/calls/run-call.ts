// The path of a call: what it is about is found, judged by all policies, and run; whoever observes calls is told.

import type { GetProviderToken } from '../../endpoint/message.ts';
import { fail, toGatewayError } from '../../errors/gateway-error.ts';
import type { Clock } from '../../platform/clock.ts';
import { hasRepeatedNames, type JsonObject } from '../../platform/json.ts';
import type { Guards } from '../../policy/guards/guards.ts';
import type { Policies, Verdict } from '../../policy/policy.ts';
import { readParams } from '../../protocol/json-rpc.ts';
import type { MethodItem } from '../../protocol/methods.ts';
import type { Caller, ServiceInfo } from '../catalog/catalog.ts';
import type { InnerCall, Target, WantedItem } from '../catalog/served-catalog.ts';
import type { RunTarget } from '../control/run-target.ts';
import type { Call, CallObserver, CallRecord } from './call.ts';
import { type CallClient, type CallContext, createContext } from './context.ts';
import {
  METHOD_RUNS,
  type RunMethod,
  readArguments,
  readString,
  toItemResult,
  toResourceResult,
} from './methods.ts';
import { judgeResult, judgeThrown, type MethodResult, type Outcome } from './outcome.ts';
import type { CountCall } from './running-calls.ts';

/**
 * Runs the method of the call, or `run` in its place. Never rejects. The call, and the bytes of its body, count until the
 * work is done, whether somebody waits for it or not.
 */
export type RunCall = (
  call: Call,
  client: CallClient,
  params: unknown,
  run?: RunMethod,
) => Promise<Outcome>;

/** The OAuth client that a user's token was made for, where anything depends on it. */
export type FindClientId = (
  caller: Pick<Caller, 'user'>,
) => string | undefined | Promise<string | undefined>;

export interface RunCallDeps {
  readonly service: ServiceInfo;
  /** Undefined where everybody may use everything. */
  readonly policies: Pick<Policies, 'judge'> | undefined;
  /** Runs what policies allow. */
  readonly runTarget: RunTarget;
  /** Those of the configuration as it is now; undefined where it has none. */
  getGuards(): Guards | undefined;
  readonly observer: Required<CallObserver>;
  readonly findClientId: FindClientId;
  readonly countCall: CountCall;
  readonly getProviderToken: GetProviderToken;
  readonly clock: Clock;
}

// None of these functions awaits anything while it has the params: V8 would keep them until the call ends.
export function createRunCall(deps: RunCallDeps): RunCall {
  const {
    service,
    policies,
    runTarget,
    observer,
    findClientId,
    countCall,
    getProviderToken,
    getGuards,
    clock,
  } = deps;
  const askPolicies: Policies['judge'] = policies?.judge ?? (() => ALLOWED);

  return function runCall(call, client, params, run) {
    call.record.startedAt = clock.monotonic();
    const clientId = findClientId(call);
    return clientId instanceof Promise
      ? clientId.then(
          (known) => begin(call, client, params, run, known),
          // No failure of the tool: it is not even known.
          (thrown: unknown) => watch(Promise.reject(toGatewayError(thrown)), call, client),
        )
      : begin(call, client, params, run, clientId);
  };

  function begin(
    call: Call,
    client: CallClient,
    params: unknown,
    run: RunMethod | undefined,
    clientId: string | undefined,
  ): Promise<Outcome> {
    const { record } = call;
    record.clientId = clientId;
    let stopCounting: (() => void) | undefined;
    let work: Promise<MethodResult>;
    try {
      const canAsk = record.method?.item !== undefined;
      const context = createContext(call, client, {
        service,
        canAsk,
        params,
        clientId,
        getProviderToken,
        getGuards,
      });
      const args = readParams(params);
      stopCounting = countCall(call);
      work = runMethod(call, client, args, context, run);
    } catch (thrown) {
      work = Promise.reject(thrown);
    }
    if (stopCounting !== undefined) work.then(stopCounting, stopCounting);
    return watch(work, call, client);
  }

  function runMethod(
    call: Call,
    client: CallClient,
    params: JsonObject,
    context: CallContext,
    run: RunMethod | undefined,
  ): Promise<MethodResult> {
    const { item, name = '' } = call.record.method ?? {};
    if (item !== undefined) return resolveItem(item, params, context, call, client);
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
    return inner === undefined
      ? resolve({ list, name }, args, context, call, client)
      : resolveInner(inner, context, call, client);
  }

  /** §25.3: from here on there is one call, and it is the inner one. */
  function resolveInner(
    { name, args }: InnerCall,
    context: CallContext,
    call: Call,
    client: CallClient,
  ): Promise<MethodResult> {
    call.record.subject = name;
    // The headers of the request repeat arguments of the outer tool.
    const { checkTarget: _, ...unchecked } = client;
    return resolve({ list: 'tools', name }, args, context, call, unchecked);
  }

  function resolve(
    wanted: WantedItem,
    args: JsonObject | undefined,
    context: CallContext,
    call: Call,
    client: CallClient,
  ): Promise<MethodResult> {
    const resolving = call.catalog.resolve(wanted, context);
    return resolving instanceof Promise
      ? resolving.then((target) => judge(target, args, context, call, client))
      : judge(resolving, args, context, call, client);
  }

  function judge(
    target: Target,
    args: JsonObject | undefined,
    context: CallContext,
    call: Call,
    client: CallClient,
  ): Promise<MethodResult> {
    const { record } = call;
    record.target = target;
    record.server = target.server ?? record.server;
    const verdict = askPolicies(target.item, context, args);
    const checking =
      verdict.kind === 'denied' ? undefined : client.checkTarget?.(target, context, args);
    const starting =
      checking === undefined ? tellStart(record) : checking.then(() => tellStart(record));
    return starting === undefined
      ? runJudged(verdict, target, args, context, call)
      : starting.then(() => {
          // Rules may have been loaded anew meanwhile.
          const now = verdict.kind === 'denied' ? verdict : askPolicies(target.item, context, args);
          return runJudged(now, target, args, context, call);
        });
  }

  function runJudged(
    verdict: Verdict,
    target: Target,
    args: JsonObject = NO_ARGUMENTS,
    context: CallContext,
    call: Call,
  ): Promise<MethodResult> {
    const { record, sentText } = call;
    call.sentText = undefined;
    if (verdict.kind !== 'allowed') {
      record.deniedBy = nameDenial(verdict);
      return refuse(verdict, target, context);
    }
    const { item } = target;
    return runTarget({
      target,
      args,
      ask: verdict.ask,
      // Looked at of calls that somebody is asked about alone.
      isAmbiguous:
        verdict.ask !== undefined && sentText !== undefined && hasRepeatedNames(sentText),
      context,
      record,
      judge: (changed) =>
        askPolicies(item, context, item.kind === 'resource' ? undefined : changed),
      refuse: (denial) => refuse(denial, target, context),
    }).then(item.kind === 'resource' ? toResourceResult : toItemResult);
  }

  function tellStart(record: CallRecord): Promise<void> | undefined {
    record.hasStarted = true;
    return observer.start(record);
  }

  /** Apart from the call, so that nothing of it is kept while it runs. */
  function watch(work: Promise<MethodResult>, call: Call, client: CallClient): Promise<Outcome> {
    return work.then(
      (result) => end(call, client.isAsking() ? ASKED : judgeResult(result, call.record.deniedBy)),
      (thrown: unknown) => {
        // What is refused before it is known what it is about has a start, too.
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

const ASKED: Outcome = { kind: 'asked' };
const ALLOWED: Verdict = { kind: 'allowed' };

type Denial = Exclude<Verdict, { kind: 'allowed' }>;

const nameDenial = (verdict: Denial): string =>
  verdict.kind === 'denied' ? verdict.by : 'insufficient_scope';

const NO_ARGUMENTS: JsonObject = {};

/** What may not be used is unknown to its caller; RFC 6750 §3.1 for scopes. */
async function refuse(
  verdict: Denial,
  { item, failAsUnknown }: Target,
  context: CallContext,
): Promise<never> {
  const facts = { deniedBy: nameDenial(verdict), server: item.server };
  if (verdict.kind === 'scopes_missing') {
    fail('insufficient_scope', { data: { scopes: verdict.scopes }, facts });
  }
  return failAsUnknown(context, facts);
}
