// §26, §27: what stands between the verdict of the policies and the end of a call: guards, and who has to agree first.

import { fail } from '../../errors/gateway-error.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import type { Guard, GuardCaller, GuardPoint, Guards } from '../../policy/guards/guards.ts';
import type { AskWhom, Verdict } from '../../policy/policy.ts';
import type { ItemKind } from '../../protocol/list-kinds.ts';
import type { CallRecord } from '../calls/call.ts';
import type { CallerContext, Target } from '../catalog/served-catalog.ts';

/** A call that the policies allow. */
export interface AllowedCall {
  readonly target: Target;
  readonly args: JsonObject;
  readonly ask: AskWhom | undefined;
  /** What was sent has a member twice: others may read another call in it. */
  readonly isAmbiguous: boolean;
  readonly context: CallerContext;
  readonly record: CallRecord;
  /** Asks the policies anew, of arguments that a guard has changed. */
  judge(args: JsonObject): Verdict;
  /** @throws GatewayError always. */
  refuse(verdict: Exclude<Verdict, { kind: 'allowed' }>): Promise<never>;
}

/**
 * Resolves once everybody who has to has agreed to the call as it will be sent.
 *
 * @throws CallStopped for the client's model; GatewayError; in the stateless era what ends a call that asks.
 */
export type AskFirst = (call: AllowedCall, whom: AskWhom) => Promise<void>;

/** The call was not made, or its result is not passed on; the message is for the client's model and its user. */
export class CallStopped extends Error {
  override readonly name = 'CallStopped';
  /** What stopped it, as the audit log names it. */
  readonly by: string;

  constructor(by: string, message: string) {
    super(message);
    this.by = by;
  }
}

export interface RunTargetDeps {
  /** Those of the configuration as it is now; undefined where it has none. */
  getGuards(): Guards | undefined;
  readonly askFirst: AskFirst;
}

export type RunTarget = (call: AllowedCall) => Promise<object>;

export function createRunTarget({ getGuards, askFirst }: RunTargetDeps): RunTarget {
  return function runTarget(call) {
    const { target, ask, args, context } = call;
    const guards = getGuards();
    if (guards === undefined && ask === undefined) return target.run(args, context);
    const { request, result } = POINTS[target.item.kind];
    const before = guards?.find(request, target.item);
    const after = guards?.find(result, target.item);
    return before === undefined && after === undefined && ask === undefined
      ? target.run(args, context)
      : runControlled(call, before, after).catch((thrown: unknown) => stop(call, thrown));
  };

  /** In this order: guards, rules and schema again where a guard has changed something, who is asked, the target, guards. */
  async function runControlled(
    call: AllowedCall,
    before: Guard | undefined,
    after: Guard | undefined,
  ): Promise<object> {
    const { target, context } = call;
    const passed = before === undefined ? call : await passGuard(call, before);
    if (passed.ask !== undefined && target.isAbsent !== true) await askFirst(passed, passed.ask);
    const running = target.run(passed.args, context);
    return after === undefined ? running : guardResult(call, running, after);
  }

  async function passGuard(call: AllowedCall, guard: Guard): Promise<AllowedCall> {
    const { target, args, record } = call;
    const verdict = await guard.judge({
      value: { name: target.item.name, arguments: args },
      caller: toGuardCaller(call),
      findProblem: (value) => findRequestProblem(target, value),
    });
    if (verdict.kind === 'passed') return call;
    if (verdict.kind === 'refused') throw new CallStopped(`guard:${verdict.by}`, verdict.message);
    const changed = readArguments(verdict.value) ?? args;
    const judged = call.judge(changed);
    if (judged.kind !== 'allowed') {
      record.deniedBy = judged.kind === 'denied' ? judged.by : 'insufficient_scope';
      return call.refuse(judged);
    }
    return { ...call, args: changed, ask: judged.ask, isAmbiguous: false };
  }
}

const POINTS = {
  tool: { request: 'tools/call', result: 'tools/result' },
  prompt: { request: 'prompts/get', result: 'prompts/result' },
  resource: { request: 'resources/read', result: 'resources/result' },
} as const satisfies Readonly<
  Record<ItemKind, { readonly request: GuardPoint; readonly result: GuardPoint }>
>;

async function guardResult(
  call: AllowedCall,
  running: Promise<object>,
  guard: Guard,
): Promise<object> {
  const result = await running;
  const verdict = await guard.judge({ value: result, caller: toGuardCaller(call) });
  if (verdict.kind === 'passed') return result;
  if (verdict.kind === 'refused') throw new CallStopped(`guard:${verdict.by}`, verdict.message);
  return isObject(verdict.value) ? verdict.value : result;
}

export const toGuardCaller = ({ context, record }: AllowedCall): GuardCaller => ({
  user: context.user,
  clientId: context.clientId,
  view: context.view,
  requestId: record.id,
  trace: context.trace,
});

function findRequestProblem(target: Target, changed: unknown): string | undefined {
  const args = readArguments(changed);
  return args === undefined ? 'it has no "arguments"' : target.findProblem?.(args);
}

const readArguments = (value: unknown): JsonObject | undefined =>
  isObject(value) && isObject(value.arguments) ? value.arguments : undefined;

/** A tool's caller gets a result that says so, which its model reads; of anything else it is an error. */
function stop({ target, record }: AllowedCall, thrown: unknown): object {
  if (!(thrown instanceof CallStopped)) throw thrown;
  const { by, message } = thrown;
  record.deniedBy = by;
  if (target.item.kind !== 'tool') {
    fail('upstream_error', { jsonRpc: { code: -32603, message }, facts: { deniedBy: by } });
  }
  return { content: [{ type: 'text', text: message }], isError: true };
}
