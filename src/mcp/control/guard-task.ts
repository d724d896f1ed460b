// §26, §29.5: what came of a task of a server, each time that its client asks, as the result of a call.

import { GatewayError } from '../../errors/gateway-error.ts';
import { isObject } from '../../platform/json.ts';
import type { Guards } from '../../policy/guards/guards.ts';
import type { CallRecord } from '../calls/call.ts';
import type { CallContext } from '../calls/context.ts';
import type { RelayedTask, Target } from '../catalog/served-catalog.ts';
import { CallStopped } from './call-stopped.ts';
import { guardEnd } from './guard-end.ts';
import { toGuardCaller } from './run-target.ts';

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
  // What a server says of its progress is no notification here: no guard could look at it.
  const { statusMessage: _, ...rest } = task;
  if (rest.result === undefined && rest.error === undefined) return rest;
  const { result, error, ...ended } = rest;
  const message = { caller: toGuardCaller(context, record), signal: context.relay.signal };
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
    const content = [{ type: 'text', text: thrown.message }];
    return { ...ended, status: 'completed', result: { content, isError: true } };
  }
  const jsonRpc = thrown instanceof GatewayError ? thrown.failure.jsonRpc : undefined;
  if (jsonRpc === undefined) throw thrown;
  return { ...ended, error: jsonRpc };
}
