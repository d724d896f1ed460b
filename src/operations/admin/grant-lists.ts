// §22.2: the logins that there are, where the gateway issues tokens of its own: who, by which client, since when.
import { readEmail } from '../../endpoint/message.ts';
import type { Grant, UserIdentity } from '../../grants/grant.ts';
import type { Grants } from '../../grants/grants.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { PageRequest } from '../../store/page.ts';
import { findOfPerson, type PersonSearchDeps } from './find-of-person.ts';
import { describePerson, matchesPerson, type Person } from './people.ts';
import {
  type AdminPage,
  type AdminPageRequest,
  describeUser,
  readShort,
  renderNext,
  renderNextOf,
  renderTime,
} from './read-request.ts';

export interface GrantSources extends PersonSearchDeps {
  /** Undefined where clients get the provider's tokens. */
  readonly grants: Pick<Grants, 'list' | 'listOfUser'> | undefined;
  /** `OIDC_ISSUER`. */
  readonly issuer: string;
}

export const createGrantLists = (sources: GrantSources) => {
  const renderGrants = (page: AdminPage<Grant>): JsonObject => ({
    tokens: 'gateway',
    grants: page.items.map((grant) => describeGrant(grant, sources)),
    ...renderNext(page),
  });

  return {
    /** `user` for those of one user. */
    async listGrants(request: PageRequest, user: UserIdentity | undefined): Promise<JsonObject> {
      const { grants } = sources;
      if (grants === undefined) return NONE;
      if (user === undefined) return renderGrants(await grants.list(request, { kind: 'all' }));
      const all = await grants.listOfUser(user);
      const skip = request.from?.skip ?? 0;
      const end = skip + request.limit;
      return {
        ...renderGrants({ items: all.slice(skip, end), next: undefined }),
        ...renderNextOf(all.length, end),
      };
    },
    /** Those of people whose user ID, e-mail or name the text is, or is a part of. */
    async findGrants({ from }: AdminPageRequest, text: string): Promise<JsonObject> {
      const { grants } = sources;
      if (grants === undefined) return NONE;
      const found = await findOfPerson(
        sources,
        { text, from },
        {
          isMeant: (grant: Grant) => matchesPerson(text, grant.user.sub, readPerson(grant)),
          readPage: (page) => grants.list(page, { kind: 'all' }),
          readOfUser: async (user) => (await grants.listOfUser(user)).slice(0, GRANTS_OF_USER),
        },
      );
      return renderGrants(found);
    },
  };
};

const GRANTS_OF_USER = 50;

/** Whose tokens clients have: of those of the provider nothing is known here. */
const NONE: JsonObject = { tokens: 'provider', grants: [] };

/** Never a token. */
function describeGrant(grant: Grant, sources: Pick<GrantSources, 'issuer'>): JsonObject {
  const { id, user, client, scopes, resources, createdAt, issued, renewedAt } = grant;
  return {
    id,
    ...describeUser(user, sources),
    ...readPerson(grant),
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
export const readPerson = ({ claims }: Grant): Person =>
  describePerson({
    ...(typeof claims.name === 'string' && { name: claims.name }),
    ...readEmail(claims),
  });
