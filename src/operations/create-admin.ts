// A part of the composition root: the operators' page.

import type { Auth } from '../auth/auth.ts';
import type { Config } from '../config/config.ts';
import type { Limiter } from '../edge/limits/limiter.ts';
import type { Endpoint } from '../endpoint/endpoint.ts';
import type { GatewayRequest } from '../endpoint/message.ts';
import type { GatewayError } from '../errors/gateway-error.ts';
import type { Mcp } from '../mcp/mcp.ts';
import type { SealPerson } from '../mcp/session/sessions.ts';
import { createClientDirectory } from '../oauth/clients/registered-clients.ts';
import type { LoginFailures, NoteLoginFailure } from '../oauth/login-failures.ts';
import type { Clock } from '../platform/clock.ts';
import type { ClientOf } from '../policy/rules/client-of.ts';
import type { Store } from '../store/store.ts';
import type { Audit } from '../telemetry/audit/audit.ts';
import { noAudit } from '../telemetry/audit/audit.ts';
import type { GatewayUpstreams } from '../upstreams/create-upstreams.ts';
import { createAdmin } from './admin/admin.ts';
import { createAdminEndpoints } from './admin/endpoints.ts';
import { createOperators } from './admin/operators.ts';
import type { People, PersonIndex } from './admin/people.ts';
import type { RecentCallers } from './admin/recent-callers.ts';

export interface AdminParts {
  readonly store: Store;
  readonly clock: Clock;
  /** Undefined without `AUDIT_LOG`. */
  readonly audit: Audit | undefined;
  readonly getTraceId: (request: GatewayRequest) => string | undefined;
  readonly clientOf: ClientOf;
  readonly loginFailures: LoginFailures;
  readonly people: People;
  readonly personIndex: PersonIndex;
  readonly recentCallers: RecentCallers;
  readonly limiter: Limiter;
  readonly describeKeySet: Auth['describeKeySet'];
  readonly endSession: Mcp['endSession'];
  readonly listServers: GatewayUpstreams['listServers'];
  readonly listServerTools: GatewayUpstreams['listServerTools'];
  readonly listLockDifferences: GatewayUpstreams['listLockDifferences'];
  /** Undefined without a configuration file. */
  readonly lockApproval: GatewayUpstreams['lockApproval'] | undefined;
  /** Undefined without a configuration file. */
  readonly previewAccess: GatewayUpstreams['previewAccess'] | undefined;
  readonly lockCommand: string;
}

/** None without `ADMIN_GROUPS`. */
export function createOperatorEndpoints(config: Config, parts: AdminParts): readonly Endpoint[] {
  const { auth, admin, limits } = config;
  const { store, describeKeySet } = parts;
  if (admin.groups.length === 0 || !auth.required || describeKeySet === undefined) return [];
  const clients = createClientDirectory(store);
  return createAdminEndpoints({
    admin: createAdmin({
      store,
      clock: parts.clock,
      people: parts.people,
      personIndex: parts.personIndex,
      recentCallers: parts.recentCallers,
      clients,
      loginFailures: parts.loginFailures,
      limits,
      listRefusals: parts.limiter.listRefusals,
      describeKeySet,
      issuer: auth.provider.issuer,
      listServers: parts.listServers,
      listServerTools: parts.listServerTools,
      listLockDifferences: parts.listLockDifferences,
      lockApproval: parts.lockApproval,
      previewAccess: parts.previewAccess,
      configPath: config.server.configFile,
      lockCommand: parts.lockCommand,
    }),
    operators: createOperators({ store, ...admin }),
    endSession: parts.endSession,
    deleteClient: clients.delete,
    clock: parts.clock,
    audit: parts.audit ?? noAudit,
    getTraceId: parts.getTraceId,
    clientOf: parts.clientOf,
  });
}

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

/** Who has opened a session is found by operators from then on. */
export const createSealPerson =
  (people: People, index: PersonIndex): SealPerson =>
  async (user, sessionId) => {
    const [sealed] = await Promise.all([people.seal(user, sessionId), index.note(user)]);
    return sealed;
  };
