// §21.1: the audit log: who did what, and what came of it. Never a token, and never the value of an argument.

import type { JsonObject } from '../../platform/json.ts';

/** The subject of a line. */
export type AuditEvent =
  | 'login'
  | 'refresh'
  | 'registration'
  | 'revocation'
  | 'tool_call'
  | 'prompt_get'
  | 'resource_read'
  /** §24.6: a user's login at a server behind the gateway. */
  | 'connection'
  /** §27: somebody is asked whether a call may run, and what they say. */
  | 'approval'
  | 'admin'
  /** Lines before it could not be written. */
  | 'gap';

export type AuditOutcome =
  /** With `AUDIT_REQUIRED`: it is about to run; a second line says what came of it. */
  | 'started'
  | 'success'
  | 'failure'
  /** Rules, or missing scopes, do not let this user. */
  | 'denied'
  /** The user is asked (2026-07-28): the client calls again with the answer, which is another line. */
  | 'asked';

/** An action: its actor, and its object. Texts that callers choose may be passed as they are: they are cut and escaped. */
export interface AuditedAction {
  readonly event: AuditEvent;
  /** `sub` of the user. */
  readonly user?: string | undefined;
  /** The issuer of `sub`. No line has that of `OIDC_ISSUER`, whether it is passed or not. */
  readonly issuer?: string | undefined;
  /** OAuth client ID. */
  readonly client?: string | undefined;
  /** The login by which they do it: the ID of its grant, where the gateway issues tokens of its own. */
  readonly grant?: string | undefined;
  /** The address from which the request came. */
  readonly ip?: string | undefined;
  /** The claims of their token that rules name, with `AUDIT_CLAIMS`. */
  readonly who?: JsonObject | undefined;
  /** The name in the path of the request behind `/mcp/`: a view (§25), or a server. */
  readonly view?: string | undefined;
  /** The server behind the gateway that it went to. */
  readonly server?: string | undefined;
  readonly tool?: string | undefined;
  readonly prompt?: string | undefined;
  /** URI, of which query, fragment and user info are left out. */
  readonly resource?: string | undefined;
  /** For `admin`, what was done, such as `end_session`, and to what; for `connection` and `approval`, what became of it. */
  readonly action?: string | undefined;
  readonly target?: string | undefined;
  /** The one who ended a connection or decided an approval, or the reason. */
  readonly by?: string | undefined;
  /** W3C trace ID. */
  readonly trace?: string | undefined;
}

export interface AuditedEnd
  extends Pick<AuditedAction, 'user' | 'issuer' | 'client' | 'grant' | 'server'> {
  readonly outcome: AuditOutcome;
  /** Why not: a key of the error catalogue; of a connection that needs a login, a sentence. */
  readonly reason?: string | undefined;
}

export interface Audit {
  /** `AUDIT_REQUIRED`. */
  readonly isRequired: boolean;
  /**
   * With `AUDIT_REQUIRED`: writes a line that says that it starts.
   *
   * @throws GatewayError `audit_unavailable` when that line cannot be written: then the work must not run.
   */
  writeStart(action: AuditedAction): Promise<void>;
  /** Writes one line. Never throws: a line that cannot be written is told in log and metrics. */
  write(action: AuditedAction, end: AuditedEnd, seconds?: number): void;
  /**
   * Runs the work and writes what came of it: success, or a failure with the key of its error. With
   * `AUDIT_REQUIRED` a line says before that it starts.
   *
   * @throws GatewayError `audit_unavailable` when that line cannot be written: the work does not run then.
   * Otherwise what the work throws.
   */
  run<Result>(action: AuditedAction, work: () => Promise<Result>): Promise<Result>;
  /** With `AUDIT_REQUIRED`, rejects while lines cannot be written: then calls are refused. */
  checkIsWritable(): Promise<void>;
  close(): void;
}

/** Without `AUDIT_LOG`. */
export const noAudit: Audit = {
  isRequired: false,
  async writeStart() {},
  write() {},
  run: (_action, work) => work(),
  async checkIsWritable() {},
  close() {},
};
