// §26, §27: what stands between the verdict of the policies and the end of a call: guards, and who has to agree first.
import { isDeepStrictEqual } from 'node:util';
import { fail } from '../../errors/gateway-error.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { forgetSource, readExact, toNoted } from '../../platform/noted-json.ts';
import { quote } from '../../platform/text.ts';
import type { TaskTool } from '../catalog/catalog.ts';
import { isToolError, readFailure } from '../catalog/define/tool.ts';
import type { ServedCatalog, Target, WantedItem } from '../catalog/served-catalog.ts';
import { isMadeAnew } from '../protocol/json-rpc.ts';
import type { ItemKind } from '../protocol/list-kinds.ts';
import type { CallRecord } from './call.ts';
import type { CallContext, CallTask } from './context.ts';
import { guardEnd } from './guard-end.ts';
import {
  CallStopped,
  failStopped,
  type Guard,
  type GuardPoint,
  type Guards,
  passGuard,
  QUESTION_POINTS,
  toGuardCaller,
} from './guards.ts';
import { failWithoutTasks } from './methods.ts';
import { toErrorResult } from './outcome.ts';
import type { AskWhom, Policies, Verdict } from './policy.ts';

/** A call that the policies allow. */
export interface AllowedCall {
  readonly target: Target;
  /** As its client named it, at the path of this catalogue. */
  readonly wanted: WantedItem;
  readonly catalog: Pick<ServedCatalog, 'resolve'>;
  readonly args: JsonObject;
  ask: AskWhom | undefined;
  /** The message has a member twice: others may read another call in it. */
  isAmbiguous: boolean;
  readonly context: CallContext;
  readonly record: CallRecord;
}

/**
 * Resolves once everybody who has to has agreed to the call as it will be sent.
 *
 * @throws CallStopped for the client's model; GatewayError; in the stateless era what ends a call that asks.
 */
export type AskFirst = (call: AllowedCall, whom: AskWhom) => Promise<void>;

/** Policies, guards and approvals, as calls meet them. */
export interface CallControl {
  /** All policies as one. */
  readonly judge: Policies['judge'];
  /** Those of the configuration as it is now; undefined where it has none. */
  getGuards(): Guards | undefined;
  readonly askFirst: AskFirst;
}

/** Those that look at a call of one target; each undefined where none does. */
interface CallGuards {
  readonly before: Guard | undefined;
  readonly after: Guard | undefined;
  /** At what an error says that the user is to be asked. */
  readonly asked: Guard | undefined;
}

export function createRunTarget(control: CallControl) {
  const { getGuards, askFirst } = control;
  return function runTarget(call: AllowedCall): Promise<object> {
    const { target, ask, args, context, record } = call;
    // Nobody is asked about a call that cannot be made.
    if (target.task?.isRequired && record.era !== 'session' && context.task === undefined)
      failWithoutTasks(`Calls of ${target.item.name} are tasks: this needs a client`);
    const guards = getGuards();
    const found = guards && findGuards(guards, target);
    return found === undefined && ask === undefined
      ? run(target, args, context)
      : runControlled(call, found).catch((thrown: unknown) => stop(call, thrown));
  };

  /** In this order: guards, rules and schema again where a guard has changed something, who is asked, the target, guards. */
  async function runControlled(call: AllowedCall, guards: CallGuards | undefined): Promise<object> {
    const { target } = call;
    let ready = guards?.before === undefined ? call : await guardRequest(call, guards.before);
    const { ask } = ready;
    if (ask !== undefined && target.isAbsent !== true) {
      ready = withoutCallIds(ready);
      await askFirst(ready, ask);
      // Minutes may have passed: what was agreed to is what runs, and whoever may not call it any more does not.
      const now = await ready.catalog.resolve(ready.wanted, ready.context);
      const judged = judgeAgain(control, ready, ready.args);
      if (judged.kind !== 'allowed') return refuse(ready, judged);
      const isAsAgreed = judged.ask === undefined || judged.ask === ask;
      if (!isSameTool(target, now) || !isAsAgreed) throw new CallStopped('approval', CHANGED);
      ready = { ...ready, target: now };
    }
    const { context } = ready;
    const running = run(ready.target, ready.args, context);
    if (guards === undefined) return running;
    const { after, asked } = guards;
    const ended = running.catch((thrown: unknown) => {
      // The message of a failed tool of an author is a result like any other.
      if (target.item.kind !== 'tool' || !isToolError(thrown)) throw thrown;
      return toErrorResult(readFailure(thrown));
    });
    try {
      const message = toGuardMessage(call);
      return await guardEnd(ended, { after, asked, target, message, context });
    } finally {
      // Messages that were sent before the answer come before it.
      await context.flush();
    }
  }

  async function guardRequest(call: AllowedCall, guard: Guard): Promise<AllowedCall> {
    const { target, args, context } = call;
    const { meta } = context.relay;
    const { name, kind } = target.item;
    // As params of the request would say it to whoever answers it, under the name that clients of `/mcp` know.
    const value: JsonObject = {
      ...(kind === 'resource' ? { uri: name } : { name, arguments: readExact(args) }),
      ...(meta && { _meta: readExact(meta) }),
    };
    const passed = await passGuard(guard, {
      value,
      ...toGuardMessage(call),
      findProblem: (given) => findRequestProblem(target, value, given),
    });
    if (passed === undefined) return call;
    const changed = isObject(passed.value) ? passed.value : value;
    const next = isObject(changed.arguments) ? toNoted(changed.arguments) : args;
    const judged = judgeAgain(control, call, next);
    if (judged.kind !== 'allowed') return refuse(call, judged);
    return {
      ...call,
      args: next,
      ask: judged.ask,
      isAmbiguous: false,
      context: context.withMeta(isObject(changed._meta) ? changed._meta : undefined),
    };
  }
}

/** Rules may have been loaded anew, or a guard have changed the arguments. */
export const judgeAgain = (
  { judge }: CallControl,
  { target: { item }, context }: AllowedCall,
  args: JsonObject,
): Verdict => judge(item, context, item.kind === 'resource' ? undefined : args);

// §29: a call goes on as a task from where its target would run: what has to be asked before has been asked.

function run(target: Target, args: JsonObject, context: CallContext): Promise<object> {
  // Tools in this process get values, and may keep them: the text of the message would be kept, too.
  if (target.server === undefined) forgetSource(args);
  const { task } = context;
  if (task === undefined) return target.run(args, context);
  if (target.task !== undefined) return runAsTask(target.task, args, context, task);
  const running = target.run(args, context);
  const { relayedTasks, server } = target;
  return relayedTasks === undefined || server === undefined
    ? running
    : running.then((result) => task.adopt(relayedTasks, server, result));
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

/**
 * People agree to `_meta`, too, and the same call may be made again with what they agreed to: what its client makes anew for
 * each call is neither shown nor sent.
 */
function withoutCallIds(call: AllowedCall): AllowedCall {
  const { context } = call;
  const { meta } = context.relay;
  if (meta === undefined || !Object.keys(meta).some(isMadeAnew)) return call;
  const kept = Object.entries(readExact(meta)).filter(([key]) => !isMadeAnew(key));
  const lasting = kept.length === 0 ? undefined : toNoted(Object.fromEntries(kept));
  return { ...call, context: context.withMeta(lasting) };
}

/** The server's description of it is a part of what people agree to. */
const isSameTool = (one: Target, other: Target): boolean =>
  one.item.server === other.item.server &&
  one.own?.ownName === other.own?.ownName &&
  isDeepStrictEqual(one.own?.ownItem, other.own?.ownItem);

const CHANGED =
  'The tool, or the rules about it, have changed since this call was approved, so nothing was done. Call again to ask anew.';

const POINTS = {
  tool: { request: 'tools/call', result: 'tools/result' },
  prompt: { request: 'prompts/get', result: 'prompts/result' },
  resource: { request: 'resources/read', result: 'resources/result' },
} as const satisfies Readonly<
  Record<ItemKind, { readonly request: GuardPoint; readonly result: GuardPoint }>
>;

/** Undefined where none looks at it. */
function findGuards(guards: Guards, { item }: Target): CallGuards | undefined {
  const { request, result } = POINTS[item.kind];
  const before = guards.find(request, item);
  const after = guards.find(result, item);
  const asked = guards.find('elicitation', item);
  const isLookedAt = before !== undefined || after !== undefined || asked !== undefined;
  return isLookedAt || WHILE_IT_RUNS.some((point) => guards.find(point, item) !== undefined)
    ? { before, after, asked }
    : undefined;
}

const WHILE_IT_RUNS: readonly GuardPoint[] = [
  'notifications',
  ...QUESTION_POINTS.filter((point) => point !== 'elicitation'),
];

const toGuardMessage = ({ context, record }: AllowedCall) => ({
  caller: toGuardCaller(record),
  signal: context.relay.signal,
});

/** The choice of what is called is the policies': a guard may change what it is called with. */
function findRequestProblem(
  target: Target,
  { name, uri, _meta: meta }: JsonObject,
  changed: unknown,
): string | undefined {
  if (!isObject(changed)) return 'it must be an object';
  if (changed.name !== name || changed.uri !== uri) return 'its name or uri is another';
  if (changed._meta !== undefined && !isObject(changed._meta)) return '_meta must be an object';
  if (changed._meta !== undefined && meta === undefined) return 'it had no _meta';
  if (target.item.kind === 'resource') return undefined;
  return isObject(changed.arguments)
    ? target.findProblem?.(changed.arguments)
    : 'arguments must be an object';
}

/** A tool's caller gets a result that says so, which its model reads; of anything else it is an error. */
function stop({ target, record }: AllowedCall, thrown: unknown): object {
  if (!(thrown instanceof CallStopped)) throw thrown;
  record.deniedBy = thrown.by;
  return target.item.kind === 'tool' ? toErrorResult(thrown.message) : failStopped(thrown);
}

// Refusals for callers that may not use something.

/** Characters of a number that an error shows. */
const MAX_NUMBER = 40;

/** Anything that may not be used is unknown to its caller; RFC 6750 §3.1 for scopes. */
export async function refuse(
  { record, target, context }: AllowedCall,
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
