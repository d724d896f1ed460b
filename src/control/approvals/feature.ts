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
import type { Runtime } from '../../runtime/runtime.ts';
import { buildApprovalsChannelName } from '../../store/keys.ts';
import { createReplicas } from '../../store/replicas/replicas.ts';
import { createApprovalEndpoints } from './approval-endpoints.ts';
import {
  type ApprovalDecision,
  type ApprovalMessage,
  type ApprovalRequest,
  type CallApprovals,
  createCallApprovals,
  isApprovalMessage,
  type NoteApproval,
  showJson,
} from './approvals.ts';
import { createAskFirst } from './ask-first.ts';

export const approvals = defineFeature({
  name: 'approvals',
  open(
    runtime,
    {
      getGuards,
      ownPages,
    }: Pick<CallControl, 'getGuards'> & { readonly ownPages: OwnPages | undefined },
  ) {
    const replicas = createReplicas<ApprovalMessage>(
      runtime,
      buildApprovalsChannelName(runtime.config.mcp.sessions.keyPrefix),
      isApprovalMessage,
    );
    const note = createNote(runtime);
    const kept = createCallApprovals(runtime, replicas, note);
    return {
      gives: { approvals: kept, askFirst: createAskFirst(runtime, kept, note, getGuards) },
      ...(ownPages && { endpoints: createApprovalEndpoints(runtime, ownPages, kept) }),
      panels: createApprovalPanels(kept),
      close: replicas.close,
    };
  },
});

// §27.5: calls that wait for operators: what exactly they would do, and the decision.

const createApprovalPanels = (kept: CallApprovals): readonly AdminPanel[] => [
  {
    method: 'GET',
    path: '/approvals',
    async show(query) {
      const page = await kept.listForOperators(readPageRequest(query));
      return { approvals: page.items.map(describeRequest), ...renderNext(page) };
    },
  },
  // The audit log has a second line, of the event `approval`, that says which call it is.
  {
    method: 'POST',
    path: '/approvals',
    prepare({ body, user }) {
      const given = getJson(body);
      const { id, decision: said } = isObject(given) ? given : {};
      const decision = DECISIONS.get(said);
      if (typeof id !== 'string' || !REQUEST_ID.test(id) || decision === undefined)
        return fail('bad_request', {
          details:
            'Send {"id": "ID", "decision": "approve"}, or "refuse", with an id as GET /admin/api/approvals says it.',
        });
      return {
        action: decision === 'approved' ? 'approve_call' : 'refuse_call',
        target: id,
        /** @throws GatewayError `approval_not_found` where nothing waits for operators under this id. */
        async run() {
          const request = await kept.find(id);
          // Calls that users decide about themselves are not for operators.
          if (request?.approver !== 'operator') return fail('approval_not_found');
          // The first of two decisions counts.
          const by = { kind: 'operator', name: user?.sub } as const;
          const { state } = (await kept.decide(id, decision, by)) ?? fail('approval_not_found');
          return createJsonReply(200, { decided: state });
        },
      };
    },
  },
];

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

// §21.1: approvals in the audit log and in metrics. Never the value of an argument.

/** Metrics first. */
function createNote({ metrics, audit }: Runtime): NoteApproval {
  return function note(call, whom, action, by) {
    metrics.recordApproval(whom, action);
    audit?.write(
      {
        event: 'approval',
        user: call.owner?.sub,
        issuer: call.owner?.issuer,
        client: call.clientId,
        server: call.server === '' ? undefined : call.server,
        tool: call.name,
        // The digest says which call it is of several with the same tool, and nothing of its arguments.
        target: `${whom} ${call.digest}`,
        action,
        ...(by && {
          by: by.kind === 'user' || by.name === undefined ? by.kind : `${by.kind} ${by.name}`,
        }),
      },
      { outcome: OUTCOMES[action] },
    );
  };
}

const OUTCOMES = {
  asked: 'asked',
  approved: 'success',
  refused: 'denied',
  used: 'success',
} as const;
