// §21.1: the interface of the audit log: who did what, and the outcome. Never contains tokens or the values of arguments.

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
  /** §24.6: a user's login to a server behind the gateway. */
  | 'connection'
  /** §27: an approval was requested for a call, or decided. */
  | 'approval'
  | 'admin'
  /** Reports that earlier lines could not be written. */
  | 'gap';

export type AuditOutcome =
  /** With `AUDIT_REQUIRED`: the action is about to run; a second line has its outcome. */
  | 'started'
  | 'success'
  | 'failure'
  /** The user is denied by rules, or lacks scopes. */
  | 'denied'
  /** The user is asked for approval (2026-07-28): the client repeats the call with the answer, which is another line. */
  | 'asked';

/** An action: its actor, and its object. Strings chosen by callers may be passed unchanged: they are truncated and escaped. */
export interface AuditedAction {
  readonly event: AuditEvent;
  /** `sub` of the user. */
  readonly user?: string | undefined;
  /** The issuer of `sub`. Lines omit the issuer `OIDC_ISSUER`, even if it is passed. */
  readonly issuer?: string | undefined;
  /** OAuth client ID. */
  readonly client?: string | undefined;
  /** The login used by the client: the ID of its grant, if the gateway issues its own tokens. */
  readonly grant?: string | undefined;
  /** The address of the request. */
  readonly ip?: string | undefined;
  /** The token's claims that rules refer to, with `AUDIT_CLAIMS`. */
  readonly who?: JsonObject | undefined;
  /** The name after `/mcp/` in the path of the request: a view (§25), or a server. */
  readonly view?: string | undefined;
  /** The server behind the gateway that received the call. */
  readonly server?: string | undefined;
  readonly tool?: string | undefined;
  readonly prompt?: string | undefined;
  /** URI without query, fragment and user info. */
  readonly resource?: string | undefined;
  /** For `admin`, the act, such as `end_session`, and its object; for `connection` and `approval`, the outcome. */
  readonly action?: string | undefined;
  readonly target?: string | undefined;
  /** The user who ended a connection or decided an approval, or the reason. */
  readonly by?: string | undefined;
  /** W3C trace ID. */
  readonly trace?: string | undefined;
}

export interface AuditedEnd
  extends Pick<AuditedAction, 'user' | 'issuer' | 'client' | 'grant' | 'server'> {
  readonly outcome: AuditOutcome;
  /** The reason of a failure: a key of the error catalogue, or a sentence for a connection that needs a login. */
  readonly reason?: string | undefined;
}

export interface Audit {
  /** `AUDIT_REQUIRED`. */
  readonly isRequired: boolean;
  /**
   * With `AUDIT_REQUIRED`: writes a line about the start of the action.
   *
   * @throws GatewayError `audit_unavailable` if that line cannot be written, in which case the action must not run.
   */
  writeStart(action: AuditedAction): Promise<void>;
  /** Writes one line. Never throws: a failure is reported in the log and in metrics. */
  write(action: AuditedAction, end: AuditedEnd, seconds?: number): void;
  /**
   * Runs the work and writes its outcome: success, or a failure with the key of its error. With `AUDIT_REQUIRED`, first writes a
   * line that the work has begun.
   *
   * @throws GatewayError `audit_unavailable` if that line cannot be written, in which case the work does not run. Otherwise rejects
   * with the error of the work.
   */
  run<Result>(action: AuditedAction, work: () => Promise<Result>): Promise<Result>;
  /** With `AUDIT_REQUIRED`, rejects while lines cannot be written, so that calls are refused. */
  checkIsWritable(): Promise<void>;
  close(): void;
}

/** For a gateway without `AUDIT_LOG`. */
export const noAudit: Audit = {
  isRequired: false,
  async writeStart() {},
  write() {},
  run: (_action, work) => work(),
  async checkIsWritable() {},
  close() {},
};
