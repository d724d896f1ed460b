// §24.6: users' connections to servers: how many, whose, and their end. Never a token.
import { findIssuerOf } from '../../auth/machine-clients.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { Grant, UserIdentity } from '../../grants/grant.ts';
import type { Grants } from '../../grants/grants.ts';
import type { JsonObject } from '../../platform/json.ts';
import { nameOwner, withoutDefault } from '../../store/owner.ts';
import type { Owner } from '../../store/store.ts';
import { findOfPerson, type PersonSearchDeps } from './find-of-person.ts';
import { readPerson } from './grant-lists.ts';
import { matchesPerson, type Person } from './people.ts';
import {
  type AdminPageRequest,
  describeUser,
  readShort,
  renderNext,
  renderTime,
} from './read-request.ts';

/** As the room of connections makes it. */
export interface OperatedConnections {
  /** Of each server that has connections, in the order of the configuration file. */
  count(): Promise<
    readonly {
      readonly server: string;
      readonly owner: 'user' | 'shared';
      readonly active: number;
      readonly 'login needed': number;
    }[]
  >;
  describeOfUser(owner: Owner): Promise<readonly ShownConnection[]>;
  /** `failed` is how many a server was not told of. */
  end(selection: {
    readonly server: string | undefined;
    readonly owner: Owner | undefined;
  }): Promise<{ readonly ended: number; readonly failed: number }>;
}

interface ShownConnection {
  readonly server: string;
  readonly state: 'missing' | 'active' | 'login needed';
  readonly account: string | undefined;
  /** Epoch milliseconds. */
  readonly since: number | undefined;
  readonly scopes: readonly string[] | undefined;
  readonly problem: string | undefined;
}

export interface ConnectionSources extends PersonSearchDeps {
  /** Undefined where clients get the provider's tokens. */
  readonly connections: OperatedConnections | undefined;
  /** Likewise. */
  readonly grants: Pick<Grants, 'list' | 'listOfUser'> | undefined;
  /** `BASE_URL`. */
  readonly baseUrl: string;
}

export const createConnectionLists = (sources: ConnectionSources) => {
  const { connections, grants } = sources;
  const toOwner = (user: UserIdentity): Owner => withoutDefault(user, sources.issuer);

  async function describePeople(
    people: Iterable<readonly [Owner, Person]>,
  ): Promise<readonly JsonObject[]> {
    const described: JsonObject[] = [];
    for (const [owner, person] of people) {
      const all = (await connections?.describeOfUser(owner)) ?? [];
      const there = all.filter(({ state }) => state !== 'missing');
      described.push({
        ...describeUser(owner, sources),
        ...person,
        connections: there.map(describeConnection),
      });
    }
    return described;
  }

  return {
    async countConnections(): Promise<JsonObject> {
      const counts = (await connections?.count()) ?? [];
      return {
        servers: counts.map(({ 'login needed': loginNeeded, ...count }) => ({
          ...count,
          loginNeeded,
        })),
      };
    },
    /** Of people whose user ID the text is, or of whose e-mail or name it is a part and who are logged in by a client. */
    async findConnections({ from }: AdminPageRequest, text: string): Promise<JsonObject> {
      if (grants === undefined) return { people: [] };
      const found = await findOfPerson(
        sources,
        { text, from },
        {
          isMeant: (grant: Grant) => matchesPerson(text, grant.user.sub, readPerson(grant)),
          readPage: (page) => grants.list(page, { kind: 'all' }),
          readOfUser: async (user) => (await grants.listOfUser(user)).slice(0, 1),
        },
      );
      const people = new Map(
        found.items.map((grant) => {
          const owner = toOwner(grant.user);
          return [nameOwner(owner), [owner, readPerson(grant)]] as const;
        }),
      );
      const described = await describePeople(people.values());
      // Whose last login has ended may still have connections.
      const named = toOwner({ sub: text, issuer: findIssuerOf(text, sources) });
      const isOther = from === undefined && !people.has(nameOwner(named));
      const byId = (await describePeople(isOther ? [[named, {}]] : [])).filter(hasConnections);
      return { people: [...byId, ...described], ...renderNext(found) };
    },
    /** @throws GatewayError `bad_request` where there can be none. */
    async endConnections(server: string | undefined, user: UserIdentity | undefined) {
      if (connections === undefined) return fail('bad_request', { details: NONE });
      return connections.end({ server, owner: user && toOwner(user) });
    },
  };
};

const NONE =
  'There are no connections: they need OAUTH_MODE=broker, where clients get tokens of the gateway.';

const hasConnections = ({ connections }: JsonObject): boolean =>
  Array.isArray(connections) && connections.length > 0;

const describeConnection = ({ since, account, ...shown }: ShownConnection): JsonObject => ({
  ...shown,
  account: readShort(account),
  since: since === undefined ? undefined : renderTime(since),
});
