// Who did what: the audit log.
import { flag, type Rule } from '../rules.ts';
import { defineSetting, type ValuesOf } from '../setting.ts';

/** `stdout` or `file:PATH`. */
export type AuditDestination =
  | { readonly kind: 'stdout' }
  | { readonly kind: 'file'; readonly path: string };

const auditLog: Rule<AuditDestination> = {
  parse(text) {
    if (text === 'stdout') return { kind: 'stdout' };
    const [, path] = /^file:(.+)$/s.exec(text) ?? [];
    return path === undefined ? undefined : { kind: 'file', path };
  },
  allowed: 'stdout, or file: and a path, such as file:/var/log/postern/audit.log',
};

export const auditSettings = {
  destination: defineSetting('AUDIT_LOG', auditLog, {
    summary: 'Where a line of JSON is written for each login, registration, revocation and call.',
    details:
      '`stdout`, beside the log, or `file:PATH`. Never a token or the value of an argument. See [Operations](operations/logs.md#audit-log).',
  }),
  required: defineSetting('AUDIT_REQUIRED', flag, {
    default: { value: false },
    summary: 'Whether calls need a line in the audit log.',
    details:
      'With `true` each call first writes a line of its start; where that fails, it does not run and is answered by 503. Otherwise a full disk is told in the log, and stops nothing.',
  }),
  claims: defineSetting('AUDIT_CLAIMS', flag, {
    default: { value: false },
    summary: 'Whether lines of calls have the groups and claims that rules name.',
    details:
      'With `true`, `postern rules replay` can say what changed rules would do with the calls of the log. See [Rules](rules.md#what-would-have-happened).',
  }),
};

export type AuditConfig = ValuesOf<typeof auditSettings>;
