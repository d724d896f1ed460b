// Told of calls: metrics, the audit log, traces.

import type { GatewayError } from '../../errors/gateway-error.ts';
import { getHeader, type UserContext } from '../../http/endpoint/message.ts';
import type { Clock } from '../../platform/clock.ts';
import { type Log, truncateForLog } from '../../platform/log.ts';
import { stripUri } from '../../platform/secret-texts.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Audit, AuditedAction, AuditedEnd } from '../../telemetry/audit/audit.ts';
import {
  type Attributes,
  readTraceContext,
  readTraceId,
  type Span,
} from '../../telemetry/tracing/tracing.ts';
import type { MethodItem } from '../protocol/methods.ts';
import type { Callers, CallRecord } from './call.ts';
import type { Outcome } from './outcome.ts';

/** A row of the list of observers. What one throws, but for `start`, is logged and reaches nobody. */
export interface CallObserver {
  /** A message has come and can be understood; nothing has been done of it. */
  receive?(record: CallRecord): void;
  /** The limits let it through: it is answered from here on. */
  admit?(record: CallRecord): void;
  /** It is known what the call is about, and it is about to run. What rejects keeps it from running. */
  start?(record: CallRecord): Promise<void> | undefined;
  /** It has ended: `outcome` says how. */
  end?(record: CallRecord): void;
}

/** All observers as one, in their order. */
export const joinObservers = (
  observers: readonly CallObserver[],
  log: Log,
): Required<CallObserver> => ({
  receive: (record) => tellAll(observers, 'receive', record, log),
  admit: (record) => tellAll(observers, 'admit', record, log),
  start(record) {
    // Nearly always nobody has to be waited for.
    let waiting: Promise<void> | undefined;
    for (const { start } of observers) {
      const starting = start?.(record);
      if (starting === undefined) continue;
      // All at once: what rejects while another is waited for would be nobody's.
      waiting = waiting === undefined ? starting : Promise.all([waiting, starting]).then(() => {});
    }
    return waiting;
  },
  end: (record) => tellAll(observers, 'end', record, log),
});

function tellAll(
  observers: readonly CallObserver[],
  event: 'receive' | 'admit' | 'end',
  record: CallRecord,
  log: Log,
): void {
  for (const observer of observers) {
    try {
      observer[event]?.(record);
    } catch (cause) {
      log.error('A call was not counted, traced or audited; please report this.', { cause });
    }
  }
}

/** In this order. */
export function observeCalls(
  runtime: Runtime,
  { describeUser, noteStatelessUser }: Callers,
): Required<CallObserver> {
  const { config, clock, log, audit, tracing } = runtime;
  const described = config.audit.claims ? describeUser : undefined;
  return joinObservers(
    [
      ...(tracing === undefined ? [] : [traceCalls]),
      countCalls(runtime),
      ...(audit === undefined ? [] : [auditCalls(audit, clock, described)]),
      ...(noteStatelessUser === undefined ? [] : [noteUsers(noteStatelessUser)]),
    ],
    log,
  );
}

/** Users whose calls need no session, which are seen by their requests alone. */
const noteUsers = (noteUser: (user: UserContext) => void): CallObserver => ({
  admit({ era, id, user }) {
    if (era === 'stateless' && id !== undefined && user !== undefined) noteUser(user);
  },
});

// §4.11: calls in numbers.

const countCalls = ({ metrics, clock }: Runtime): CallObserver => ({
  admit({ id, method, era, view = '' }) {
    if (id !== undefined) metrics.recordMcpRequest(method?.name ?? 'other', era, view);
  },
  /**
   * Known tools only: series are named after them, as `/mcp` lists them. A refused call (wrong input, a question) is not
   * counted.
   */
  end({ target, method, era, startedAt, outcome }) {
    if (method?.item?.kind !== 'tool' || target === undefined || outcome === undefined) return;
    const status = toStatus(outcome);
    if (status === undefined) return;
    metrics.recordToolCall(target.item.name, status, era, (clock.monotonic() - startedAt) / 1000);
  },
});

function toStatus(outcome: Outcome): 'success' | 'error' | 'exception' | undefined {
  if (outcome.kind === 'success') return 'success';
  if (outcome.kind === 'tool_error') return 'error';
  const hasThrown = outcome.kind === 'failure' && outcome.error.key === 'tool_failed';
  return hasThrown ? 'exception' : undefined;
}

// §21.1: calls in the audit log: of tools, prompts and resources, those that policies deny included. Never an argument.

const auditCalls = (
  audit: Audit,
  clock: Clock,
  describeUser: Callers['describeUser'],
): CallObserver => ({
  start(record) {
    const item = record.method?.item;
    if (item === undefined || !audit.isRequired) return undefined;
    // The owner of a URI may depend on what was linked to before: the line of the end says it.
    const server = item.kind === 'resource' ? record.ownServer : record.server;
    return audit.writeStart({ ...describeCall(item, record), server });
  },
  end(record) {
    const { method, outcome, startedAt } = record;
    if (method?.item === undefined || outcome === undefined || hasNoStart(outcome)) return;
    const seconds = (clock.monotonic() - startedAt) / 1000;
    const who = record.user && describeUser?.(record.user);
    audit.write({ ...describeCall(method.item, record), who }, toAuditedEnd(outcome), seconds);
  },
});

function describeCall(
  { auditEvent, kind }: MethodItem,
  { user, clientId, request, view, ownServer, server, subject, trace }: CallRecord,
): AuditedAction {
  return {
    event: auditEvent,
    user: user?.sub,
    issuer: user?.issuer,
    client: clientId,
    grant: user?.grant?.id,
    ip: request.clientIp,
    view: view ?? ownServer,
    server,
    [kind]: subject,
    trace: readTraceId(trace) ?? readTraceId(readTraceContext(request.headers)),
  };
}

/** A call that could not begin for want of its first line has no last one. */
const hasNoStart = (outcome: Outcome): boolean =>
  outcome.kind === 'failure' && outcome.error.key === 'audit_unavailable';

function toAuditedEnd(outcome: Outcome): AuditedEnd {
  switch (outcome.kind) {
    case 'success':
    case 'asked':
      return { outcome: outcome.kind };
    case 'tool_error':
      return { outcome: 'failure', reason: 'tool_error' };
    case 'denied':
      return { outcome: 'denied', reason: outcome.by };
    case 'failure':
      return { outcome: 'failure', reason: outcome.error.key };
  }
}

// §21.2: the span of a request to /mcp says what it asks and whether that failed, by OpenTelemetry's conventions for MCP.
// Never an argument.

const traceCalls: CallObserver = {
  receive(record) {
    const { trace } = record.request;
    if (trace === undefined) return;
    trace.offerParent(record.trace);
    // Whatever the message is passed on to belongs to its span from here on.
    record.trace = trace.getContext();
    trace.getSpan()?.setAttributes(describeMessage(record));
  },
  admit({ request: { trace }, method }) {
    // Only known methods name a span: callers could otherwise make any number of names.
    if (method !== undefined) trace?.setName(method.name);
  },
  end({ request: { trace }, method, subject, outcome }) {
    const span = trace?.getSpan();
    if (trace === undefined || span === undefined || outcome === undefined) return;
    if (outcome.kind === 'tool_error') span.fail('tool_error');
    if ('error' in outcome) failSpan(span, outcome.error);
    // Whoever has an answer named something that there is; URIs are too many.
    else if (method?.item?.param === 'name' && subject !== undefined) {
      trace.setName(`${method.name} ${truncateForLog(subject)}`);
    }
  },
};

function failSpan(span: Span, { failure, row }: GatewayError): void {
  const code = String(failure.jsonRpc?.code ?? row.jsonrpc?.code ?? '_OTHER');
  span.setAttributes({ 'rpc.response.status_code': code });
  span.fail(code);
}

function describeMessage({
  methodName,
  method,
  subject,
  id,
  request,
  view,
}: CallRecord): Attributes {
  if (methodName === undefined) return {};
  const item = method?.item;
  const version = getHeader(request, 'mcp-protocol-version');
  return {
    'mcp.method.name': truncateForLog(methodName),
    'mcp.protocol.version': version && truncateForLog(version),
    'jsonrpc.request.id': id === undefined ? undefined : truncateForLog(String(id)),
    'postern.view': view,
    'network.transport': 'tcp',
    'network.protocol.name': 'http',
    ...(item !== undefined &&
      subject !== undefined && {
        [item.spanAttribute]: truncateForLog(item.param === 'uri' ? stripUri(subject) : subject),
      }),
    ...(item?.kind === 'tool' && { 'gen_ai.operation.name': 'execute_tool' }),
  };
}
