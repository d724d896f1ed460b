// §24: what the store has of a connection. It is sealed with a key of its owner and server.
import type { ClientAuthMethod } from '../http/oauth-client/client-authentication.ts';
import {
  type ConnectionInfo,
  type ConnectionOwner,
  type ConnectionServer,
  type ConnectionState,
  nameConnectionOwner,
} from '../mcp/upstream/connections.ts';
import { createBoundedMap } from '../platform/bounded-map.ts';
import { hashSha256 } from '../platform/ids.ts';
import { isObject, parseObject } from '../platform/json.ts';
import type { Runtime } from '../runtime/runtime.ts';
import {
  buildConnectionKey,
  buildListedConnectionKey,
  buildServerConnectionsKey,
  buildServerLoginsNeededKey,
  buildUserConnectionsKey,
} from '../store/keys.ts';
import { withoutDefault } from '../store/owner.ts';
import { readPages } from '../store/page.ts';
import { checkRecordVersion, writeVersioned } from '../store/records.ts';
import { createSeal, type Seal } from '../store/seal/seal.ts';
import { isSameIssuer } from './servers/authorization-server.ts';

/** Times are epoch milliseconds. */
export interface ConnectionRecord {
  /** Another after each login; renewals keep it. */
  readonly id: string;
  readonly state: Exclude<ConnectionState, 'missing'>;
  /** Why a login is needed; of one that is active, what was not ended of the login that it replaced. */
  readonly problem?: string | undefined;
  /** The origin of the server that it was made for. */
  readonly serverOrigin: string;
  /** The name that the authorization server has for itself; where an operator named endpoints alone, the token endpoint. */
  readonly issuer: string;
  readonly tokenUrl: string;
  readonly revocationUrl?: string | undefined;
  readonly client: {
    readonly id: string;
    /** The secret of a registered client; that of a configured one stands in the configuration alone. */
    readonly secret?: string | undefined;
    readonly source: ClientSource;
    readonly method: ClientAuthMethod;
  };
  /** RFC 8707: what the tokens are for; undefined where that is not sent. */
  readonly resource?: string | undefined;
  readonly accessToken: string;
  /** Undefined for a token that does not expire, or does not say so. */
  readonly expiresAt?: number | undefined;
  /** When this token came. */
  readonly tokenAt: number;
  readonly refreshToken?: string | undefined;
  /** As granted; undefined where it is not known. */
  readonly scopes?: readonly string[] | undefined;
  readonly account?: string | undefined;
  /** The identifier by which the authorization server knows the account (`sub` of its ID token); undefined where it does not say. */
  readonly subject?: string | undefined;
  readonly since: number;
  readonly usedAt: number;
  /** A renewal whose outcome is not noted: it is under way, or the replica that began it has died. */
  readonly renewal?: { readonly attempt: string; readonly at: number } | undefined;
  /** When a token was last asked for because the server had answered 401 to the one before, and whether this one came since. */
  readonly forced?: { readonly at: number; readonly isRenewed: boolean } | undefined;
  /** When the server itself was last asked whether it refuses the token. */
  readonly askedAt?: number | undefined;
  /** Until when the lists name it. */
  readonly listedUntil: number;
}

/** The way in which the gateway is known at an authorization server: the configuration, its client document, a registration. */
export type ClientSource = 'configured' | 'document' | 'registered';

export interface StoredConnection {
  readonly record: ConnectionRecord;
  /** The value under its key. */
  readonly text: string;
}

function sealConnection(
  seal: Seal,
  place: ConnectionPlace,
  record: ConnectionRecord,
): StoredConnection {
  const { issuer } = record;
  const sealed = derive(seal, place).seal(buildContext(place, issuer), JSON.stringify(record));
  // Its issuer must be known to open it.
  return { record, text: writeVersioned({ issuer, sealed }) };
}

/** Undefined for what no secret opens here: it is of another user, server or issuer, or of another secret. */
function unsealConnection(
  seal: Seal,
  place: ConnectionPlace,
  text: string,
): StoredConnection | undefined {
  const { version, issuer, sealed } = parseObject(text) ?? {};
  if (typeof issuer !== 'string' || typeof sealed !== 'string') return undefined;
  checkRecordVersion(version, 'A connection');
  const opened = derive(seal, place).open(buildContext(place, issuer), sealed);
  // A record that opens was written by this code: no other check of its shape is needed.
  return opened === undefined
    ? undefined
    : { record: JSON.parse(opened) as ConnectionRecord, text };
}

/** A key for each owner and server: what else is known of one opens no other. */
const derive = (seal: Seal, { ownerName, server }: ConnectionPlace) =>
  createSeal(
    seal
      .deriveKeys(`postern connection ${JSON.stringify([ownerName, server])}`)
      .map(({ bytes }) => bytes.toString('base64url')),
  );

const buildContext = ({ ownerName, ownerIssuer, server }: ConnectionPlace, issuer: string) =>
  JSON.stringify(['connection', ownerName, ownerIssuer, server, issuer]);

// An operator may give a server's name to another host, or name another authorization server: what was made for the one before
// goes to neither.

export function isMadeFor(
  {
    serverOrigin,
    issuer,
    tokenUrl,
    client,
  }: Pick<ConnectionRecord, 'serverOrigin' | 'issuer' | 'tokenUrl' | 'client'>,
  { url, auth }: ConnectionServer,
): boolean {
  const { authorizationServer: named, clientId } = auth;
  if (serverOrigin !== new URL(url).origin) return false;
  // Its tokens are of no use to another client, and that one's secret is not for whoever made them.
  if (client.source === 'configured' && client.id !== clientId) return false;
  if (named === undefined) return true;
  return 'issuer' in named ? isSameIssuer(named.issuer, issuer) : named.tokenUrl === tokenUrl;
}

/** The reason for a login where it was made for another server. */
export const describeChanged = ({ name }: ConnectionServer): string =>
  `${name} was set up anew, at another address or with another login, since its user logged in: log in again`;

/** As users and operators see it. */
export function describeConnection(
  server: ConnectionServer,
  record: ConnectionRecord | undefined,
): ConnectionInfo {
  const isOfAnother = record?.state === 'active' && !isMadeFor(record, server);
  return {
    server: server.name,
    state: isOfAnother ? 'login needed' : (record?.state ?? 'missing'),
    account: record?.account,
    since: record?.since,
    scopes: record?.scopes,
    problem: isOfAnother ? describeChanged(server) : record?.problem,
  };
}

// The place of a connection: under its owner and its server, and nowhere else.

export interface ConnectionPlace {
  /** Without the default issuer. */
  readonly owner: ConnectionOwner;
  /** The issuer of the owner, also where that is the default one, which may change. Undefined for what is shared. */
  readonly ownerIssuer: string | undefined;
  /** Tells owners apart. */
  readonly ownerName: string;
  readonly server: string;
  /** A hash of owner and server, for keys. */
  readonly hash: string;
}

export function createPlaces(defaultIssuer: string | undefined) {
  const remembered = createBoundedMap<string, ConnectionPlace>('connectionPlaces');

  return function findPlace(given: ConnectionOwner, server: string): ConnectionPlace {
    const owner = given === 'shared' ? given : withoutDefault(given, defaultIssuer);
    const ownerName = nameConnectionOwner(owner);
    const name = JSON.stringify([ownerName, server]);
    const known = remembered.get(name);
    if (known !== undefined) return known;
    const ownerIssuer = given === 'shared' ? undefined : (given.issuer ?? defaultIssuer);
    const place = { owner, ownerIssuer, ownerName, server, hash: hashSha256(name) };
    remembered.set(name, place);
    return place;
  };
}

export type FindPlace = ReturnType<typeof createPlaces>;

// §24: connections in the store: each under its owner and server, and listed for both.

export type ConnectionRecords = ReturnType<typeof createConnectionRecords>;

type Unlisted = Omit<ConnectionRecord, 'listedUntil'>;

/** Since the last renewal or use. */
const KEPT_SECONDS = 31_536_000;
/** So much longer it is listed, so that few renewals have to list it anew. */
const LISTED_RESERVE_SECONDS = 2_592_000;
/** More than anybody has servers. */
const MAX_OF_USER = 1000;
const PAGE = 200;

/** All may throw StoreUnavailable. */
export function createConnectionRecords({ store, clock }: Runtime, seal: Seal) {
  /** Before it is written: nobody could end one that stands in no list. */
  async function enlist(place: ConnectionPlace, record: Unlisted): Promise<ConnectionRecord> {
    const ttlSeconds = KEPT_SECONDS + LISTED_RESERVE_SECONDS;
    const { ofUser, ofServer, loginNeeded } = findLists(place);
    const named = sealText(ofUser.key, { server: place.server });
    const owned = sealText(ofServer.key, { owner: place.owner });
    await Promise.all([
      store.setListed(ofUser.list, ofUser.key, named, ttlSeconds),
      store.setListed(ofServer.list, ofServer.key, owned, ttlSeconds),
      record.state === 'login needed'
        ? store.setListed(loginNeeded.list, loginNeeded.key, '1', ttlSeconds)
        : store.deleteListed(loginNeeded.list, loginNeeded.key),
    ]);
    return { ...record, listedUntil: clock.now() + ttlSeconds * 1000 };
  }

  async function unlist(place: ConnectionPlace) {
    await Promise.all(
      Object.values(findLists(place)).map(({ list, key }) =>
        store.deleteListed(list, key).catch(() => false),
      ),
    );
  }

  const sealText = (key: string, value: object) => seal.seal(key, JSON.stringify(value));

  /** All pages of a list, opened. */
  async function* readList(list: string) {
    for await (const items of readPages((request) => store.readListed(list, request), PAGE)) {
      for (const { key, value } of items) {
        const text = seal.open(key, value);
        const members = text === undefined ? undefined : parseObject(text);
        if (members !== undefined) yield members;
      }
    }
  }

  return {
    async read(place: ConnectionPlace) {
      const text = await store.get(buildConnectionKey(place.hash));
      return text === undefined ? undefined : unsealConnection(seal, place, text);
    },
    /** In place of nothing, or of one that no secret opens; undefined where another was faster. */
    async create(place: ConnectionPlace, record: Unlisted) {
      const written = sealConnection(seal, place, await enlist(place, record));
      const key = buildConnectionKey(place.hash);
      const standing = await store.getOrSet(key, written.text, KEPT_SECONDS);
      if (standing === written.text) return written;
      if (unsealConnection(seal, place, standing) !== undefined) return undefined;
      const isWritten = await store.compareAndSet(key, standing, written.text, KEPT_SECONDS);
      return isWritten ? written : undefined;
    },
    /** Undefined, and nothing is written, where something else stands there than was read. */
    async replace(place: ConnectionPlace, standing: StoredConnection, next: ConnectionRecord) {
      const isListed =
        standing.record.state === next.state &&
        next.listedUntil >= clock.now() + KEPT_SECONDS * 1000;
      const listed = isListed ? next : await enlist(place, next);
      const written = sealConnection(seal, place, listed);
      const key = buildConnectionKey(place.hash);
      if (await store.compareAndSet(key, standing.text, written.text, KEPT_SECONDS)) return written;
      if (isListed) return undefined;
      // The listing came too late: a login, or an end, was first.
      const text = await store.get(key);
      const record = text === undefined ? undefined : openIfKnown(place, text);
      if (record !== undefined) await enlist(place, record);
      else if (text === undefined) await unlist(place);
      return undefined;
    },
    /** For one of many at the same moment. One that no secret opens is gone, too. */
    async take(place: ConnectionPlace) {
      const text = await store.getAndDelete(buildConnectionKey(place.hash));
      // It has ended, whatever becomes of the lists: those who read them look whether it is there.
      await unlist(place);
      return text === undefined ? undefined : { record: openIfKnown(place, text) };
    },
    /** The names of servers. */
    async listOfUser(place: ConnectionPlace) {
      const servers: string[] = [];
      for await (const { server } of readList(findLists(place).ofUser.list)) {
        if (typeof server === 'string') servers.push(server);
        if (servers.length >= MAX_OF_USER) break;
      }
      return servers;
    },
    async *listOfServer(server: string) {
      for await (const { owner } of readList(buildServerConnectionsKey(hashSha256(server)))) {
        const read = readOwner(owner);
        if (read !== undefined) yield read;
      }
    },
    /** However many there are, none of them is read. */
    async countOfServer(server: string) {
      const hash = hashSha256(server);
      const [all, loginNeeded] = await Promise.all([
        store.countListed(buildServerConnectionsKey(hash)),
        store.countListed(buildServerLoginsNeededKey(hash)),
      ]);
      // Between the two answers one may have been made or ended.
      return { active: Math.max(0, all - loginNeeded), 'login needed': loginNeeded };
    },
  };

  /** One that a later version wrote can be ended all the same. */
  function openIfKnown(place: ConnectionPlace, text: string) {
    try {
      return unsealConnection(seal, place, text)?.record;
    } catch {
      return undefined;
    }
  }
}

function readOwner(owner: unknown): ConnectionOwner | undefined {
  if (owner === 'shared') return owner;
  if (!isObject(owner) || typeof owner.sub !== 'string') return undefined;
  return typeof owner.issuer === 'string'
    ? { sub: owner.sub, issuer: owner.issuer }
    : { sub: owner.sub };
}

/** In which it stands; in the last one while it needs a login. */
function findLists({ ownerName, server, hash }: ConnectionPlace) {
  const serverHash = hashSha256(server);
  return {
    ofUser: {
      list: buildUserConnectionsKey(hashSha256(ownerName)),
      key: buildListedConnectionKey('user', hash),
    },
    ofServer: {
      list: buildServerConnectionsKey(serverHash),
      key: buildListedConnectionKey('server', hash),
    },
    loginNeeded: {
      list: buildServerLoginsNeededKey(serverHash),
      key: buildListedConnectionKey('login-needed', hash),
    },
  };
}
