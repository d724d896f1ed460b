// A part of the composition root: calls that somebody has to agree to before they run (§27).

import type { AskFirst, CallControl } from '../../mcp/calls/run-target.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildApprovalsChannelName } from '../../store/keys.ts';
import { createReplicas } from '../../store/replicas/replicas.ts';
import type { CallApprovals } from './approvals.ts';
import { createAskFirst } from './ask-first.ts';
import {
  type ApprovalMessage,
  createCallApprovals,
  isApprovalMessage,
  observeApprovals,
} from './create-approvals.ts';

export interface GatewayApprovals {
  readonly approvals: CallApprovals;
  readonly askFirst: AskFirst;
  close(): void;
}

export function openApprovals(
  runtime: Runtime,
  getGuards: CallControl['getGuards'],
): GatewayApprovals {
  const replicas = createReplicas<ApprovalMessage>(
    runtime,
    buildApprovalsChannelName(runtime.config.mcp.sessions.keyPrefix),
    isApprovalMessage,
  );
  const observer = observeApprovals(runtime);
  const approvals = createCallApprovals(runtime, replicas, observer);
  return {
    approvals,
    askFirst: createAskFirst(runtime, approvals, observer, getGuards),
    close: replicas.close,
  };
}
