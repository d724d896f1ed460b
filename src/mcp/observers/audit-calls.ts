// §21.1: calls in the audit log: of tools, prompts and resources, those that policies deny included. Never an argument.

import type { UserContext } from '../../endpoint/message.ts';
import type { Clock } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { MethodItem } from '../../protocol/methods.ts';
import type { Audit, AuditedAction, AuditedEnd } from '../../telemetry/audit/audit.ts';
import { readTraceContext, readTraceId } from '../../telemetry/tracing/trace-context.ts';
import type { CallObserver, CallRecord } from '../calls/call.ts';
import type { Outcome } from '../calls/outcome.ts';

/** What of a user rules name, with `AUDIT_CLAIMS`. */
export type DescribeUser = (user: UserContext) => JsonObject | undefined;

export const auditCalls = (
  audit: Audit,
  clock: Clock,
  describeUser: DescribeUser | undefined,
): CallObserver => ({
  start(record) {
    const item = record.method?.item;
    if (item === undefined || !audit.isRequired) return undefined;
    // Whose a URI is may depend on what was linked to before: the line of the end says it.
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

/** What could not be begun for want of its first line has no last one. */
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
