// §27, §21.1: what happens to approvals, in the audit log and in metrics. Never the value of an argument.
import type { Runtime } from '../../runtime/runtime.ts';
import type { Audit, AuditedAction } from '../../telemetry/audit/audit.ts';
import type { Metrics } from '../../telemetry/metrics/metrics.ts';
import type { ApprovalObserver, AskedWhom, CallToApprove, DecidedBy } from './approvals.ts';

const auditApprovals = (audit: Pick<Audit, 'write'>): ApprovalObserver => ({
  asked: (call, whom) =>
    audit.write({ ...describe(call, whom), action: 'asked' }, { outcome: 'asked' }),
  decided: (call, whom, decision, by) =>
    audit.write(
      { ...describe(call, whom), action: decision, by: nameDecider(by) },
      { outcome: decision === 'approved' ? 'success' : 'denied' },
    ),
  used: (call, whom) =>
    audit.write({ ...describe(call, whom), action: 'used' }, { outcome: 'success' }),
});

/** The digest says which call it is of several with the same tool, and nothing of its arguments. */
const describe = (call: CallToApprove, whom: AskedWhom): AuditedAction => ({
  event: 'approval',
  user: call.owner?.sub,
  issuer: call.owner?.issuer,
  client: call.clientId,
  server: call.server === '' ? undefined : call.server,
  tool: call.name,
  target: `${whom} ${call.digest}`,
});

const nameDecider = ({ kind, name }: DecidedBy): string =>
  kind === 'user' || name === undefined ? kind : `${kind} ${name}`;

const measureApprovals = (metrics: Pick<Metrics, 'recordApproval'>): ApprovalObserver => ({
  asked: (_call, whom) => metrics.recordApproval(whom, 'asked'),
  decided: (_call, whom, decision) => metrics.recordApproval(whom, decision),
  used: (_call, whom) => metrics.recordApproval(whom, 'used'),
});

/** In this order. */
export function observeApprovals({ metrics, audit }: Runtime): ApprovalObserver {
  const observers = [
    measureApprovals(metrics),
    ...(audit === undefined ? [] : [auditApprovals(audit)]),
  ];
  return {
    asked(...event) {
      for (const { asked } of observers) asked(...event);
    },
    decided(...event) {
      for (const { decided } of observers) decided(...event);
    },
    used(...event) {
      for (const { used } of observers) used(...event);
    },
  };
}
