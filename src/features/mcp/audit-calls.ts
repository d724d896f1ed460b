// §21.1: calls in the audit log: of tools, prompts and resources, those that rules deny included. Never an argument.
import type { Audit, AuditedAction, AuditedEnd, WorkEnd } from '../../core/audit/audit.ts';
import { GatewayError } from '../../core/errors/gateway-error.ts';
import { isObject } from '../../core/json.ts';
import { readTraceId } from '../../core/tracing/tracing.ts';
import type { UserContext } from '../../core/user-context.ts';
import type { Call } from './calls/call.ts';
import { InputRequired } from './calls/call-tool.ts';
import type { CallClient } from './calls/context.ts';
import type { Method, MethodResult } from './calls/methods.ts';
import type { RunMethod } from './calls/run-method.ts';
import type { View } from './calls/view.ts';
import { readMeta } from './protocol/json-rpc.ts';
import { readTraceContext } from './protocol/trace-context.ts';

export interface AuditCallsDeps {
  readonly audit: Audit;
  /** The OAuth client that a user's token was made for. */
  clientOf(caller: {
    readonly user: UserContext | undefined;
  }): string | undefined | Promise<string | undefined>;
}

/** What a call of the method is about. */
interface AuditedMethod {
  readonly event: AuditedAction['event'];
  readonly param: 'name' | 'uri';
  readonly member: 'tool' | 'prompt' | 'resource';
  /** Whose it is can be known by its name, before the call. */
  readonly kind?: 'tools' | 'prompts';
}

const AUDITED: Readonly<Record<string, AuditedMethod>> = {
  'tools/call': { event: 'tool_call', param: 'name', member: 'tool', kind: 'tools' },
  'prompts/get': { event: 'prompt_get', param: 'name', member: 'prompt', kind: 'prompts' },
  'resources/read': { event: 'resource_read', param: 'uri', member: 'resource' },
};

export function auditCalls(runMethod: RunMethod, { audit, clientOf }: AuditCallsDeps): RunMethod {
  const methodsOfViews = new WeakMap<View, ReadonlyMap<Method, AuditedMethod>>();

  function findAudited(view: View, method: Method): AuditedMethod | undefined {
    const known = methodsOfViews.get(view) ?? listAudited(view);
    methodsOfViews.set(view, known);
    return known.get(method);
  }

  function runAudited(
    action: AuditedAction,
    call: Call,
    client: CallClient,
    method: Method,
    params: unknown,
  ): Promise<MethodResult> {
    const target: Target = { server: action.server };
    const noting = noteServer(client, target);
    return audit.run(
      action,
      () => runMethod(call, noting, method, params),
      createJudge(client, target),
    );
  }

  return function runMethodAudited(call, client, method, params) {
    const audited = findAudited(call.view, method);
    if (audited === undefined) return runMethod(call, client, method, params);
    const action = describeCall(audited, call, params);
    const clientId = clientOf(call);
    // Only the line of a start is written before the call itself says where it goes.
    const server = audit.isRequired ? findServer(audited, call, client, action) : action.server;
    return clientId instanceof Promise || server instanceof Promise
      ? Promise.all([clientId, server]).then(([knownClient, knownServer]) =>
          runAudited(
            { ...action, client: knownClient, server: knownServer },
            call,
            client,
            method,
            params,
          ),
        )
      : runAudited({ ...action, client: clientId, server }, call, client, method, params);
  };
}

const listAudited = ({ methods }: View): ReadonlyMap<Method, AuditedMethod> =>
  new Map(
    [methods.session, methods.stateless].flatMap((table) =>
      Object.entries(AUDITED).flatMap(([name, audited]): [Method, AuditedMethod][] => {
        const method = table.get(name);
        return method === undefined ? [] : [[method, audited]];
      }),
    ),
  );

function describeCall(
  { event, param, member }: AuditedMethod,
  { user, view, request }: Call,
  params: unknown,
): AuditedAction {
  const subject = isObject(params) ? params[param] : undefined;
  const trace =
    readTraceId(readTraceContext(readMeta(params))) ??
    readTraceId(readTraceContext(request.headers));
  return {
    event,
    user: user?.sub,
    ip: request.clientIp,
    server: view.server,
    [member]: typeof subject === 'string' ? subject : undefined,
    trace,
  };
}

function findServer(
  { kind, member }: AuditedMethod,
  { user, session, view }: Call,
  client: CallClient,
  action: AuditedAction,
): string | undefined | Promise<string | undefined> {
  const name = action[member];
  if (view.server !== undefined || kind === undefined || name === undefined) return view.server;
  return view.catalog.findServerOf?.(kind, name, {
    user,
    session: 'record' in session ? session.record : undefined,
    client: client.capabilities(),
  });
}

/** Which server a call went to; at /mcp its catalogue finds out. */
interface Target {
  server: string | undefined;
}

const noteServer = (client: CallClient, target: Target): CallClient => ({
  ...client,
  createRelay: (call) => ({
    ...client.createRelay(call),
    noteServer(server) {
      target.server = server;
    },
  }),
});

const createJudge =
  (client: CallClient, target: Target) =>
  (end: WorkEnd<MethodResult>): AuditedEnd => {
    const { server } = target;
    if (client.isAsking()) return { outcome: 'asked', server };
    return 'result' in end
      ? { server, ...judgeResult(end.result) }
      : { server, ...judgeThrown(end.thrown) };
  };

const judgeResult = ({ result }: MethodResult): AuditedEnd =>
  'isError' in result && result.isError === true
    ? { outcome: 'failure', reason: 'tool_error' }
    : { outcome: 'success' };

function judgeThrown(thrown: unknown): AuditedEnd {
  if (thrown instanceof InputRequired) return { outcome: 'asked' };
  if (!(thrown instanceof GatewayError)) return { outcome: 'failure', reason: 'method_failed' };
  const { key, failure } = thrown;
  const { server, deniedBy } = failure.facts ?? {};
  return {
    outcome: deniedBy === undefined ? 'failure' : 'denied',
    reason: typeof deniedBy === 'string' ? deniedBy : key,
    ...(typeof server === 'string' && { server }),
  };
}
