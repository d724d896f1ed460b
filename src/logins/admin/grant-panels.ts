// §22.2: the logins that there are, where the gateway issues tokens of its own: who, by which client, since when.

import { fail } from '../../errors/gateway-error.ts';
import type { AdminPanel } from '../../http/endpoint/admin-panel.ts';
import type { GrantReader, UserGrant } from '../../http/endpoint/grants.ts';
import { createJsonReply, readEmail } from '../../http/endpoint/message.ts';
import { endById } from '../../pages/admin/end-by-id.ts';
import { type FoundPeople, findOfPerson } from '../../pages/admin/find-of-person.ts';
import { describePerson, matchesPerson, type Person } from '../../pages/admin/people.ts';
import {
  type AdminPage,
  type AdminPageRequest,
  describeSelection,
  describeUser,
  type Issuers,
  readAdminPageRequest,
  readGrantSelection,
  readPageRequest,
  readSelectedUser,
  readShort,
  renderNext,
  renderNextOf,
  renderTime,
} from '../../pages/admin/read-request.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { PageRequest } from '../../store/page.ts';
import type { EndGrant, EndSelectedGrants } from '../broker/ends.ts';
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

/** Those of people whose user ID, e-mail or name the text is, or is a part of; of each who is found at once so many. */
export const findGrants = <Found extends UserGrant>(
  found: FoundPeople,
  grants: GrantReader<Found>,
  asked: { readonly text: string; readonly from: AdminPageRequest['from'] },
  maxOfUser: number,
): Promise<AdminPage<Found>> =>
  findOfPerson(found, asked, {
    isMeant: (grant: Found) =>
      matchesPerson(asked.text, grant.user.sub, describeGrantPerson(grant)),
    readPage: (page) => grants.list(page, { kind: 'all' }),
    readOfUser: async (user) => (await grants.listOfUser(user)).slice(0, maxOfUser),
  });

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

/** As the provider said it last. */
export const describeGrantPerson = ({ claims }: UserGrant): Person =>
  describePerson({
    ...(typeof claims.name === 'string' && { name: claims.name }),
    ...readEmail(claims),
  });
