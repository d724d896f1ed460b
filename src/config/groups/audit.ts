// Who did what: the audit log.
import { flag, type Rule } from '../rules.ts';
import { defineSetting, NO_DEFAULT, type Read } from '../setting.ts';

export interface AuditConfig {
  /** Undefined where there is none. */
  readonly destination: AuditDestination | undefined;
  /** Whether calls are refused while their line cannot be written. */
  readonly required: boolean;
}

const auditLog: Rule<AuditDestination> = {
  parse: parseAuditDestination,
  allowed: 'stdout, or file: and a path, such as file:/var/log/postern/audit.log',
};

export const auditSettings = {
  auditLog: defineSetting({
    variable: 'AUDIT_LOG',
    rule: auditLog,
    default: NO_DEFAULT,
    summary: 'Where a line of JSON is written for each login, registration, revocation and call.',
    details:
      '`stdout`, beside the log, or `file:PATH`. Never a token or the value of an argument. See [Operations](operations/logs.md#audit-log).',
  }),
  auditRequired: defineSetting({
    variable: 'AUDIT_REQUIRED',
    rule: flag,
    default: { value: false },
    summary: 'Whether calls need a line in the audit log.',
    details:
      'With `true` each call first writes a line of its start; where that fails, it does not run and is answered by 503. Otherwise a full disk is told in the log, and stops nothing.',
  }),
};

export const readAuditConfig = (read: Read): AuditConfig => ({
  destination: read(auditSettings.auditLog),
  required: read(auditSettings.auditRequired),
});

/** Where the audit log goes. */
export type AuditDestination =
  | { readonly kind: 'stdout' }
  | { readonly kind: 'file'; readonly path: string };

/** `stdout` or `file:PATH`; undefined for anything else. */
function parseAuditDestination(text: string): AuditDestination | undefined {
  if (text === 'stdout') return { kind: 'stdout' };
  const [, path] = /^file:(.+)$/s.exec(text) ?? [];
  return path === undefined ? undefined : { kind: 'file', path };
}
