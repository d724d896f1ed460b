import { toGatewayError } from '../../errors/gateway-error.ts';
import type { AuditedEnd, WorkEnd } from './audit.ts';

export const judgeWork = (end: WorkEnd<unknown>): AuditedEnd =>
  'result' in end
    ? { outcome: 'success' }
    : { outcome: 'failure', reason: toGatewayError(end.thrown).key };
