// §27.5: calls that wait for operators: what exactly they would do, and the decision.
import { fail } from '../../errors/gateway-error.ts';
import { escapeInvisible } from '../../platform/invisible.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import {
  type ApprovalDecision,
  type ApprovalRequest,
  type CallApprovals,
  showJson,
} from '../../policy/approvals/approvals.ts';
import type { PageRequest } from '../../store/page.ts';
import { renderNext, renderTime } from './read-request.ts';

export interface ApprovalSources {
  readonly callApprovals: Pick<CallApprovals, 'listForOperators' | 'find' | 'decide'>;
}

/** What an operator says of a call. */
export interface CallDecision {
  readonly id: string;
  readonly decision: ApprovalDecision;
}

export const createApprovalActions = ({ callApprovals }: ApprovalSources) => ({
  async listCallApprovals(request: PageRequest): Promise<JsonObject> {
    const page = await callApprovals.listForOperators(request);
    return { approvals: page.items.map(describeRequest), ...renderNext(page) };
  },
  /**
   * Of two decisions the first counts. `operator` is who decides (`sub`).
   *
   * @throws GatewayError `approval_not_found` where nothing waits for operators under this id.
   */
  async decideCall(
    { id, decision }: CallDecision,
    operator: string | undefined,
  ): Promise<ApprovalRequest> {
    const request = await callApprovals.find(id);
    // What users decide themselves is nothing of operators'.
    if (request?.approver !== 'operator') return fail('approval_not_found');
    const by = { kind: 'operator', name: operator } as const;
    return (await callApprovals.decide(id, decision, by)) ?? fail('approval_not_found');
  },
});

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
export function readCallDecision(body: unknown): CallDecision {
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
