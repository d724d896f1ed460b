// §22.2: the logins that there are, where the gateway issues tokens of its own: who, by which client, since when.

import { fail } from '../../errors/gateway-error.ts';
import type { AdminPanel } from '../../http/endpoint/admin-panel.ts';
import {
  describeGrantPerson,
  type FoundPeople,
  findGrants,
} from '../../http/endpoint/admin-people.ts';
import {
  type AdminPage,
  describeSelection,
  describeUser,
  endById,
  type Issuers,
  isClear,
  readAdminPageRequest,
  readPageRequest,
  readSelectedUser,
  readShort,
  renderNext,
  renderNextOf,
  renderTime,
} from '../../http/endpoint/admin-requests.ts';
import { createJsonReply } from '../../http/endpoint/message.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { PageRequest } from '../../store/page.ts';
import type { EndGrant, EndSelectedGrants } from '../broker/ends.ts';

import type { GrantSelection } from '../broker/logouts.ts';
import { type Grant, isGrantId, type UserIdentity } from '../grants/grant.ts';
import type { Grants } from '../grants/grants.ts';

/** What operators do with logins, where the gateway issues tokens of its own. */
export interface OperatedGrants {
  readonly grants: Grants;
  readonly endGrant: EndGrant;
  readonly endSelectedGrants: EndSelectedGrants;
}

/** `operated` is undefined where clients get the provider's tokens. */
export function createGrantPanels(
  found: FoundPeople,
  operated: OperatedGrants | undefined,
): readonly AdminPanel[] {
  const { issuers } = found;
  const grants = operated?.grants;

  const renderGrants = (page: AdminPage<Grant>): JsonObject => ({
    tokens: 'gateway',
    grants: page.items.map((grant) => describeGrant(grant, issuers)),
    ...renderNext(page),
  });

  /** `user` for those of one user. */
  async function listGrants(
    request: PageRequest,
    user: UserIdentity | undefined,
  ): Promise<JsonObject> {
    if (grants === undefined) return NONE;
    if (user === undefined) return renderGrants(await grants.list(request, { kind: 'all' }));
    const all = await grants.listOfUser(user);
    const skip = request.from?.skip ?? 0;
    const end = skip + request.limit;
    return {
      ...renderGrants({ items: all.slice(skip, end), next: undefined }),
      ...renderNextOf(all.length, end),
    };
  }

  return [
    {
      method: 'GET',
      path: '/grants',
      async show(query) {
        const text = query.get('person') ?? '';
        if (text === '')
          return listGrants(readPageRequest(query), readSelectedUser(query, issuers));
        const { from } = readAdminPageRequest(query);
        return grants === undefined
          ? NONE
          : renderGrants(await findGrants(found, grants, { text, from }, GRANTS_OF_USER));
      },
    },
    endById('/grants/:id', {
      action: 'end_grant',
      isId: isGrantId,
      end: async (id) => (await operated?.endGrant(id, 'operator')) !== undefined,
      notFound: 'grant_not_found',
    }),
    // The lines of the audit log say which: one for the request, and one for each login.
    {
      method: 'DELETE',
      path: '/grants',
      prepare({ request }) {
        const query = new URLSearchParams(request.query);
        return {
          action: 'end_grants',
          target: describeSelection(query),
          async run(note) {
            const selection = readGrantSelection(query, issuers);
            if (operated === undefined) return fail('bad_request', { details: NO_GRANTS });
            const { ended, failed } = await operated.endSelectedGrants(
              selection,
              'operator',
              ({ id }) => note({ action: 'end_grant', target: id }),
            );
            if (failed > 0) failNotEnded(ended, failed);
            return createJsonReply(200, { ended });
          },
        };
      },
    },
  ];
}

/** @throws GatewayError `bad_request` where the query does not say whose logins are to end, or says anything else. */
function readGrantSelection(query: URLSearchParams, issuers: Issuers): GrantSelection {
  if (query.get('all') === 'true' && query.size === 1) return { kind: 'all' };
  if (isClear(query, OF_GRANTS)) {
    const user = readSelectedUser(query, issuers);
    const client = query.get('client') ?? undefined;
    if (user !== undefined) return { kind: 'user', user, client };
    if (client !== undefined) return { kind: 'client', client };
  }
  return fail('bad_request', {
    details:
      'Say whose logins are to end: user=SUB, client=ID, or both, each once and with a value; or all=true alone, for everybody. issuer=URL beside user=SUB names a user of another issuer than OIDC_ISSUER.',
  });
}

const OF_GRANTS: ReadonlySet<string> = new Set(['user', 'issuer', 'client']);

const GRANTS_OF_USER = 50;

const failNotEnded = (ended: number, failed: number): never =>
  fail('grants_not_ended', {
    details: `Logins that have ended: ${ended}. Still there, because the store failed: ${failed}. Send the request again.`,
  });

const NO_GRANTS =
  'In proxy mode clients have tokens of the provider, which cannot be ended here. Block the account at the provider.';

/** Whose tokens clients have: of those of the provider nothing is known here. */
const NONE: JsonObject = { tokens: 'provider', grants: [] };

/** Never a token. */
function describeGrant(grant: Grant, issuers: Issuers): JsonObject {
  const { id, user, client, scopes, resources, createdAt, issued, renewedAt } = grant;
  return {
    id,
    ...describeUser(user, issuers),
    ...describeGrantPerson(grant),
    client: { id: client.id, name: readShort(client.name), redirectHost: client.redirectHost },
    scopes,
    resources,
    createdAt: renderTime(createdAt),
    refreshedAt: issued.issuedAt > createdAt ? renderTime(issued.issuedAt) : undefined,
    renewedAt: renewedAt > createdAt ? renderTime(renewedAt) : undefined,
    renewalFailsSince:
      grant.renewalFailedAt === undefined ? undefined : renderTime(grant.renewalFailedAt),
  };
}
