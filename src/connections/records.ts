// §24: connections in the store: each under its owner and server, and listed for both.

import type { ConnectionOwner } from '../mcp/upstream/connections.ts';
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
import type { PagePlace } from '../store/page.ts';
import type { Seal } from '../store/seal/seal.ts';
import {
  type ConnectionPlace,
  type ConnectionRecord,
  type StoredConnection,
  sealConnection,
  unsealConnection,
} from './connection-record.ts';

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

  async function unlist(place: ConnectionPlace): Promise<void> {
    await Promise.all(
      Object.values(findLists(place)).map(({ list, key }) =>
        store.deleteListed(list, key).catch(() => false),
      ),
    );
  }

  const sealText = (key: string, value: object): string => seal.seal(key, JSON.stringify(value));

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
  function openIfKnown(place: ConnectionPlace, text: string): ConnectionRecord | undefined {
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
