// §27 as the gateway opens it: calls that somebody has to agree to before they run.
import type { OwnPages } from '../../http/endpoint/own-pages.ts';
import type { CallControl } from '../../mcp/calls/run-target.ts';
import { defineFeature } from '../../mcp/feature.ts';
import { createApprovalEndpoints } from './approval-endpoints.ts';
import { createApprovalPanels } from './approval-panels.ts';
import { openApprovals } from './create-approvals.ts';

interface ApprovalNeeds extends Pick<CallControl, 'getGuards'> {
  readonly ownPages: OwnPages | undefined;
}

export const approvals = defineFeature({
  name: 'approvals',
  open(runtime, { getGuards, ownPages }: ApprovalNeeds) {
    const { close, ...opened } = openApprovals(runtime, getGuards);
    return {
      gives: opened,
      ...(ownPages && { endpoints: createApprovalEndpoints(runtime, ownPages, opened.approvals) }),
      panels: createApprovalPanels(opened.approvals),
      close,
    };
  },
});
