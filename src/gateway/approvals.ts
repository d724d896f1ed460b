// A part of the composition root: calls that somebody has to agree to before they run (§27).
import { type AskFirstDeps, createAskFirst } from '../mcp/control/ask-first.ts';
import type { AskFirst } from '../mcp/control/run-target.ts';
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
import type { Runtime } from '../runtime/runtime.ts';
import { buildApprovalsChannelName } from '../store/keys.ts';
import { createReplicas } from '../store/replicas/replicas.ts';

export interface GatewayApprovals {
  readonly approvals: Approvals;
  readonly askFirst: AskFirst;
  close(): void;
}

export function openApprovals(
  runtime: Runtime,
  getGuards: AskFirstDeps['getGuards'],
): GatewayApprovals {
  const { config, metrics, audit } = runtime;
  const replicas = createReplicas<ApprovalMessage>({
    ...runtime,
    channel: buildApprovalsChannelName(config.mcp.sessions.keyPrefix),
    isMessage: isApprovalMessage,
  });
  const observer = joinApprovalObservers([
    measureApprovals(metrics),
    ...(audit === undefined ? [] : [auditApprovals(audit)]),
  ]);
  const approvals = createApprovals({ ...runtime, replicas, observer });
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
