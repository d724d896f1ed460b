// §24: the record of a connection in the store. It is sealed with a key for its owner and server.
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
  withoutDefault,
} from '../store/keys.ts';
import { readPages } from '../store/page.ts';
import { checkRecordVersion, writeVersioned } from '../store/records.ts';
import { createSeal, type Seal } from '../store/seal/seal.ts';
import { isSameIssuer } from './servers/authorization-server.ts';

/** Times are epoch milliseconds. */
export interface ConnectionRecord {
  /** Changes with each login; renewals keep it. */
  readonly id: string;
  readonly state: Exclude<ConnectionState, 'missing'>;
  /** Why a login is needed; for an active connection, what could not be revoked of the one that it replaced. */
  readonly problem?: string | undefined;
  /** Origin of the server that the connection was made for. */
  readonly serverOrigin: string;
  /** Issuer identifier; the token endpoint if an operator configured endpoints only. */
  readonly issuer: string;
  readonly tokenUrl: string;
  readonly revocationUrl?: string | undefined;
  readonly client: {
    readonly id: string;
    /** Secret of a registered client; a configured secret is only in the configuration. */
    readonly secret?: string | undefined;
    readonly source: ClientSource;
    readonly method: ClientAuthMethod;
  };
  /** RFC 8707: audience of the tokens; undefined if no `resource` is sent. */
  readonly resource?: string | undefined;
  readonly accessToken: string;
  /** Undefined for a token that does not expire, or whose expiry is unknown. */
  readonly expiresAt?: number | undefined;
  /** When this token was issued. */
  readonly tokenAt: number;
  readonly refreshToken?: string | undefined;
  /** Granted scopes; undefined if unknown. */
  readonly scopes?: readonly string[] | undefined;
  readonly account?: string | undefined;
  /** Identifier of the account at the authorization server (`sub` of its ID token); undefined if it gave none. */
  readonly subject?: string | undefined;
  readonly since: number;
  readonly usedAt: number;
  /** A renewal with unknown outcome: it is in progress, or the replica that started it has died. */
  readonly renewal?: { readonly attempt: string; readonly at: number } | undefined;
  /** When a token was last requested because the server had answered 401, and whether this token is the result. */
  readonly forced?: { readonly at: number; readonly isRenewed: boolean } | undefined;
  /** When the server itself was last asked whether it refuses the token. */
  readonly askedAt?: number | undefined;
  /** When the entries in the lists expire. */
  readonly listedUntil: number;
}

/** Source of the gateway's client for an authorization server: configuration, its client document, or a registration. */
export type ClientSource = 'configured' | 'document' | 'registered';

export interface StoredConnection {
  readonly record: ConnectionRecord;
  /** The stored text. */
  readonly text: string;
}

function sealConnection(
  seal: Seal,
  place: ConnectionPlace,
  record: ConnectionRecord,
): StoredConnection {
  const { issuer } = record;
  const sealed = derive(seal, place).seal(buildContext(place, issuer), JSON.stringify(record));
  // Opening the record requires the issuer.
  return { record, text: writeVersioned({ issuer, sealed }) };
}

/** Undefined if no secret opens it here: it belongs to another user, server or issuer, or was sealed with a different secret. */
function unsealConnection(
  seal: Seal,
  place: ConnectionPlace,
  text: string | undefined,
): StoredConnection | undefined {
  if (text === undefined) return undefined;
  const { version, issuer, sealed } = parseObject(text) ?? {};
  if (typeof issuer !== 'string' || typeof sealed !== 'string') return undefined;
  checkRecordVersion(version, 'A connection');
  const opened = derive(seal, place).open(buildContext(place, issuer), sealed);
  // A record that opens was written by this code, so its shape is not checked again.
  return opened === undefined
    ? undefined
    : { record: JSON.parse(opened) as ConnectionRecord, text };
}

/** One key per owner and server: knowing one does not open another. */
const derive = (seal: Seal, { ownerName, server }: ConnectionPlace) =>
  createSeal(
    seal
      .deriveKeys(`postern connection ${JSON.stringify([ownerName, server])}`)
      .map(({ bytes }) => bytes.toString('base64url')),
  );

const buildContext = ({ ownerName, ownerIssuer, server }: ConnectionPlace, issuer: string) =>
  JSON.stringify(['connection', ownerName, ownerIssuer, server, issuer]);

// An operator may point a server's name at another host, or name another authorization server: tokens and codes of the former one
// are sent to neither.

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
  // Its tokens are useless to another client, and the secret of that client must not reach the server that issued them.
  if (client.source === 'configured' && client.id !== clientId) return false;
  if (named === undefined) return true;
  return 'issuer' in named ? isSameIssuer(named.issuer, issuer) : named.tokenUrl === tokenUrl;
}

/** Reason for a login if the connection was made for another server. */
export const describeChanged = ({ name }: ConnectionServer): string =>
  `${name} was set up again, at a different address or with a different login, since its user logged in: log in again`;

/** The form that users and operators see. */
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

// Place of a connection: its owner and server, which determine its key.

export interface ConnectionPlace {
  /** Without the default issuer. */
  readonly owner: ConnectionOwner;
  /** Issuer of the owner, even if it is the default one, which may change. Undefined for a shared connection. */
  readonly ownerIssuer: string | undefined;
  /** Distinguishes owners. */
  readonly ownerName: string;
  readonly server: string;
  /** Hash of owner and server, for keys. */
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

// §24: connections in the store, each under its owner and server, and listed by both.

export type ConnectionRecords = ReturnType<typeof createConnectionRecords>;

type Unlisted = Omit<ConnectionRecord, 'listedUntil'>;

/** Since the last renewal or use. */
const KEPT_SECONDS = 31_536_000;
/** Extra lifetime of list entries, so that few renewals have to write them again. */
const LISTED_RESERVE_SECONDS = 2_592_000;
/** More servers than any gateway has. */
const MAX_OF_USER = 1000;
const PAGE = 200;

/** All methods may throw StoreUnavailable. */
export function createConnectionRecords({ store, clock }: Runtime, seal: Seal) {
  /** Runs before the record is written: an unlisted connection could not be ended. */
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
        const members = parseObject(seal.open(key, value) ?? '');
        if (members !== undefined) yield members;
      }
    }
  }

  return {
    read: async (place: ConnectionPlace) =>
      unsealConnection(seal, place, await store.get(buildConnectionKey(place.hash))),
    /**
     * Writes the record if there is none, or only one that no secret can decrypt; undefined if another request wrote one first.
     */
    async create(place: ConnectionPlace, record: Unlisted) {
      const written = sealConnection(seal, place, await enlist(place, record));
      const key = buildConnectionKey(place.hash);
      const standing = await store.getOrSet(key, written.text, KEPT_SECONDS);
      if (standing === written.text) return written;
      if (unsealConnection(seal, place, standing) !== undefined) return undefined;
      const isWritten = await store.compareAndSet(key, standing, written.text, KEPT_SECONDS);
      return isWritten ? written : undefined;
    },
    /** Undefined, and nothing is written, if the record has changed since it was read. */
    async replace(place: ConnectionPlace, standing: StoredConnection, next: ConnectionRecord) {
      const isListed =
        standing.record.state === next.state &&
        next.listedUntil >= clock.now() + KEPT_SECONDS * 1000;
      const listed = isListed ? next : await enlist(place, next);
      const written = sealConnection(seal, place, listed);
      const key = buildConnectionKey(place.hash);
      if (await store.compareAndSet(key, standing.text, written.text, KEPT_SECONDS)) return written;
      if (isListed) return undefined;
      // A login or an end came before the list entry was written.
      const text = await store.get(key);
      const record = openIfKnown(place, text);
      if (record !== undefined) await enlist(place, record);
      else if (text === undefined) await unlist(place);
      return undefined;
    },
    /** One of several simultaneous callers gets the record. One that no secret opens is deleted, too. */
    async take(place: ConnectionPlace) {
      const text = await store.getAndDelete(buildConnectionKey(place.hash));
      // The connection has ended even if the lists cannot be written: readers of the lists check whether it exists.
      await unlist(place);
      return text === undefined ? undefined : { record: openIfKnown(place, text) };
    },
    /** Names of servers. */
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
        const read = readConnectionOwner(owner);
        if (read !== undefined) yield read;
      }
    },
    /** Counts without reading the records, however many there are. */
    async countOfServer(server: string) {
      const hash = hashSha256(server);
      const [all, loginNeeded] = await Promise.all([
        store.countListed(buildServerConnectionsKey(hash)),
        store.countListed(buildServerLoginsNeededKey(hash)),
      ]);
      // Connections may have been made or ended between the two answers.
      return { active: Math.max(0, all - loginNeeded), 'login needed': loginNeeded };
    },
  };

  /** A record that a later version wrote can still be ended. */
  function openIfKnown(place: ConnectionPlace, text: string | undefined) {
    try {
      return unsealConnection(seal, place, text)?.record;
    } catch {
      return undefined;
    }
  }
}

/** Undefined for anything else. */
export function readConnectionOwner(owner: unknown): ConnectionOwner | undefined {
  if (owner === 'shared') return owner;
  if (!isObject(owner) || typeof owner.sub !== 'string') return undefined;
  return typeof owner.issuer === 'string'
    ? { sub: owner.sub, issuer: owner.issuer }
    : { sub: owner.sub };
}

/** List that contains a connection; the last one while it needs a login. */
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
