import type { AuditConfig, AuditDestination } from '../../config/groups/audit.ts';
import type { Audit } from './audit.ts';
import { type AuditDeps, createAudit } from './create-audit.ts';
import { type LineSink, openPathSink, openStdoutSink } from './line-sink.ts';

/** Undefined without `AUDIT_LOG`. @throws AuditLogError when its file cannot be opened. */
export function openAudit(
  { destination, required }: AuditConfig,
  deps: Omit<AuditDeps, 'sink' | 'isRequired'>,
): Audit | undefined {
  if (destination === undefined) return undefined;
  return createAudit({ ...deps, sink: openSink(destination, deps), isRequired: required });
}

const openSink = (destination: AuditDestination, { clock }: Pick<AuditDeps, 'clock'>): LineSink =>
  destination.kind === 'stdout' ? openStdoutSink() : openPathSink(destination.path, clock);
