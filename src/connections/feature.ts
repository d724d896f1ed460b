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
import type {
  Access,
  ActiveAccess,
  Connecting,
  ConnectionServer,
  Connections,
  EndedBy,
} from '../mcp/upstream/connections.ts';
import type { ServedFile } from '../mcp/upstream/upstream-config.ts';
import { createExpiringMap } from '../platform/bounded-map.ts';
import type { JsonObject } from '../platform/json.ts';
import { createSingleFlight } from '../platform/single-flight.ts';
import { createWorkQueue } from '../platform/work-queue.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { buildClientKeyName, buildConnectionsChannelName } from '../store/keys.ts';
import { nameOwner, withoutDefault } from '../store/owner.ts';
import { createReplicas } from '../store/replicas/replicas.ts';
import { createSigningKeys } from '../store/seal/signing-keys.ts';
import type { Owner } from '../store/store.ts';
import { type AuthorizationServers, createAuthorizationServers } from './authorization-servers.ts';
import { createConnecting } from './connecting.ts';
import {
  type ConnectionPlace,
  describeConnection,
  type StoredConnection,
} from './connection-record.ts';
import {
  type ConnectionMessage,
  createCountConnections,
  createKeptConnections,
  findRenewalTime,
  isConnectionMessage,
  type KeptConnections,
} from './kept-connections.ts';
import { createLinkRequests } from './link-requests.ts';
import { createConnectionEndpoints } from './pages/connection-endpoints.ts';
import {
  createRenewal,
  describeMissing,
  FORCED_AGAIN_MS,
  findLoginNeed,
  type TokenRenewal,
} from './renewal.ts';
import { readBearerChallenge } from './servers/authorization-server.ts';

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
        panels: createConnectionPanels(
          operated,
          opened?.connections,
          ownTokens?.grants,
          servedFile.listConnectionServers,
        ),
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

/** `opened` and `grants` are undefined where clients get the provider's tokens. */
function createConnectionPanels(
  found: FoundPeople,
  opened: Connections | undefined,
  grants: GrantReader | undefined,
  listServers: ServedFile['listConnectionServers'],
): readonly AdminPanel[] {
  const { issuers } = found;
  const toOwner = (user: UserGrant['user']) => withoutDefault(user, issuers.issuer);

  /** With those at each server where users have connections of their own. */
  async function describePerson(owner: Owner, person: Person) {
    const shown: JsonObject[] = [];
    for (const server of listServers()) {
      if (opened === undefined || server.auth.owner !== 'user') continue;
      const { since, account, ...info } = await opened.describe(owner, server);
      if (info.state !== 'missing')
        shown.push({
          ...info,
          account: readShort(account),
          since: since === undefined ? undefined : renderTime(since),
        });
    }
    return { ...describeUser(owner, issuers), ...person, connections: shown };
  }

  /** One after the other, so that who looks at it leaves room in the store for calls. */
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
    const described: JsonObject[] = [];
    for (const [owner, person] of people.values())
      described.push(await describePerson(owner, person));
    // Whose last login has ended may still have connections.
    const named = toOwner({ sub: text, issuer: issuers.findIssuerOf(text) });
    if (from === undefined && !people.has(nameOwner(named))) {
      const byId = await describePerson(named, {});
      if (byId.connections.length > 0) described.unshift(byId);
    }
    return { people: described, ...renderNext(page) };
  }

  /** The server need not be in the configuration file any more. */
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
            if (!isClear(query, OF_CONNECTIONS) || query.size === 0)
              fail('bad_request', {
                details:
                  'Say which connections are to end: server=NAME, user=SUB, or both, each once and with a value. issuer=URL beside user=SUB names a user of another issuer than OIDC_ISSUER.',
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

// §24, for the composition root: all of this room, where the gateway knows who somebody is without asking the provider.

/** Undefined where clients get the provider's tokens. `listServers` has those of the configuration file that have connections, as it is now. */
export function createConnections(
  runtime: Runtime,
  listServers: () => readonly ConnectionServer[],
) {
  const { oauth, mcp } = runtime.config;
  if (oauth.mode !== 'broker') return undefined;
  const { loginSeal: seal } = runtime;
  if (seal === undefined) throw new Error('Connections need a secret');
  const getSeal = async () => seal;
  const replicas = createReplicas<ConnectionMessage>(
    { ...runtime, getSeal },
    buildConnectionsChannelName(mcp.sessions.keyPrefix),
    isConnectionMessage,
  );
  const keys = createSigningKeys(runtime, getSeal, buildClientKeyName);
  const kept = createKeptConnections(runtime, seal, listServers, replicas);
  const { records, findPlace } = kept;
  const servers = createAuthorizationServers(runtime, kept, keys, oauth);
  const renewal = createRenewal(runtime, kept, servers);
  const requests = createLinkRequests(runtime, kept);
  const ofUsers: Connections = {
    ...createConnectionAccess(runtime, kept, renewal),
    ...createConnectionEnds(kept, servers),
    async describe(owner, server) {
      const stored = await records.read(findPlace(owner, server.name));
      return describeConnection(server, stored?.record);
    },
    count: records.countOfServer,
    onChange(listener) {
      kept.changes.listen(({ owner, server }, change) => {
        if (change !== 'renewed' && change !== 'declined') listener(owner, server, change);
      });
    },
  };
  const connecting: Connecting = {
    ...createConnecting(runtime, kept, servers, requests),
    getClientDocument: servers.clients.createDocument,
    listPublicKeys: async () => ({ keys: await keys.listPublicKeys() }),
  };
  return {
    connections: ofUsers,
    requests,
    connecting,
    /** For the metrics. */
    count: createCountConnections(runtime, ofUsers, listServers),
    close: replicas.close,
  };
}

// They end: here at once, and at the authorization server where it can be told (RFC 7009).

/** Connections that end together: so many at once. */
const MAX_AT_ONCE = 20;

function createConnectionEnds(
  { records, known, changes, audited, findPlace, listServers }: KeptConnections,
  { revokeConnection }: AuthorizationServers,
): Pick<Connections, 'end' | 'endOfUser' | 'endAtServer'> {
  const findServer = (name: string) => listServers().find((one) => one.name === name);

  /** First here: whatever the authorization server says, nothing is sent by it from now on. */
  async function endOne(place: ConnectionPlace, server: ConnectionServer | undefined, by: EndedBy) {
    const taken = await records.take(place);
    known.forget(place);
    if (taken === undefined) return { ended: false, problem: undefined };
    changes.announce(place, 'missing');
    const { record } = taken;
    if (record !== undefined) audited.ended(place, by);
    return { ended: true, problem: await revokeConnection(place, server, record) };
  }

  async function endAll(places: readonly ConnectionPlace[], by: EndedBy) {
    const queue = createWorkQueue({
      maxRunning: MAX_AT_ONCE,
      maxWaiting: places.length,
      createRefusal: () => new Error('unreachable'),
    });
    const ends = await Promise.all(
      places.map((place) => queue.run(() => endOne(place, findServer(place.server), by))),
    );
    return {
      ended: ends.filter(({ ended }) => ended).length,
      failed: ends.filter(({ problem }) => problem !== undefined).length,
    };
  }

  return {
    end: (owner, server, by) => endOne(findPlace(owner, server.name), server, by),
    async endOfUser(owner, by) {
      // Any server will do: the list is the user's.
      const servers = await records.listOfUser(findPlace(owner, ''));
      return endAll(
        servers.map((server) => findPlace(owner, server)),
        by,
      );
    },
    async endAtServer(server, by) {
      const places: ConnectionPlace[] = [];
      for await (const owner of records.listOfServer(server)) places.push(findPlace(owner, server));
      return endAll(places, by);
    },
  };
}

// §24: by what a request for an owner goes to a server, and what follows where the server refuses it.

/** A model tries again at once: the authorization server must not hear of each try. */
const FAILURE_MS = 5000;
const DAY_MS = 86_400_000;

function createConnectionAccess(
  { clock }: Runtime,
  { records, known, changes, findPlace }: KeptConnections,
  renewal: TokenRenewal,
): Pick<Connections, 'getAccess' | 'peekConnectionId' | 'noteRefusal'> {
  const loads = createSingleFlight<string, Access>();
  const refusals = createSingleFlight<string, Access>();
  const failures = createExpiringMap<Access>('connectionFailures', clock.monotonic);
  // A failure for one connection says nothing of the one that took its place.
  changes.listen(({ hash }) => failures.delete(hash));

  async function load(place: ConnectionPlace, server: ConnectionServer): Promise<Access> {
    const since = known.beginReading();
    let stored: StoredConnection | undefined;
    try {
      stored = await records.read(place);
    } catch {
      return describeUnreadable(server);
    }
    if (stored === undefined) return describeMissing();
    const { record } = stored;
    const needed = findLoginNeed(record, server);
    if (needed !== undefined) return needed;
    const now = clock.now();
    if (now >= findRenewalTime(record)) {
      const access = await renewal.renew(place, server);
      if (access.kind === 'unavailable')
        failures.set(place.hash, access, clock.monotonic() + FAILURE_MS);
      return access;
    }
    // So that what is used does not expire. Whoever else changes it does the same.
    if (now - record.usedAt > DAY_MS)
      void records.replace(place, stored, { ...record, usedAt: now }).catch(() => undefined);
    return known.note(place, server, record, since);
  }

  /** A call that was refused may have been so by what is behind the server, and others are served by the same token. */
  async function renewRefused(
    place: ConnectionPlace,
    server: ConnectionServer,
    { token }: ActiveAccess,
    isRefusedItself: () => Promise<boolean>,
  ): Promise<Access> {
    const isSame = (found: Access) => found.kind === 'active' && found.token === token;
    let access = await renewal.renew(place, server, token);
    // One that was under way for another reason came to the token that was refused.
    if (isSame(access)) access = await renewal.renew(place, server, token);
    if (!isSame(access)) return access;
    // It goes on where the server takes the token, was asked already, or another token may be had soon.
    const stored = await records.read(place);
    if (stored === undefined) return describeMissing();
    const { record } = stored;
    const now = clock.now();
    const { forced, askedAt, refreshToken } = record;
    const isFresh = refreshToken === undefined || forced?.isRenewed === true;
    const isAsked = askedAt !== undefined && now - askedAt < FORCED_AGAIN_MS;
    if (record.accessToken !== token || !isFresh || isAsked) return access;
    // One of all replicas asks.
    const asking = await records.replace(place, stored, { ...record, askedAt: now });
    if (asking === undefined || !(await isRefusedItself())) return access;
    const reason =
      refreshToken === undefined
        ? `${server.name} refuses its token, and its authorization server gave none to renew it: log in again`
        : `${server.name} refuses the token that its authorization server has just made for this account: log in again`;
    return (await renewal.requireLogin(place, asking, reason)) ?? access;
  }

  return {
    getAccess(owner, server) {
      const place = findPlace(owner, server.name);
      const found = known.get(place, server) ?? failures.get(place.hash);
      return found ?? loads.run(`${place.hash} ${server.url}`, () => load(place, server));
    },
    peekConnectionId: (owner, server) =>
      known.get(findPlace(owner, server.name), server)?.connectionId,
    async noteRefusal(owner, server, used, { status, challenge }, isRefusedItself) {
      const place = findPlace(owner, server.name);
      if (status === 403) {
        const { scopes } = readBearerChallenge(challenge);
        const names = scopes === undefined ? 'more than was granted' : scopes.join(' ');
        // The token stays good for all else.
        return {
          kind: 'login needed',
          reason: `${server.name} asks for more scopes (${names}): log in again to grant them`,
          scopes,
        };
      }
      const key = `${place.hash} ${used.token}`;
      // The failure is this caller's alone: others are served by what there is.
      return refusals
        .run(key, () => renewRefused(place, server, used, isRefusedItself))
        .catch(() => describeUnreadable(server));
    },
  };
}

const describeUnreadable = ({ name }: ConnectionServer): Access => ({
  kind: 'unavailable',
  reason: `the connection to ${name} could not be read just now`,
});
