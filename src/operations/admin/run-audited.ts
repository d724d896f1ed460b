// §22.1, §21.1: what operators read and do, and nobody else: the audit log has all of it, and whom it was refused.
import type { ProtectedCall } from '../../endpoint/endpoint.ts';
import type { GatewayRequest, Reply } from '../../endpoint/message.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { ClientOf } from '../../policy/rules/client-of.ts';
import type { Audit, AuditedAction } from '../../telemetry/audit/audit.ts';
import type { Operators } from './operators.ts';

export interface RunAuditedDeps {
  readonly operators: Operators;
  readonly audit: Audit;
  readonly getTraceId: (request: GatewayRequest) => string | undefined;
  /** The OAuth client of a token that is refused; undefined where it is not known. */
  readonly clientOf: ClientOf;
}

/** What an operator does. */
export interface What extends Pick<AuditedAction, 'server' | 'tool' | 'prompt' | 'resource'> {
  readonly action: string;
  readonly target: string;
}

/** `note` writes a line for a part of the work that succeeded. */
type RunAudited = (
  call: ProtectedCall,
  what: What,
  work: (note: (part: What) => void) => Promise<Reply>,
) => Promise<Reply>;

/** @throws GatewayError `operators_only` or `operators_client_only`, or what the work throws. */
export const createRunAudited = ({
  operators,
  audit,
  getTraceId,
  clientOf,
}: RunAuditedDeps): RunAudited =>
  async function runAudited({ request, user }, what, work) {
    const action = {
      event: 'admin',
      ...what,
      user: user?.sub,
      issuer: user?.issuer,
      grant: user?.grant?.id,
      ip: request.clientIp,
      trace: getTraceId(request),
    } as const;

    async function refuse(reason: 'operators_only' | 'operators_client_only'): Promise<never> {
      audit.write({ ...action, client: clientOf({ user }) }, { outcome: 'denied', reason });
      return fail(reason);
    }

    if (user === undefined || !operators.isOperator(user)) return refuse('operators_only');
    const client = await operators.findClient(user);
    if (client === undefined) return refuse('operators_client_only');
    const note = (part: What) =>
      audit.write({ ...action, client, ...part }, { outcome: 'success' });
    return audit.run({ ...action, client }, () => work(note));
  };
