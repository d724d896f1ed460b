// §27 as the gateway opens it: calls that somebody has to agree to before they run.

import { fail } from '../../errors/gateway-error.ts';
import type { AdminPanel } from '../../http/endpoint/admin-panel.ts';
import { readPageRequest, renderNext, renderTime } from '../../http/endpoint/admin-requests.ts';
import { createJsonReply, getJson } from '../../http/endpoint/message.ts';
import type { OwnPages } from '../../http/endpoint/own-pages.ts';
import type { CallControl } from '../../mcp/calls/run-target.ts';
import { defineFeature } from '../../mcp/feature.ts';
import { escapeInvisible } from '../../platform/invisible.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { createApprovalEndpoints } from './approval-endpoints.ts';
import {
  type ApprovalDecision,
  type ApprovalRequest,
  type CallApprovals,
  showJson,
} from './approvals.ts';
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

// §27.5: calls that wait for operators: what exactly they would do, and the decision.

type DecidedCalls = Pick<CallApprovals, 'listForOperators' | 'find' | 'decide'>;

const createApprovalPanels = (calls: DecidedCalls): readonly AdminPanel[] => [
  {
    method: 'GET',
    path: '/approvals',
    async show(query) {
      const page = await calls.listForOperators(readPageRequest(query));
      return { approvals: page.items.map(describeRequest), ...renderNext(page) };
    },
  },
  // The audit log has a second line, of the event `approval`, that says which call it is.
  {
    method: 'POST',
    path: '/approvals',
    prepare({ body, user }) {
      const { id, decision } = readCallDecision(getJson(body));
      return {
        action: decision === 'approved' ? 'approve_call' : 'refuse_call',
        target: id,
        async run() {
          const { state } = await decideCall(calls, { id, decision }, user?.sub);
          return createJsonReply(200, { decided: state });
        },
      };
    },
  },
];

/** An operator's decision about a call. */
interface CallDecision {
  readonly id: string;
  readonly decision: ApprovalDecision;
}

/**
 * The first of two decisions counts. `operator` is who decides (`sub`).
 *
 * @throws GatewayError `approval_not_found` where nothing waits for operators under this id.
 */
async function decideCall(
  calls: DecidedCalls,
  { id, decision }: CallDecision,
  operator: string | undefined,
): Promise<ApprovalRequest> {
  const request = await calls.find(id);
  // Calls that users decide about themselves are not for operators.
  if (request?.approver !== 'operator') return fail('approval_not_found');
  const by = { kind: 'operator', name: operator } as const;
  return (await calls.decide(id, decision, by)) ?? fail('approval_not_found');
}

function describeRequest(request: ApprovalRequest): JsonObject {
  const { id, owner, clientId, view, server, tool, name, args, meta, createdAt, expiresAt } =
    request;
  return {
    id,
    user: owner.sub,
    issuer: owner.issuer,
    client: clientId,
    view,
    server,
    tool: escapeInvisible(tool),
    name: escapeInvisible(name),
    arguments: showJson(args),
    meta: meta === undefined ? undefined : showJson(meta),
    createdAt: renderTime(createdAt),
    expiresAt: renderTime(expiresAt),
  };
}

const DECISIONS: ReadonlyMap<unknown, ApprovalDecision> = new Map([
  ['approve', 'approved'],
  ['refuse', 'refused'],
]);

const REQUEST_ID = /^[\w-]{43}$/;

/** @throws GatewayError `bad_request`. */
function readCallDecision(body: unknown): CallDecision {
  const { id, decision: said } = isObject(body) ? body : NOTHING;
  const decision = DECISIONS.get(said);
  return typeof id === 'string' && REQUEST_ID.test(id) && decision !== undefined
    ? { id, decision }
    : fail('bad_request', {
        details:
          'Send {"id": "ID", "decision": "approve"}, or "refuse", with an id as GET /admin/api/approvals says it.',
      });
}

const NOTHING: JsonObject = {};
