// Spec §4.4: the method table of an active session.
import type { Clock } from '../../core/clock.ts';
import { fail, GatewayError, stackOf } from '../../core/errors/gateway-error.ts';
import type { Metrics } from '../../core/metrics/metrics.ts';
import type { Arguments, Catalog, Context } from './catalog.ts';
import { isObject } from './json-rpc.ts';

/** Resolves to the `result`. @throws GatewayError for what the caller did wrong. */
export type Method = (params: Arguments, context: Context) => Promise<unknown>;

export interface MethodDeps {
  readonly catalog: Catalog;
  readonly metrics: Metrics;
  readonly clock: Clock;
}

export function createMethods({
  catalog,
  metrics,
  clock,
}: MethodDeps): ReadonlyMap<string, Method> {
  const callTool = measured(catalog, metrics, clock);

  return new Map<string, Method>([
    ['ping', async () => ({})],
    ['tools/list', async (_params, context) => ({ tools: await catalog.listTools(context) })],
    [
      'tools/call',
      (params, context) => callTool(text(params, 'name'), argumentsOf(params), context),
    ],
    ['prompts/list', async (_params, context) => ({ prompts: await catalog.listPrompts(context) })],
    [
      'prompts/get',
      (params, context) => catalog.getPrompt(text(params, 'name'), argumentsOf(params), context),
    ],
    [
      'resources/list',
      async (_params, context) => ({ resources: await catalog.listResources(context) }),
    ],
    ['resources/read', (params, context) => catalog.readResource(text(params, 'uri'), context)],
  ]);
}

/** Counts and times calls of known tools; a refused call (unknown tool, wrong input) is neither. */
function measured(catalog: Catalog, metrics: Metrics, clock: Clock): Catalog['callTool'] {
  return async function callTool(name, args, context) {
    const started = clock.monotonic();
    const record = (status: 'success' | 'error' | 'exception') =>
      metrics.toolInvocation(name, status, (clock.monotonic() - started) / 1000);
    try {
      const result = await catalog.callTool(name, args, context);
      record(result.isError ? 'error' : 'success');
      return result;
    } catch (cause) {
      if (cause instanceof GatewayError) throw cause;
      record('exception');
      return fail('tool_failed', { details: messageOf(cause), cause, facts: stackOf(cause) });
    }
  };
}

function text(params: Arguments, name: string): string {
  const value = params[name];
  return typeof value === 'string'
    ? value
    : fail('invalid_params', { details: `params.${name} must be a string` });
}

/** Decisions 0.1: no arguments count as none given. */
function argumentsOf({ arguments: given = {} }: Arguments): Arguments {
  return isObject(given)
    ? given
    : fail('invalid_params', { details: 'params.arguments must be an object' });
}

/** One line for the caller's model to act on: the message, never the stack. */
const messageOf = (thrown: unknown): string =>
  (thrown instanceof Error ? thrown.message : String(thrown)).slice(0, 500);
