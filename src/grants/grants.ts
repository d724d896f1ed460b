// §5.11: grants in the store, sealed, so that a token of any replica's holds at every other, and ends at all of them.
import { randomBytes } from 'node:crypto';
import type { Clock } from '../platform/clock.ts';
import {
  buildGrantKey,
  buildListedGrantKey,
  buildUserGrantsKey,
  checkRecordVersion,
  GRANT_LIST_KEY,
  RECORD_VERSION,
} from '../store/keys.ts';
import type { Page, PageRequest } from '../store/page.ts';
import type { Seal } from '../store/seal/seal.ts';
import { GRANT_VERSION_LENGTH, type KeyValue } from '../store/store.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import type { EndedGrants } from './ended-grants.ts';
import type { Grant, UserIdentity } from './grant.ts';
import { hashUser } from './token-codec.ts';

/** A grant as it was read, or written. */
export interface StoredGrant {
  readonly grant: Grant;
  /** The text under its key begins with it. */
  readonly version: string;
}

export interface Grants {
  create(grant: Grant): Promise<StoredGrant>;
  /** Undefined where there is none, or no secret opens it. */
  read(id: string): Promise<StoredGrant | undefined>;
  /**
   * Writes what `change` makes of the grant, and begins its time anew; where it makes nothing, only what an older secret
   * sealed is sealed anew. It is called again
   * where another replica has changed the grant meanwhile. Undefined where the grant has ended; else what stands there.
   */
  update(id: string, change: (grant: Grant) => Grant | undefined): Promise<StoredGrant | undefined>;
  /** No access token lives longer than its grant. */
  capExpiry(grant: Grant): Grant;
  /** Undefined where another was faster. Its tokens are refused from then on, at every replica. */
  end(id: string): Promise<Grant | undefined>;
  listOfUser(user: UserIdentity): Promise<readonly Grant[]>;
  /** The ids of those that a user has too many, which would end first. Never `keptId`. */
  listExcess(user: UserIdentity, keptId: string): Promise<readonly string[]>;
  /** Of all users; the one that ends last first. */
  list(request: PageRequest): Promise<Page<Grant>>;
}

/** Seconds for which a grant lives from now on. */
export interface GrantLifetime {
  /** Past its last refresh: `OAUTH_REFRESH_TTL_SECONDS`. */
  readonly idleSeconds: number;
  /** In all: `OAUTH_GRANT_MAX_SECONDS`; 0 for no end. */
  readonly maxSeconds: number;
  /** In all, where the provider gave nothing to renew it with: `OAUTH_GRANT_UNRENEWED_SECONDS`. */
  readonly unrenewedSeconds: number;
}

export interface GrantsDeps {
  readonly store: KeyValue;
  readonly seal: Seal;
  readonly endedGrants: Pick<EndedGrants, 'announce'>;
  readonly clock: Clock;
  readonly lifetime: GrantLifetime;
  readonly metrics: Pick<Metrics, 'recordGrant'>;
}

/** More than anybody has clients; who has them makes room by what would end first. */
const MAX_USER_GRANTS = 1000;

export function createGrants(deps: GrantsDeps): Grants {
  const { store, seal, endedGrants, clock, lifetime, metrics } = deps;

  function open(key: string, text: string | undefined): StoredGrant | undefined {
    const sealed = text?.slice(GRANT_VERSION_LENGTH);
    const opened = sealed === undefined ? undefined : seal.open(key, sealed);
    if (text === undefined || opened === undefined) return undefined;
    // What opens was written by this code: no other check of its shape is needed.
    const { version, ...grant } = JSON.parse(opened) as Grant & { readonly version: number };
    checkRecordVersion(version, 'A grant');
    // To the moment, as the store forgets it a second later.
    if (hasEnded(grant)) return undefined;
    return { grant, version: text.slice(0, GRANT_VERSION_LENGTH) };
  }

  function write(key: string, grant: Grant): { readonly text: string; readonly version: string } {
    const version = randomBytes((GRANT_VERSION_LENGTH * 3) / 4).toString('base64url');
    const record = JSON.stringify({ ...grant, version: RECORD_VERSION });
    return { text: version + seal.seal(key, record), version };
  }

  /** The older secret may go once nothing needs it. */
  const isSealedBefore = (text = ''): boolean =>
    !seal.isSealedByFirst(text.slice(GRANT_VERSION_LENGTH));

  const computeTtlSeconds = (grant: Grant): number =>
    Math.max(1, Math.ceil((computeGrantEnd(grant, lifetime) - clock.now()) / 1000));

  const hasEnded = (grant: Grant): boolean => clock.now() >= computeGrantEnd(grant, lifetime);

  /** The two lists in which it stands: those of its user, and of all. */
  const listPlaces = ({ id, user }: Grant) => {
    const owner = hashUser(user);
    return [
      [buildUserGrantsKey(owner), buildListedGrantKey(owner, id)],
      [GRANT_LIST_KEY, buildListedGrantKey('all', id)],
    ] as const;
  };

  async function enlist(grant: Grant): Promise<void> {
    const ttlSeconds = computeTtlSeconds(grant);
    await Promise.all(
      listPlaces(grant).map(([list, key]) => store.setListed(list, key, grant.id, ttlSeconds)),
    );
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

  async function read(id: string): Promise<StoredGrant | undefined> {
    const key = buildGrantKey(id);
    return open(key, await store.get(key));
  }

  async function end(id: string): Promise<Grant | undefined> {
    const key = buildGrantKey(id);
    const text = await store.getAndDelete(key);
    if (text === undefined) return undefined;
    // Also where nobody can read any more what it was.
    const announced = endedGrants.announce(id);
    const ended = open(key, text);
    if (ended === undefined) return undefined;
    metrics.recordGrant('ended');
    const { grant } = ended;
    // It has ended, whatever becomes of the lists: what they name and is gone they leave out.
    await Promise.all([
      announced,
      ...listPlaces(grant).map(([list, listed]) =>
        store.deleteListed(list, listed).catch(() => false),
      ),
    ]);
    return grant;
  }

  return {
    read,
    end,
    capExpiry(grant) {
      const endsAt = Math.min(grant.issued.expiresAt, computeGrantEnd(grant, lifetime));
      return { ...grant, issued: { ...grant.issued, expiresAt: endsAt } };
    },
    async create(grant) {
      const key = buildGrantKey(grant.id);
      const { text, version } = write(key, grant);
      // Listed first: nobody could end one that stands in no list.
      await enlist(grant);
      await store.set(key, text, computeTtlSeconds(grant));
      metrics.recordGrant('issued');
      return { grant, version };
    },
    async update(id, change) {
      const key = buildGrantKey(id);
      for (;;) {
        const standing = await store.get(key);
        const stored = open(key, standing);
        if (stored === undefined) return undefined;
        const changed = change(stored.grant);
        if (changed === undefined && !isSealedBefore(standing)) return stored;
        const grant = changed ?? stored.grant;
        const { text, version } = write(key, grant);
        if (!(await store.compareAndSet(key, standing, text, computeTtlSeconds(grant)))) continue;
        // Only a refresh gives it more time.
        if (grant.issued.issuedAt !== stored.grant.issued.issuedAt) {
          metrics.recordGrant('refreshed');
          await enlist(grant);
        }
        return { grant, version };
      }
    },
    async listOfUser(user) {
      const list = buildUserGrantsKey(hashUser(user));
      const request = { from: undefined, limit: MAX_USER_GRANTS };
      const { items } = await store.readListed(list, request);
      return readAll(items.map(({ value }) => value));
    },
    async listExcess(user, keptId) {
      const list = buildUserGrantsKey(hashUser(user));
      const request = { from: undefined, limit: MAX_USER_GRANTS + MAX_EXCESS };
      const { items } = await store.readListed(list, request);
      const others = items.map(({ value }) => value).filter((id) => id !== keptId);
      return others.slice(MAX_USER_GRANTS - 1);
    },
    async list(request) {
      const { items, next } = await store.readListed(GRANT_LIST_KEY, request);
      return { items: await readAll(items.map(({ value }) => value)), next };
    },
  };
}

/** Several replicas may each have let one in. */
const MAX_EXCESS = 100;

/** Epoch milliseconds. */
export function computeGrantEnd(
  { createdAt, issued, provider }: Grant,
  { idleSeconds, maxSeconds, unrenewedSeconds }: GrantLifetime,
): number {
  const isRenewable = provider.refreshToken !== undefined;
  const ends = [
    issued.issuedAt + idleSeconds * 1000,
    ...(maxSeconds > 0 ? [createdAt + maxSeconds * 1000] : []),
    ...(isRenewable ? [] : [createdAt + unrenewedSeconds * 1000]),
  ];
  return Math.min(...ends);
}
