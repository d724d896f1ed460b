// §22: what operators see below /admin/api, and what they do there, as each part of the gateway gives it.
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
  /** Draws it as a tab of the page; one without is drawn by a component of its own, or by none. */
  readonly table?: AdminTable;
  /** `operator` is who asks (`sub`). @throws GatewayError, or what the store throws. */
  show(query: URLSearchParams, operator: string | undefined): JsonObject | Promise<JsonObject>;
}

export interface AdminAct extends AdminPath {
  readonly method: 'DELETE' | 'POST';
  /** Says which words are a parameter, of a path that ends in one. */
  readonly hasParameter?: (text: string) => boolean;
  /** Runs nothing yet. @throws GatewayError `bad_request` for a body that is not understood. */
  prepare(call: ProtectedCall): PreparedAct;
}

export interface PreparedAct extends AdminWork {
  /** `note` writes a line of the audit log for a part of the work that succeeded. */
  run(note: (part: AdminWork) => void): Promise<Reply>;
}

/** As the audit log says it. */
export interface AdminWork extends Pick<AuditedAction, 'server' | 'tool' | 'prompt' | 'resource'> {
  readonly action: string;
  readonly target: string;
}
