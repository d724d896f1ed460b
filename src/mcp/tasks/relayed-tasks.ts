// §29.5: tasks of servers. The gateway keeps nothing of them: the id that a client has says which it is, sealed, for its
// user and its path alone.

import { fail, GatewayError } from '../../errors/gateway-error.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { toRawJson } from '../../platform/noted-json.ts';
import { readVersioned, writeVersioned } from '../../store/records.ts';
import type { Seal } from '../../store/seal/seal.ts';
import type { CallRecord } from '../calls/call.ts';
import type { CallContext } from '../calls/context.ts';
import { guardEnd } from '../calls/guard-end.ts';
import { CallStopped, type Guards, toGuardCaller } from '../calls/guards.ts';
import { toErrorResult } from '../calls/outcome.ts';
import type { RelayedTask, Target } from '../catalog/served-catalog.ts';
import type { TaskOwner } from './task-records.ts';

/** Which task of which server. */
interface TaskPlace {
  readonly server: string;
  /** The tool that was called, as clients of its path see it. */
  readonly tool: string;
  /** The server's id. */
  readonly id: string;
}

type Whose = Pick<TaskOwner, 'user' | 'path'>;

/** No id of the gateway's own tasks begins so. */
const PREFIX = 'r.';

export const isRelayed = (taskId: string): boolean => taskId.startsWith(PREFIX);

export function createRelayedTaskIds(getSeal: () => Promise<Seal>) {
  const requireSeal = () => getSeal().catch((cause: unknown) => fail('internal_error', { cause }));
  const describe = ({ user, path }: Whose): string =>
    `mcp:relayed-task:${hashSha256(JSON.stringify([user ?? null, path ?? null]))}`;

  return {
    async seal(whose: Whose, place: TaskPlace): Promise<string> {
      return PREFIX + (await requireSeal()).seal(describe(whose), writeVersioned(place));
    },
    /** Undefined where it is none of theirs. */
    async open(whose: Whose, taskId: string): Promise<TaskPlace | undefined> {
      const text = (await requireSeal()).open(describe(whose), taskId.slice(PREFIX.length));
      if (text === undefined) return undefined;
      const { server, tool, id } = readVersioned<JsonObject>(text, 'params.taskId');
      return typeof server === 'string' && typeof tool === 'string' && typeof id === 'string'
        ? { server, tool, id }
        : undefined;
    },
  };
}

/** `Task`, or `DetailedTask`, under the id that its client knows. */
export const describeRelayed = (taskId: string, task: RelayedTask): JsonObject => ({
  ...task,
  ...(task.result && { result: toRawJson(task.result) }),
  taskId,
});

/** No guard need look at it: nothing in a handle is the server's own text. */
export const describeHandle = (taskId: string, task: RelayedTask): JsonObject => {
  const { statusMessage: _, ...handle } = task;
  return { resultType: 'task', ...describeRelayed(taskId, handle) };
};

// §26, §29.5: what came of a task of a server, each time that its client asks, as the result of a call.

export async function guardTask(
  guards: Guards | undefined,
  target: Target,
  task: RelayedTask,
  context: CallContext,
  record: CallRecord,
): Promise<RelayedTask> {
  const after = guards?.find('tools/result', target.item);
  const asked = guards?.find('elicitation', target.item);
  const told = guards?.find('notifications', target.item);
  if (after === undefined && asked === undefined && told === undefined) return task;
  // The status message of a server is no notification here: no guard could look at it.
  const { statusMessage: _, ...rest } = task;
  if (rest.result === undefined && rest.error === undefined) return rest;
  const { result, error, ...ended } = rest;
  const message = { caller: toGuardCaller(record), signal: context.relay.signal };
  const running =
    result === undefined
      ? Promise.reject(new GatewayError('upstream_error', error && { jsonRpc: error }))
      : Promise.resolve(result);
  try {
    const passed = await guardEnd(running, { after, asked, target, message, context });
    return { ...ended, result: isObject(passed) ? passed : {} };
  } catch (thrown) {
    return toEnded(ended, thrown, record);
  }
}

/** As of a call: a caller of a tool gets a result that says who stopped it. */
function toEnded(
  ended: Omit<RelayedTask, 'result' | 'error'>,
  thrown: unknown,
  record: CallRecord,
): RelayedTask {
  if (thrown instanceof CallStopped) {
    record.deniedBy = thrown.by;
    return { ...ended, status: 'completed', result: toErrorResult(thrown.message) };
  }
  const jsonRpc = thrown instanceof GatewayError ? thrown.failure.jsonRpc : undefined;
  if (jsonRpc === undefined) throw thrown;
  return { ...ended, error: jsonRpc };
}
