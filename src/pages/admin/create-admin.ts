// A part of the composition root: the operators' page.

import type { GatewayError } from '../../errors/gateway-error.ts';
import type { AdminPanel } from '../../http/endpoint/admin-panel.ts';
import type { Endpoint } from '../../http/endpoint/endpoint.ts';
import type { GatewayRequest, UserContext } from '../../http/endpoint/message.ts';
import {
  createLoginFailures,
  type LoginFailures,
  type NoteLoginFailure,
} from '../../logins/login-failures.ts';
import type { ClientOf } from '../../mcp/calls/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { noAudit } from '../../telemetry/audit/audit.ts';
import { createAdminEndpoints } from './endpoints.ts';
import type { FoundPeople } from './find-of-person.ts';
import { createOperators, createRunAudited } from './operators.ts';
import { createPeople, createPersonIndex } from './people.ts';
import { createRecentCallers } from './recent-callers.ts';

/** What is noted for operators, before they ask. */
export interface OperatorsNotes extends FoundPeople {
  readonly loginFailures: LoginFailures;
  /** Who has opened a session is found by operators from then on. */
  sealPerson(user: UserContext, sessionId: string): Promise<string | undefined>;
}

/** Undefined without `ADMIN_GROUPS`, and where nobody has to log in. */
export function openOperatorsNotes(runtime: Runtime): OperatorsNotes | undefined {
  const { admin, auth, server } = runtime.config;
  if (admin.groups.length === 0 || !auth.required) return undefined;
  const people = createPeople(runtime);
  const personIndex = createPersonIndex(runtime);
  return {
    loginFailures: createLoginFailures(runtime),
    people,
    personIndex,
    recentCallers: createRecentCallers(runtime, people),
    issuers: { issuer: auth.provider.issuer, baseUrl: server.baseUrl },
    clock: runtime.clock,
    async sealPerson(user, sessionId) {
      const [sealed] = await Promise.all([people.seal(user, sessionId), personIndex.note(user)]);
      return sealed;
    },
  };
}

export const createOperatorEndpoints = (
  runtime: Runtime,
  clientOf: ClientOf,
  panels: readonly AdminPanel[],
): readonly Endpoint[] => {
  const operators = createOperators(runtime);
  const runAudited = createRunAudited(runtime.audit ?? noAudit, operators, clientOf);
  return createAdminEndpoints(panels, operators, runAudited);
};

/** Why a token is refused that its provider did sign: other tokens anybody can make up. */
const OF_SIGNED_TOKENS: ReadonlySet<string> = new Set([
  'invalid_audience',
  'invalid_issuer',
  'missing_claim',
]);

/** The login worked, but its token is of no use here. */
export const noteRefusals =
  (note: NoteLoginFailure) =>
  ({ key, message }: GatewayError, { clientIp: ip }: Pick<GatewayRequest, 'clientIp'>): void => {
    if (OF_SIGNED_TOKENS.has(key))
      note({ step: 'call', client: undefined, ip, error: key, message });
  };
