// §27 as the gateway opens it: calls that somebody has to agree to before they run.
import type { OwnPages } from '../../http/endpoint/own-pages.ts';
import type { CallControl } from '../../mcp/calls/run-target.ts';
import { defineFeature } from '../../mcp/feature.ts';
import { buildApprovalsChannelName } from '../../store/keys.ts';
import { createReplicas } from '../../store/replicas/replicas.ts';
import { createApprovalEndpoints } from './approval-endpoints.ts';
import { createApprovalPanels } from './approval-panels.ts';
import { createAskFirst } from './ask-first.ts';
import {
  type ApprovalMessage,
  createCallApprovals,
  isApprovalMessage,
  observeApprovals,
} from './create-approvals.ts';

interface ApprovalNeeds extends Pick<CallControl, 'getGuards'> {
  readonly ownPages: OwnPages | undefined;
}

export const approvals = defineFeature({
  name: 'approvals',
  open(runtime, { getGuards, ownPages }: ApprovalNeeds) {
    const replicas = createReplicas<ApprovalMessage>({
      ...runtime,
      channel: buildApprovalsChannelName(runtime.config.mcp.sessions.keyPrefix),
      isMessage: isApprovalMessage,
    });
    const observer = observeApprovals(runtime);
    const callApprovals = createCallApprovals(runtime, replicas, observer);
    return {
      gives: {
        approvals: callApprovals,
        askFirst: createAskFirst(runtime, callApprovals, observer, getGuards),
      },
      ...(ownPages && { endpoints: createApprovalEndpoints(runtime, ownPages, callApprovals) }),
      panels: createApprovalPanels(callApprovals),
      close: replicas.close,
    };
  },
});
