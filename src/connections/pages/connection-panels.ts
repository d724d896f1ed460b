// §24.6: users' connections to servers on the operators' page: their number, their owners, and their end. Never a token.

import { fail } from '../../errors/gateway-error.ts';
import type { AdminPanel } from '../../http/endpoint/admin-panel.ts';
import {
  describeGrantPerson,
  type FoundPeople,
  findGrants,
  type Person,
} from '../../http/endpoint/admin-people.ts';
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
} from '../../http/endpoint/admin-requests.ts';
import type { GrantReader, UserGrant } from '../../http/endpoint/grants.ts';
import { createJsonReply } from '../../http/endpoint/message.ts';
import type { Connections } from '../../mcp/upstream/connections.ts';
import type { ServedFile } from '../../mcp/upstream/upstream-config.ts';
import type { JsonObject } from '../../platform/json.ts';
import { nameOwner, withoutDefault } from '../../store/keys.ts';
import type { Owner } from '../../store/store.ts';

/** `opened` and `grants` are undefined in proxy mode. */
export function createConnectionPanels(
  found: FoundPeople,
  opened: Connections | undefined,
  grants: GrantReader | undefined,
  listServers: ServedFile['listConnectionServers'],
): readonly AdminPanel[] {
  const { issuers } = found;
  const toOwner = (user: UserGrant['user']) => withoutDefault(user, issuers.issuer);

  /** With their connection at each server. */
  async function describePerson(owner: Owner, person: Person) {
    const shown: JsonObject[] = [];
    for (const server of listServers()) {
      if (opened === undefined || server.auth.owner !== 'user') continue;
      const { since, account, ...info } = await opened.describe(owner, server);
      if (info.state !== 'missing')
        shown.push({
          ...info,
          account: readShort(account),
          since: renderTime(since),
        });
    }
    return { ...describeUser(owner, issuers), ...person, connections: shown };
  }

  /** One server after the other, to leave room in the store for calls. */
  async function countConnections(): Promise<JsonObject> {
    const servers: JsonObject[] = [];
    for (const { name: server, auth } of listServers()) {
      const counts = await opened?.count(server);
      if (counts === undefined) continue;
      const { active, 'login needed': loginNeeded } = counts;
      servers.push({ server, owner: auth.owner, active, loginNeeded });
    }
    return { servers };
  }

  /** Finds people by user ID, and logged-in people by a part of e-mail or name. */
  async function findConnections({ from }: AdminPageRequest, text: string): Promise<JsonObject> {
    if (grants === undefined) return { people: [] };
    const page = await findGrants(found, grants, { text, from }, 1);
    const people = new Map(
      page.items.map((grant) => {
        const owner = toOwner(grant.user);
        return [nameOwner(owner), [owner, describeGrantPerson(grant)]] as const;
      }),
    );
    const described: JsonObject[] = [];
    for (const [owner, person] of people.values())
      described.push(await describePerson(owner, person));
    // A user whose last login has ended may still have connections.
    const named = toOwner({ sub: text, issuer: issuers.findIssuerOf(text) });
    if (from === undefined && !people.has(nameOwner(named))) {
      const byId = await describePerson(named, {});
      if (byId.connections.length > 0) described.unshift(byId);
    }
    return { people: described, ...renderNext(page) };
  }

  /** The server may be gone from the configuration file. */
  async function end(at: Connections, name: string | undefined, owner: Owner | undefined) {
    if (owner === undefined) return at.endAtServer(name ?? '', 'operator');
    if (name === undefined) return at.endOfUser(owner, 'operator');
    const server = listServers().find((one) => one.name === name);
    if (server === undefined) return { ended: 0, failed: 0 };
    const { ended, problem } = await at.end(owner, server, 'operator');
    return { ended: ended ? 1 : 0, failed: problem === undefined ? 0 : 1 };
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
    // Each connection that ends has its own audit line, of the event `connection`.
    {
      method: 'DELETE',
      path: '/connections',
      prepare({ request }) {
        const query = new URLSearchParams(request.query);
        return {
          action: 'end_connections',
          target: describeSelection(query),
          /** @throws GatewayError `bad_request` if neither is named, or any other parameter is. */
          async run() {
            if (!isClear(query, OF_CONNECTIONS) || query.size === 0)
              fail('bad_request', {
                details:
                  'Select the connections to end: server=NAME, user=SUB, or both, each once and with a value. issuer=URL with user=SUB names a user of an issuer other than OIDC_ISSUER.',
              });
            const server = query.get('server') ?? undefined;
            const user = readSelectedUser(query, issuers);
            if (opened === undefined) return fail('bad_request', { details: NONE });
            return createJsonReply(200, await end(opened, server, user && toOwner(user)));
          },
        };
      },
    },
  ];
}

const OF_CONNECTIONS = new Set(['server', 'user', 'issuer']);

const NONE =
  'There are no connections: they need OAUTH_MODE=broker, where clients get tokens of the gateway.';
