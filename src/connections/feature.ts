// §24 as the gateway opens it: users' connections to servers, in broker mode.

import { fail } from '../errors/gateway-error.ts';
import type { AdminPanel } from '../http/endpoint/admin-panel.ts';
import {
  describeGrantPerson,
  type FoundPeople,
  findGrants,
  type Person,
} from '../http/endpoint/admin-people.ts';
import {
  type AdminPageRequest,
  describeSelection,
  describeUser,
  isClear,
  readAdminPageRequest,
  readSelectedUser,
  readShort,
  renderNext,
  renderTime,
} from '../http/endpoint/admin-requests.ts';
import type { GrantReader, UserGrant } from '../http/endpoint/grants.ts';
import { createJsonReply } from '../http/endpoint/message.ts';
import type { OwnPages } from '../http/endpoint/own-pages.ts';
import { defineFeature, type Given } from '../mcp/feature.ts';
import type { ConnectionInfo } from '../mcp/upstream/connection.ts';
import type { ServedFile } from '../mcp/upstream/served-file.ts';
import type { JsonObject } from '../platform/json.ts';
import { nameOwner, withoutDefault } from '../store/owner.ts';
import type { Owner } from '../store/store.ts';
import { createConnections, type OperatedConnections } from './create-connections.ts';
import { createConnectionEndpoints } from './pages/connection-endpoints.ts';

export const connections = defineFeature({
  name: 'connections',
  open(
    runtime,
    {
      servedFile,
      ownTokens,
      operated,
    }: {
      readonly servedFile: ServedFile;
      readonly ownTokens: { readonly grants: GrantReader } | undefined;
      readonly operated: FoundPeople | undefined;
    },
  ) {
    const opened = createConnections(runtime, servedFile.listConnectionServers);
    return {
      gives: { connections: opened },
      ...(operated && {
        panels: createConnectionPanels(operated, opened?.operated, ownTokens?.grants),
      }),
      ...(opened && { gauges: { connections: opened.count }, close: opened.close }),
    };
  },
});

/** Where users connect servers, and see what they have connected. */
export const connectionPages = defineFeature({
  name: 'pages of connections',
  open: (
    runtime,
    {
      connections: opened,
      ownPages,
      servedFile,
    }: Given<typeof connections> & {
      readonly ownPages: OwnPages | undefined;
      readonly servedFile: ServedFile;
    },
  ) => ({
    gives: {},
    ...(opened &&
      ownPages && {
        endpoints: createConnectionEndpoints(
          runtime,
          ownPages,
          opened,
          servedFile.listConnectionServers,
        ),
      }),
  }),
});

// §24.6: users' connections to servers: how many, whose, and their end. Never a token.

/** `operated` and `grants` are undefined where clients get the provider's tokens. */
function createConnectionPanels(
  found: FoundPeople,
  operated: OperatedConnections | undefined,
  grants: GrantReader | undefined,
): readonly AdminPanel[] {
  const { issuers } = found;
  const toOwner = (user: UserGrant['user']): Owner => withoutDefault(user, issuers.issuer);

  async function describePeople(
    people: Iterable<readonly [Owner, Person]>,
  ): Promise<readonly JsonObject[]> {
    const described: JsonObject[] = [];
    for (const [owner, person] of people) {
      const all = (await operated?.describeOfUser(owner)) ?? [];
      const there = all.filter(({ state }) => state !== 'missing');
      described.push({
        ...describeUser(owner, issuers),
        ...person,
        connections: there.map(describeShown),
      });
    }
    return described;
  }

  async function countConnections(): Promise<JsonObject> {
    const counts = (await operated?.count()) ?? [];
    return {
      servers: counts.map(({ 'login needed': loginNeeded, ...count }) => ({
        ...count,
        loginNeeded,
      })),
    };
  }

  /** Of people whose user ID the text is, or of whose e-mail or name it is a part and who are logged in by a client. */
  async function findConnections({ from }: AdminPageRequest, text: string): Promise<JsonObject> {
    if (grants === undefined) return { people: [] };
    const page = await findGrants(found, grants, { text, from }, 1);
    const people = new Map(
      page.items.map((grant) => {
        const owner = toOwner(grant.user);
        return [nameOwner(owner), [owner, describeGrantPerson(grant)]] as const;
      }),
    );
    const described = await describePeople(people.values());
    // Whose last login has ended may still have connections.
    const named = toOwner({ sub: text, issuer: issuers.findIssuerOf(text) });
    const isOther = from === undefined && !people.has(nameOwner(named));
    const byId = (await describePeople(isOther ? [[named, {}]] : [])).filter(hasConnections);
    return { people: [...byId, ...described], ...renderNext(page) };
  }

  return [
    {
      method: 'GET',
      path: '/connections',
      show(query) {
        const text = query.get('person') ?? '';
        return text === ''
          ? countConnections()
          : findConnections(readAdminPageRequest(query), text);
      },
    },
    // Each connection that ends has a line of its own, of the event `connection`.
    {
      method: 'DELETE',
      path: '/connections',
      prepare({ request }) {
        const query = new URLSearchParams(request.query);
        return {
          action: 'end_connections',
          target: describeSelection(query),
          /** @throws GatewayError `bad_request` where neither is named, or anything else is. */
          async run() {
            if (!isClear(query, OF_CONNECTIONS) || query.size === 0) {
              fail('bad_request', {
                details:
                  'Say which connections are to end: server=NAME, user=SUB, or both, each once and with a value. issuer=URL beside user=SUB names a user of another issuer than OIDC_ISSUER.',
              });
            }
            const server = query.get('server') ?? undefined;
            const user = readSelectedUser(query, issuers);
            if (operated === undefined) return fail('bad_request', { details: NONE });
            return createJsonReply(200, await operated.end(server, user && toOwner(user)));
          },
        };
      },
    },
  ];
}

const OF_CONNECTIONS: ReadonlySet<string> = new Set(['server', 'user', 'issuer']);

const NONE =
  'There are no connections: they need OAUTH_MODE=broker, where clients get tokens of the gateway.';

const hasConnections = ({ connections: all }: JsonObject): boolean =>
  Array.isArray(all) && all.length > 0;

const describeShown = ({ since, account, ...shown }: ConnectionInfo): JsonObject => ({
  ...shown,
  account: readShort(account),
  since: since === undefined ? undefined : renderTime(since),
});
