// §24: connections in the store: each under its owner and server, and listed for both.
import type { Clock } from '../../platform/clock.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { isObject, parseObject } from '../../platform/json.ts';
import {
  buildConnectionKey,
  buildListedConnectionKey,
  buildServerConnectionsKey,
  buildUserConnectionsKey,
} from '../../store/keys.ts';
import type { PagePlace } from '../../store/page.ts';
import type { Seal } from '../../store/seal/seal.ts';
import type { KeyValue } from '../../store/store.ts';
import type { ConnectionOwner, ConnectionState } from '../connection.ts';
import {
  type ConnectionRecord,
  openRecord,
  type StoredConnection,
  writeRecord,
} from './connection-record.ts';
import type { Place } from './place.ts';

/** All may throw StoreUnavailable. */
export interface ConnectionRecords {
  read(place: Place): Promise<StoredConnection | undefined>;
  /** In place of whatever stands there. */
  create(place: Place, record: Unlisted): Promise<StoredConnection>;
  /** Undefined, and nothing is written, where something else stands there than was read. */
  replace(
    place: Place,
    standing: StoredConnection,
    next: ConnectionRecord,
  ): Promise<StoredConnection | undefined>;
  /** For one of many at the same moment. */
  take(place: Place): Promise<TakenConnection | undefined>;
  /** The names of servers. */
  listOfUser(owner: Place): Promise<readonly string[]>;
  listOfServer(server: string): AsyncIterable<ListedConnection>;
}

type Unlisted = Omit<ConnectionRecord, 'listedUntil'>;

/** One that no secret opens is gone, too. */
export interface TakenConnection {
  readonly record: ConnectionRecord | undefined;
}

export interface ListedConnection {
  readonly owner: ConnectionOwner;
  readonly state: Exclude<ConnectionState, 'missing'>;
}

export interface ConnectionRecordsDeps {
  readonly store: KeyValue;
  readonly seal: Seal;
  readonly clock: Clock;
}

/** Since the last renewal or use. */
const KEPT_SECONDS = 31_536_000;
/** So much longer it is listed, so that few renewals have to list it anew. */
const LISTED_RESERVE_SECONDS = 2_592_000;
/** More than anybody has servers. */
const MAX_OF_USER = 1000;
const PAGE = 200;

export function createConnectionRecords({
  store,
  seal,
  clock,
}: ConnectionRecordsDeps): ConnectionRecords {
  /** Before it is written: nobody could end one that stands in no list. */
  async function enlist(place: Place, record: Unlisted): Promise<ConnectionRecord> {
    const ttlSeconds = KEPT_SECONDS + LISTED_RESERVE_SECONDS;
    const [ofUser, ofServer] = listPlaces(place);
    const named = sealText(ofUser.key, { server: place.server });
    const owned = sealText(ofServer.key, { owner: place.owner, state: record.state });
    await Promise.all([
      store.setListed(ofUser.list, ofUser.key, named, ttlSeconds),
      store.setListed(ofServer.list, ofServer.key, owned, ttlSeconds),
    ]);
    return { ...record, listedUntil: clock.now() + ttlSeconds * 1000 };
  }

  const sealText = (key: string, value: object): string => seal.seal(key, JSON.stringify(value));

  const isListed = (before: ConnectionRecord, next: ConnectionRecord): boolean =>
    before.state === next.state && next.listedUntil >= clock.now() + KEPT_SECONDS * 1000;

  /** All pages of a list, opened. */
  async function* readList(list: string) {
    let from: PagePlace | undefined;
    do {
      const page = await store.readListed(list, { from, limit: PAGE });
      for (const { key, value } of page.items) {
        const text = seal.open(key, value);
        const members = text === undefined ? undefined : parseObject(text);
        if (members !== undefined) yield members;
      }
      from = page.next;
    } while (from !== undefined);
  }

  return {
    async read(place) {
      const text = await store.get(buildConnectionKey(place.hash));
      return text === undefined ? undefined : openRecord(seal, place, text);
    },
    async create(place, record) {
      const written = writeRecord(seal, place, await enlist(place, record));
      await store.set(buildConnectionKey(place.hash), written.text, KEPT_SECONDS);
      return written;
    },
    async replace(place, standing, next) {
      const listed = isListed(standing.record, next) ? next : await enlist(place, next);
      const written = writeRecord(seal, place, listed);
      const key = buildConnectionKey(place.hash);
      const isWritten = await store.compareAndSet(key, standing.text, written.text, KEPT_SECONDS);
      return isWritten ? written : undefined;
    },
    async take(place) {
      const text = await store.getAndDelete(buildConnectionKey(place.hash));
      // It has ended, whatever becomes of the lists: those who read them look whether it is there.
      await Promise.all(
        listPlaces(place).map(({ list, key }) => store.deleteListed(list, key).catch(() => false)),
      );
      return text === undefined ? undefined : { record: openIfKnown(place, text) };
    },
    async listOfUser(place) {
      const servers: string[] = [];
      for await (const { server } of readList(listPlaces(place)[0].list)) {
        if (typeof server === 'string') servers.push(server);
        if (servers.length >= MAX_OF_USER) break;
      }
      return servers;
    },
    async *listOfServer(server) {
      for await (const { owner, state } of readList(buildServerList(server))) {
        const read = readOwner(owner);
        if (read !== undefined && (state === 'active' || state === 'login needed'))
          yield { owner: read, state };
      }
    },
  };

  /** One that a later version wrote can be ended all the same. */
  function openIfKnown(place: Place, text: string): ConnectionRecord | undefined {
    try {
      return openRecord(seal, place, text)?.record;
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

const buildServerList = (server: string): string => buildServerConnectionsKey(hashSha256(server));

const listPlaces = ({ ownerName, server, hash }: Place) =>
  [
    {
      list: buildUserConnectionsKey(hashSha256(ownerName)),
      key: buildListedConnectionKey('user', hash),
    },
    { list: buildServerList(server), key: buildListedConnectionKey('server', hash) },
  ] as const;
