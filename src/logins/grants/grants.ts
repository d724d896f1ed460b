// §5.11: grants in the store, sealed. A token issued by one replica is valid at all of them, and ends at all of them.

import { randomBytes } from 'node:crypto';
import { createBoundedMap, createExpiringMap } from '../../platform/bounded-map.ts';
import { isObject } from '../../platform/json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import {
  buildEndedGrantsChannelName,
  buildGrantKey,
  buildListedGrantKey,
  buildSidGrantsKey,
  buildUserGrantsKey,
  GRANT_LIST_KEY,
} from '../../store/keys.ts';
import type { PageRequest, StoredPage } from '../../store/page.ts';
import { readVersioned, writeVersioned } from '../../store/records.ts';
import { createReplicas } from '../../store/replicas/replicas.ts';
import type { Seal } from '../../store/seal/seal.ts';
import { GRANT_VERSION_LENGTH } from '../../store/store.ts';
import {
  computeAgeEnd,
  computeGrantEnd,
  type Grant,
  type GrantLifetime,
  type UserIdentity,
} from './grant.ts';
import { createTokenCodec, hashSid, hashUser } from './token-codec.ts';

/** A grant as read or written. */
export interface StoredGrant {
  readonly grant: Grant;
  /** Prefix of the stored text. */
  readonly version: string;
  /** The stored text. */
  readonly text: string;
}

/** A session at a provider (OpenID Connect Back-Channel Logout §2.1). `sid` is unique only within an issuer. */
export interface ProviderSession {
  readonly issuer: string;
  readonly sid: string;
}

/** The owner of a list of grants. */
export type GrantOwner =
  | { readonly kind: 'user'; readonly user: UserIdentity }
  | { readonly kind: 'session'; readonly session: ProviderSession }
  | { readonly kind: 'all' };

type ChangeGrant = (grant: Grant) => Grant | undefined;

/** More than any user has clients; beyond this number, the grant that would expire first ends. */
const MAX_USER_GRANTS = 1000;

export type Grants = ReturnType<typeof createGrants>;

export function createGrants(
  { store, clock, metrics }: Pick<Runtime, 'store' | 'clock' | 'metrics'>,
  seal: Seal,
  endedGrants: { announce(grantId: string): Promise<void> },
  lifetime: GrantLifetime,
) {
  const listedLifetime = { ...lifetime, idleSeconds: lifetime.idleSeconds * (1 + LISTED_RESERVE) };
  const lastOpened = createBoundedMap<string, StoredGrant>('openedGrants');

  function open(key: string, text: string | undefined) {
    if (text === undefined) return undefined;
    let stored = lastOpened.get(key);
    if (stored?.text !== text) {
      const opened = seal.open(key, text.slice(GRANT_VERSION_LENGTH));
      if (opened === undefined) return undefined;
      const grant = readVersioned<Grant>(opened, 'A grant');
      stored = { grant, version: text.slice(0, GRANT_VERSION_LENGTH), text };
      lastOpened.set(key, stored);
    }
    // Exact to the millisecond; the store expires records up to a second later.
    return clock.now() >= computeGrantEnd(stored.grant, lifetime) ? undefined : stored;
  }

  /** The form that is stored. */
  function write(key: string, grant: Grant, keptSeal?: StoredGrant): StoredGrant {
    const version = randomBytes((GRANT_VERSION_LENGTH * 3) / 4).toString('base64url');
    const record = writeVersioned(grant);
    const sealed = keptSeal
      ? seal.sealAsBefore(key, record, getSealed(keptSeal))
      : seal.seal(key, record);
    return { grant, version, text: version + sealed };
  }

  /** From now until a time in epoch milliseconds. */
  const computeTtlSeconds = (endsAt: number) =>
    Math.max(1, Math.ceil((endsAt - clock.now()) / 1000));

  /**
   * Runs before the grant is written: an unlisted grant could not be ended. Each refresh moves its expiry, and list entries live
   * longer than that, so that few refreshes have to write them again. Resolves to the grant with the new expiry of its entries.
   */
  async function enlist(grant: Grant): Promise<Grant> {
    const isListed = computeGrantEnd(grant, lifetime) <= (grant.listedUntil ?? 0);
    if (isListed && grant.sid === grant.listedSid) return grant;
    const listedUntil = computeGrantEnd(grant, listedLifetime);
    const ttlSeconds = computeTtlSeconds(listedUntil);
    const writing: Promise<void>[] = [];
    for (const [list, key] of listPlaces(grant))
      writing.push(store.setListed(list, key, grant.id, ttlSeconds));
    await Promise.all(writing);
    return { ...grant, listedUntil, listedSid: grant.sid };
  }

  /** Never rejects: readers of the lists ignore grants that are gone. */
  async function delist(places: readonly Place[]) {
    await Promise.all(
      places.map(([list, listed]) => store.deleteListed(list, listed).catch(() => false)),
    );
  }

  /** Includes IDs of grants that are gone, or unreadable here. The one that expires last comes first. */
  async function listIds(request: PageRequest, owner: GrantOwner): Promise<StoredPage<string>> {
    const { items, next } = await store.readListed(buildListKey(owner), request);
    return { items: items.map(({ value }) => value), next };
  }

  async function readAll(ids: readonly string[]): Promise<readonly Grant[]> {
    const keys = ids.map(buildGrantKey);
    const texts = await Promise.all(keys.map((key) => store.get(key)));
    return keys.flatMap((key, at) => openIfKnown(key, texts[at]));
  }

  /** A record of a later version must not keep a list from being shown, or its other grants from being ended. */
  function openIfKnown(key: string, text: string | undefined): readonly Grant[] {
    try {
      const stored = open(key, text);
      return stored === undefined ? [] : [stored.grant];
    } catch {
      return [];
    }
  }

  /** Undefined if there is none, or no secret opens it. */
  async function read(id: string) {
    const key = buildGrantKey(id);
    return open(key, await store.get(key));
  }

  /** From then on, every replica refuses its tokens. Undefined if another request ended it first, or it cannot be read here. */
  async function end(id: string): Promise<Grant | undefined> {
    const key = buildGrantKey(id);
    const text = await store.getAndDelete(key);
    if (text === undefined) return undefined;
    // Even if the grant cannot be read here.
    const announced = endedGrants.announce(id);
    const [grant] = openIfKnown(key, text);
    lastOpened.delete(key);
    if (grant === undefined) return undefined;
    metrics.recordGrant('ended');
    // The grant has ended even if the lists cannot be written.
    await Promise.all([announced, delist(listPlaces(grant))]);
    return grant;
  }

  /** `seen` is given when the client gets new tokens. */
  async function change(id: string, makeNext: ChangeGrant, seen: StoredGrant | undefined) {
    const key = buildGrantKey(id);
    let stored = seen;
    for (;;) {
      stored ??= open(key, await store.get(key));
      if (stored === undefined) return undefined;
      const changed = makeNext(stored.grant);
      // Sealed again, so that the older secret can be removed one day.
      const needsSeal = seen !== undefined && !seal.isSealedByFirst(getSealed(stored));
      if (changed === undefined && !needsSeal) return stored;
      const grant = await enlist(changed ?? stored.grant);
      const written = write(key, grant, seen === undefined ? stored : undefined);
      const ttlSeconds = computeTtlSeconds(computeGrantEnd(grant, lifetime));
      if (await store.compareAndSet(key, stored.text, written.text, ttlSeconds)) {
        lastOpened.set(key, written);
        const { listedSid: sid, issued } = stored.grant;
        // The grant has moved to another session at the provider.
        if (sid !== undefined && sid !== grant.listedSid)
          await delist([findSessionPlace(id, { issuer: grant.user.issuer, sid })]);
        if (grant.issued.issuedAt !== issued.issuedAt) metrics.recordGrant('refreshed');
        return written;
      }
      stored = undefined;
    }
  }

  return {
    read,
    /** Like `read`, to end a grant: undefined for a record of a later version, where `read` throws. */
    find: async (id: string) => (await readAll([id]))[0],
    end,
    /** No access token outlives its grant. */
    capExpiry(grant: Grant): Grant {
      const endsAt = Math.min(grant.issued.expiresAt, computeGrantEnd(grant, lifetime));
      return { ...grant, issued: { ...grant.issued, expiresAt: endsAt } };
    },
    /** Expiry by age, in epoch milliseconds (`computeAgeEnd`). */
    computeAgeEnd: (grant: Grant) => computeAgeEnd(grant, lifetime),
    async create(grant: Grant): Promise<StoredGrant> {
      const key = buildGrantKey(grant.id);
      const written = write(key, await enlist(grant));
      await store.set(key, written.text, computeTtlSeconds(computeGrantEnd(grant, lifetime)));
      metrics.recordGrant('issued');
      return written;
    },
    /**
     * Writes the grant that `makeNext` returns, and renews its lifetime; writes nothing if it returns none. `makeNext` is called
     * again if another replica has changed the grant in the meantime. Resolves to the stored grant; undefined if it has ended. The
     * grant stays sealed by the same secret: its client's tokens need that secret, too.
     */
    update: (id: string, makeNext: ChangeGrant) => change(id, makeNext, undefined),
    /**
     * Like `update`, for a client that gets new tokens: a grant that an older secret sealed is sealed by the first one then, even
     * if
     * `makeNext` returns none. `seen` is the grant as just read.
     */
    updateForTokens: (seen: StoredGrant, makeNext: ChangeGrant) =>
      change(seen.grant.id, makeNext, seen),
    listIds,
    async listOfUser(user: UserIdentity): Promise<readonly Grant[]> {
      const request = { from: undefined, limit: MAX_USER_GRANTS };
      return readAll((await listIds(request, { kind: 'user', user })).items);
    },
    /** IDs of grants beyond the limit of a user, which would expire first. Never `keptId`. */
    async listExcess(user: UserIdentity, keptId: string): Promise<readonly string[]> {
      const request = { from: undefined, limit: MAX_USER_GRANTS + MAX_EXCESS };
      const { items } = await store.readListed(buildUserGrantsKey(hashUser(user)), request);
      // Shortcut for nearly all users.
      if (items.length < MAX_USER_GRANTS) return [];
      const ids = items.map(({ value }) => value).filter((id) => id !== keptId);
      return ids.slice(MAX_USER_GRANTS - 1);
    },
    /** The one that expires last comes first. */
    async list(request: PageRequest, owner: GrantOwner): Promise<StoredPage<Grant>> {
      const { items, next } = await listIds(request, owner);
      return { items: await readAll(items), next };
    },
  };
}

/** The part after the version. */
const getSealed = ({ text }: StoredGrant) => text.slice(GRANT_VERSION_LENGTH);

/** Several replicas may each have admitted one. */
const MAX_EXCESS = 100;

/** Share of the idle time: extra lifetime of list entries, by which the order of the lists may lag behind. */
const LISTED_RESERVE = 0.01;

// Lists of grants, by user, by session at the provider, and of all. A list expires with the last of its grants.

type Place = readonly [list: string, listed: string];

function buildListKey(owner: GrantOwner) {
  if (owner.kind === 'user') return buildUserGrantsKey(hashUser(owner.user));
  if (owner.kind === 'session') return buildSidGrantsKey(hashSid(owner.session));
  return GRANT_LIST_KEY;
}

function listPlaces({ id, user, sid }: Grant): readonly Place[] {
  const owner = hashUser(user);
  return [
    [buildUserGrantsKey(owner), buildListedGrantKey(owner, id)],
    [GRANT_LIST_KEY, buildListedGrantKey('all', id)],
    // Some providers name no sessions.
    ...(sid === undefined ? [] : [findSessionPlace(id, { issuer: user.issuer, sid })]),
  ];
}

function findSessionPlace(id: string, session: ProviderSession): Place {
  const hash = hashSid(session);
  return [buildSidGrantsKey(hash), buildListedGrantKey(`sid:${hash}`, id)];
}

// Opens the store of the gateway's own tokens, in broker mode.

export type OwnTokens = NonNullable<ReturnType<typeof openOwnTokens>>;

/** Undefined in proxy mode. */
export function openOwnTokens(runtime: Runtime) {
  const { server, oauth, mcp } = runtime.config;
  const { loginSeal: seal, clock, log } = runtime;
  if (oauth.mode !== 'broker') return undefined;
  if (seal === undefined) throw new Error("The gateway's own tokens need a secret");
  const lifetime = {
    idleSeconds: oauth.refreshTtlSeconds,
    maxSeconds: oauth.tokens.grantMaxSeconds,
    unrenewedSeconds: oauth.tokens.grantUnrenewedSeconds,
  };
  const replicas = createReplicas<EndedGrantMessage>(
    { ...runtime, getSeal: async () => seal },
    buildEndedGrantsChannelName(mcp.sessions.keyPrefix),
    isEndedGrantMessage,
  );
  const recent = createExpiringMap<true>('endedGrants', clock.monotonic);
  replicas.listen(({ grantId }) => recent.set(grantId, true, clock.monotonic() + REMEMBERED_MS));
  const endedGrants = {
    /** Never rejects: without the message, open streams live as long as they would have. */
    announce: (grantId: string) =>
      replicas.send({ grantId }).catch((cause: unknown) =>
        log.warn('Streams and calls of a login that has ended may continue for some minutes.', {
          grant: grantId,
          cause,
        }),
      ),
    listen: (listener: (grantId: string) => void) =>
      replicas.listen(({ grantId }) => listener(grantId)),
    hasEnded: (grantId: string) => recent.get(grantId) === true,
  };
  return {
    codec: createTokenCodec(seal, server.baseUrl),
    grants: createGrants(runtime, seal, endedGrants, lifetime),
    endedGrants,
    close: replicas.close,
  };
}

// Tells all replicas that a grant has ended. Later calls do not need it, since each queries the store.

type EndedGrantMessage = Readonly<Record<'grantId', string>>;

const isEndedGrantMessage = (value: unknown): value is EndedGrantMessage =>
  isObject(value) && typeof value.grantId === 'string';

/** Exceeds the time from the look-up in the store until a stream is open. */
const REMEMBERED_MS = 60_000;
