// §5.11: grants in the store, sealed, so that a token of any replica's holds at every other, and ends at all of them.

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

/** A grant as it was read, or written. */
export interface StoredGrant {
  readonly grant: Grant;
  /** The text under its key begins with it. */
  readonly version: string;
  /** The record under its key. */
  readonly text: string;
}

/** A session at a provider (OpenID Connect Back-Channel Logout §2.1). Another issuer has others, also of the same `sid`. */
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

/** More than anybody has clients; who has them makes room by what would end first. */
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
    // To the moment, as the store forgets it a second later.
    return clock.now() >= computeGrantEnd(stored.grant, lifetime) ? undefined : stored;
  }

  /** As it will stand under its key. */
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
   * Before it is written: nobody could end one that stands in no list. Each refresh moves its end, and it is listed for
   * longer than that, so that few of them have to list it anew. What it comes to is the grant that says so.
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

  /** Never rejects: lists leave out what is gone. */
  async function delist(places: readonly Place[]) {
    await Promise.all(
      places.map(([list, listed]) => store.deleteListed(list, listed).catch(() => false)),
    );
  }

  /** Ids also of those that cannot be read here, or are gone; the one that ends last first. */
  async function listIds(request: PageRequest, owner: GrantOwner): Promise<StoredPage<string>> {
    const { items, next } = await store.readListed(buildListKey(owner), request);
    return { items: items.map(({ value }) => value), next };
  }

  async function readAll(ids: readonly string[]): Promise<readonly Grant[]> {
    const keys = ids.map(buildGrantKey);
    const texts = await Promise.all(keys.map((key) => store.get(key)));
    return keys.flatMap((key, at) => openIfKnown(key, texts[at]));
  }

  /** One that a later version wrote must not keep a list from being shown, or the others in it from being ended. */
  function openIfKnown(key: string, text: string | undefined): readonly Grant[] {
    try {
      const stored = open(key, text);
      return stored === undefined ? [] : [stored.grant];
    } catch {
      return [];
    }
  }

  /** Undefined where there is none, or no secret opens it. */
  async function read(id: string) {
    const key = buildGrantKey(id);
    return open(key, await store.get(key));
  }

  /** Its tokens are refused from then on, at every replica. Undefined where another was faster, or it cannot be read here. */
  async function end(id: string): Promise<Grant | undefined> {
    const key = buildGrantKey(id);
    const text = await store.getAndDelete(key);
    if (text === undefined) return undefined;
    // Also where nobody can read any more what it was.
    const announced = endedGrants.announce(id);
    const [grant] = openIfKnown(key, text);
    lastOpened.delete(key);
    if (grant === undefined) return undefined;
    metrics.recordGrant('ended');
    // It has ended, whatever becomes of the lists: what they name and is gone they leave out.
    await Promise.all([announced, delist(listPlaces(grant))]);
    return grant;
  }

  /** `seen` where the client gets its tokens anew. */
  async function change(id: string, makeNext: ChangeGrant, seen: StoredGrant | undefined) {
    const key = buildGrantKey(id);
    let stored = seen;
    for (;;) {
      stored ??= open(key, await store.get(key));
      if (stored === undefined) return undefined;
      const changed = makeNext(stored.grant);
      // The older secret may go once nothing needs it.
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
    /** The same as `read` for whoever ends it: undefined also where a later version wrote it, whereas `read` throws. */
    find: async (id: string) => (await readAll([id]))[0],
    end,
    /** No access token lives longer than its grant. */
    capExpiry(grant: Grant): Grant {
      const endsAt = Math.min(grant.issued.expiresAt, computeGrantEnd(grant, lifetime));
      return { ...grant, issued: { ...grant.issued, expiresAt: endsAt } };
    },
    /** Epoch milliseconds: when it ends by its age (`computeAgeEnd`). */
    computeAgeEnd: (grant: Grant) => computeAgeEnd(grant, lifetime),
    async create(grant: Grant): Promise<StoredGrant> {
      const key = buildGrantKey(grant.id);
      const written = write(key, await enlist(grant));
      await store.set(key, written.text, computeTtlSeconds(computeGrantEnd(grant, lifetime)));
      metrics.recordGrant('issued');
      return written;
    },
    /**
     * Writes what `makeNext` makes of the grant, and begins its time anew; nothing where it makes nothing. It is called again
     * where another replica has changed the grant meanwhile. Undefined where the grant has ended; else what stands there.
     * The secret that sealed it stays the same: what its client has needs that secret, too.
     */
    update: (id: string, makeNext: ChangeGrant) => change(id, makeNext, undefined),
    /**
     * As `update`, for a client that gets its tokens anew: what an older secret sealed is sealed by the first one then, also
     * where `makeNext` makes nothing. `seen` is the grant as it was just read.
     */
    updateForTokens: (seen: StoredGrant, makeNext: ChangeGrant) =>
      change(seen.grant.id, makeNext, seen),
    listIds,
    async listOfUser(user: UserIdentity): Promise<readonly Grant[]> {
      const request = { from: undefined, limit: MAX_USER_GRANTS };
      return readAll((await listIds(request, { kind: 'user', user })).items);
    },
    /** The ids of those that a user has too many, which would end first. Never `keptId`. */
    async listExcess(user: UserIdentity, keptId: string): Promise<readonly string[]> {
      const request = { from: undefined, limit: MAX_USER_GRANTS + MAX_EXCESS };
      const { items } = await store.readListed(buildUserGrantsKey(hashUser(user)), request);
      // Mostly there are few, and nothing to filter.
      if (items.length < MAX_USER_GRANTS) return [];
      const ids = items.map(({ value }) => value).filter((id) => id !== keptId);
      return ids.slice(MAX_USER_GRANTS - 1);
    },
    /** The one that ends last first. */
    async list(request: PageRequest, owner: GrantOwner): Promise<StoredPage<Grant>> {
      const { items, next } = await listIds(request, owner);
      return { items: await readAll(items), next };
    },
  };
}

/** The part after the version. */
const getSealed = ({ text }: StoredGrant) => text.slice(GRANT_VERSION_LENGTH);

/** Several replicas may each have let one in. */
const MAX_EXCESS = 100;

/** A share of its idle time: so much longer a grant is listed, and so far its place in the order may be behind its last refresh. */
const LISTED_RESERVE = 0.01;

// The lists by which grants are found that nobody has a token of: those of a user, of a session at the provider, and
// all of them. Each ends when the last of its grants does.

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

// For the composition root: what the gateway's own tokens stand on, where it issues them.

export type OwnTokens = NonNullable<ReturnType<typeof openOwnTokens>>;

/** Undefined where clients get the provider's tokens. */
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
    /** Never rejects: what is open anywhere then lives as long as it would have. */
    announce: (grantId: string) =>
      replicas.send({ grantId }).catch((cause: unknown) =>
        log.warn('Streams and calls of a login that has ended may go on for some minutes.', {
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

// That a grant has ended is told to all replicas. Calls that begin later need none of this, since each asks the store.

type EndedGrantMessage = Readonly<Record<'grantId', string>>;

const isEndedGrantMessage = (value: unknown): value is EndedGrantMessage =>
  isObject(value) && typeof value.grantId === 'string';

/** Longer than it takes from the look at the store until a stream is open. */
const REMEMBERED_MS = 60_000;
