// A part of the composition root: the operators' page.

import type { Auth } from '../auth/auth.ts';
import type { Config } from '../config/config.ts';
import type { Limiter } from '../edge/limits/limiter.ts';
import type { Endpoint } from '../endpoint/endpoint.ts';
import type { GatewayRequest, UserContext } from '../endpoint/message.ts';
import type { GatewayError } from '../errors/gateway-error.ts';
import { createClientDirectory } from '../oauth/clients/registered-clients.ts';
import type { NoteLoginFailure } from '../oauth/login-failures.ts';
import type { Store } from '../store/store.ts';
import type { Audit } from '../telemetry/audit/audit.ts';
import { noAudit } from '../telemetry/audit/audit.ts';
import { type AdminSources, createAdmin } from './admin/admin.ts';
import { type AdminEndpointsDeps, createAdminEndpoints } from './admin/endpoints.ts';
import { createOperators } from './admin/operators.ts';
import type { People, PersonIndex } from './admin/people.ts';

type FromConfig =
  | 'clients'
  | 'limits'
  | 'listRefusals'
  | 'describeKeySet'
  | 'issuer'
  | 'baseUrl'
  | 'configPath';

/** What other parts of the gateway have for the page. */
export interface AdminParts
  extends Omit<AdminSources, FromConfig>,
    Pick<AdminEndpointsDeps, 'endSession' | 'endGrant' | 'endSelectedGrants' | 'clientOf'> {
  readonly store: Store;
  /** Undefined without `AUDIT_LOG`. */
  readonly audit: Audit | undefined;
  readonly limiter: Pick<Limiter, 'listRefusals'>;
  readonly describeKeySet: Auth['describeKeySet'];
}

/** None without `ADMIN_GROUPS`. */
export function createOperatorEndpoints(config: Config, parts: AdminParts): readonly Endpoint[] {
  const { auth, admin, limits } = config;
  const { store, describeKeySet } = parts;
  if (admin.groups.length === 0 || !auth.required || describeKeySet === undefined) return [];
  const clients = createClientDirectory(store);
  return createAdminEndpoints({
    ...parts,
    admin: createAdmin({
      ...parts,
      clients,
      limits,
      listRefusals: parts.limiter.listRefusals,
      describeKeySet,
      issuer: auth.provider.issuer,
      baseUrl: config.server.baseUrl,
      configPath: config.server.configFile,
    }),
    operators: createOperators({ store, ...admin }),
    issuer: auth.provider.issuer,
    baseUrl: config.server.baseUrl,
    deleteClient: clients.delete,
    audit: parts.audit ?? noAudit,
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
  (people: People, index: PersonIndex) =>
  async (user: UserContext, sessionId: string): Promise<string | undefined> => {
    const [sealed] = await Promise.all([people.seal(user, sessionId), index.note(user)]);
    return sealed;
  };
