// A part of the composition root: calls that somebody has to agree to before they run (§27).
import type { Config } from '../config/config.ts';
import { type AskFirstDeps, createAskFirst } from '../mcp/control/ask-first.ts';
import type { AskFirst } from '../mcp/control/run-target.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import type { Approvals } from '../policy/approvals/approvals.ts';
import { hasApprovalsPage } from '../policy/approvals/ask-problems.ts';
import {
  type ApprovalMessage,
  createApprovals,
  isApprovalMessage,
} from '../policy/approvals/create-approvals.ts';
import {
  auditApprovals,
  joinApprovalObservers,
  measureApprovals,
} from '../policy/approvals/observe-approvals.ts';
import { buildApprovalsChannelName } from '../store/keys.ts';
import { createReplicas } from '../store/replicas/replicas.ts';
import type { Seal } from '../store/seal/seal.ts';
import type { Bus, KeyValue } from '../store/store.ts';
import type { Audit } from '../telemetry/audit/audit.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';

interface GatewayApprovalsDeps extends Pick<AskFirstDeps, 'getGuards'> {
  readonly store: KeyValue & Bus;
  readonly getSeal: () => Promise<Seal>;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Undefined without `AUDIT_LOG`. */
  readonly audit: Audit | undefined;
}

export interface GatewayApprovals {
  readonly approvals: Approvals;
  readonly askFirst: AskFirst;
  close(): void;
}

export function openApprovals(config: Config, deps: GatewayApprovalsDeps): GatewayApprovals {
  const { metrics, audit, getGuards } = deps;
  const replicas = createReplicas<ApprovalMessage>({
    ...deps,
    channel: buildApprovalsChannelName(config.mcp.sessions.keyPrefix),
    isMessage: isApprovalMessage,
  });
  const observer = joinApprovalObservers([
    measureApprovals(metrics),
    ...(audit === undefined ? [] : [auditApprovals(audit)]),
  ]);
  const approvals = createApprovals({ ...deps, replicas, observer });
  return {
    approvals,
    askFirst: createAskFirst({
      approvals,
      observer,
      getGuards,
      pageUrl: hasApprovalsPage(config) ? `${config.server.baseUrl}/approvals` : undefined,
      defaultIssuer: config.oauth.provider?.issuer,
    }),
    close: replicas.close,
  };
}
