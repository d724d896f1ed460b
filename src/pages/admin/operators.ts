// §22.1: who is an operator, and by which client: an operator's token for another client is in other hands, too.

import { fail } from '../../errors/gateway-error.ts';
import type { AdminWork, PreparedAct } from '../../http/endpoint/admin-panel.ts';
import type { ProtectedCall } from '../../http/endpoint/endpoint.ts';
import {
  identifyCredential,
  type Reply,
  readClaimedClient,
  type UserContext,
} from '../../http/endpoint/message.ts';
import { OPERATORS_CLIENT_ID } from '../../logins/auth/own-clients.ts';
import type { ClientOf } from '../../mcp/calls/client-of.ts';
import { createBoundedMap } from '../../platform/bounded-map.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildTokenClientKey } from '../../store/keys.ts';
import type { Audit } from '../../telemetry/audit/audit.ts';
import { getTraceId } from '../../telemetry/tracing/tracing.ts';

export type Operators = ReturnType<typeof createOperators>;

/** Tokens that need not be looked up again, so that the page also works while the store does not answer. */
const MAX_TOKENS = 1000;

export function createOperators({ config, store }: Runtime) {
  const groups = new Set(config.admin.groups);
  const clients = new Set(config.admin.clients);
  /** By the SHA-256 of a token. What was noted of a token stays true. */
  const ofPage = createBoundedMap<string, true>(MAX_TOKENS);

  async function isTokenOfPage(user: UserContext): Promise<boolean> {
    const digest = identifyCredential(user);
    if (ofPage.get(digest)) return true;
    // The store has a note of each token that the operators' page got.
    if ((await store.get(buildTokenClientKey(digest))) !== OPERATORS_CLIENT_ID) return false;
    ofPage.set(digest, true);
    return true;
  }

  return {
    isOperator: (user: UserContext | undefined) =>
      user?.groups?.some((group) => groups.has(group)) === true,
    /**
     * The client that the token was issued to; undefined where that is none whose tokens are taken.
     *
     * @throws what the store throws.
     */
    async findClient(user: UserContext) {
      const granted = user.grant?.clientId;
      if (granted !== undefined) {
        return granted === OPERATORS_CLIENT_ID || clients.has(granted) ? granted : undefined;
      }
      const claimed = readClaimedClient(user.claims);
      if (claimed !== undefined && clients.has(claimed)) return claimed;
      return (await isTokenOfPage(user)) ? OPERATORS_CLIENT_ID : undefined;
    },
  };
}

// §22.1, §21.1: the audit log has all that operators read and do, and whom it was refused.

/** `note` writes a line for a part of the work that succeeded. */
export type RunAudited = (
  call: ProtectedCall,
  what: AdminWork,
  work: PreparedAct['run'],
) => Promise<Reply>;

/**
 * `clientOf` says the OAuth client of a token that is refused.
 *
 * @throws GatewayError `operators_only` or `operators_client_only`, or what the work throws.
 */
export const createRunAudited = (
  audit: Audit,
  operators: Operators,
  clientOf: ClientOf,
): RunAudited =>
  async function runAudited({ request, user }, what, work) {
    const action = {
      event: 'admin',
      ...what,
      user: user?.sub,
      issuer: user?.issuer,
      grant: user?.grant?.id,
      ip: request.clientIp,
      trace: getTraceId(request),
    } as const;

    async function refuse(reason: 'operators_only' | 'operators_client_only'): Promise<never> {
      audit.write({ ...action, client: clientOf({ user }) }, { outcome: 'denied', reason });
      return fail(reason);
    }

    if (user === undefined || !operators.isOperator(user)) return refuse('operators_only');
    const client = await operators.findClient(user);
    if (client === undefined) return refuse('operators_client_only');
    const note = (part: AdminWork) =>
      audit.write({ ...action, client, ...part }, { outcome: 'success' });
    return audit.run({ ...action, client }, () => work(note));
  };
