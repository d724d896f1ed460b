// §22: the panels of the operators' API: what operators see below /admin/api, and the acts they can perform.
import type { JsonObject } from '../../platform/json.ts';
import type { AuditedAction } from '../../telemetry/audit/audit.ts';
import type { AdminTable } from './admin-table.ts';
import type { ProtectedCall } from './endpoint.ts';
import type { Reply } from './message.ts';

export type AdminPanel = AdminView | AdminAct;

interface AdminPath {
  /** Below `/admin/api`. */
  readonly path: string;
}

export interface AdminView extends AdminPath {
  readonly method: 'GET';
  /** Renders the panel as a tab of the page; a panel without a table has its own component, or none. */
  readonly table?: AdminTable;
  /** `operator` is the `sub` of the caller. @throws GatewayError, or an error of the store */
  show(query: URLSearchParams, operator: string | undefined): JsonObject | Promise<JsonObject>;
}

export interface AdminAct extends AdminPath {
  readonly method: 'DELETE' | 'POST';
  /** Validates the parameter at the end of the path, if there is one. */
  readonly hasParameter?: (text: string) => boolean;
  /** Has no effect yet. @throws GatewayError `bad_request` for an invalid body */
  prepare(call: ProtectedCall): PreparedAct;
}

export interface PreparedAct extends AdminWork {
  /** `note` writes an audit log line for a part of the work that succeeded. */
  run(note: (part: AdminWork) => void): Promise<Reply>;
}

/** The description for the audit log. */
export interface AdminWork extends Pick<AuditedAction, 'server' | 'tool' | 'prompt' | 'resource'> {
  readonly action: string;
  readonly target: string;
}
