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
import { parseObject } from '../platform/json.ts';
import { withoutDefault } from '../store/owner.ts';
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

export function sealConnection(
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
export function unsealConnection(
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
const derive = (seal: Seal, { ownerName, server }: ConnectionPlace): Seal =>
  createSeal(
    seal
      .deriveKeys(`postern connection ${JSON.stringify([ownerName, server])}`)
      .map(({ bytes }) => bytes.toString('base64url')),
  );

const buildContext = (
  { ownerName, ownerIssuer, server }: ConnectionPlace,
  issuer: string,
): string => JSON.stringify(['connection', ownerName, ownerIssuer, server, issuer]);

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

/** For all users and servers. Every call asks where its connection lies, and a hash takes longer than all the rest of it. */
const MAX_REMEMBERED = 4000;

export function createPlaces(defaultIssuer: string | undefined) {
  const remembered = createBoundedMap<string, ConnectionPlace>(MAX_REMEMBERED);

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
