// §5.11: the lists by which grants are found that nobody has a token of: those of a user, of a session at the provider, and
// all of them. Each ends when the last of its grants does.
import {
  buildListedGrantKey,
  buildSidGrantsKey,
  buildUserGrantsKey,
  GRANT_LIST_KEY,
} from '../../store/keys.ts';
import type { Page, PageRequest } from '../../store/page.ts';
import type { KeyValue } from '../../store/store.ts';
import type { Grant, UserIdentity } from './grant.ts';
import { hashSid, hashUser } from './token-codec.ts';

/** A session at a provider (OpenID Connect Back-Channel Logout §2.1). Another issuer has others, also of the same `sid`. */
export interface ProviderSession {
  readonly issuer: string;
  readonly sid: string;
}

/** Whose grants a list has. */
export type GrantOwner =
  | { readonly kind: 'user'; readonly user: UserIdentity }
  | { readonly kind: 'session'; readonly session: ProviderSession }
  | { readonly kind: 'all' };

export interface GrantLists {
  /** Into all in which it belongs. */
  add(grant: Grant, ttlSeconds: number): Promise<void>;
  /** Never rejects: lists leave out what is gone. */
  remove(grant: Grant): Promise<void>;
  /** Out of the list of a session at the provider that it is of no more. Never rejects, likewise. */
  removeFromSession(grant: Grant, sid: string): Promise<void>;
  /** The one that ends last first; also those that are gone. */
  listIds(request: PageRequest, owner: GrantOwner): Promise<Page<string>>;
}

type Place = readonly [list: string, listed: string];

export function createGrantLists(
  store: Pick<KeyValue, 'setListed' | 'deleteListed' | 'readListed'>,
): GrantLists {
  const remove = async (places: readonly Place[]): Promise<void> => {
    await Promise.all(
      places.map(([list, listed]) => store.deleteListed(list, listed).catch(() => false)),
    );
  };

  return {
    async add(grant, ttlSeconds) {
      await Promise.all(
        listPlaces(grant).map(([list, key]) => store.setListed(list, key, grant.id, ttlSeconds)),
      );
    },
    remove: (grant) => remove(listPlaces(grant)),
    removeFromSession: (grant, sid) => remove(listSessionPlaces({ ...grant, sid })),
    async listIds(request, owner) {
      const { items, next } = await store.readListed(buildListKey(owner), request);
      return { items: items.map(({ value }) => value), next };
    },
  };
}

function buildListKey(owner: GrantOwner): string {
  if (owner.kind === 'user') return buildUserGrantsKey(hashUser(owner.user));
  if (owner.kind === 'session') return buildSidGrantsKey(hashSid(owner.session));
  return GRANT_LIST_KEY;
}

function listPlaces(grant: Grant): readonly Place[] {
  const owner = hashUser(grant.user);
  return [
    [buildUserGrantsKey(owner), buildListedGrantKey(owner, grant.id)],
    [GRANT_LIST_KEY, buildListedGrantKey('all', grant.id)],
    ...listSessionPlaces(grant),
  ];
}

/** None where the provider names no sessions. */
function listSessionPlaces({ id, user, sid }: Grant): readonly Place[] {
  if (sid === undefined) return [];
  const session = hashSid({ issuer: user.issuer, sid });
  return [[buildSidGrantsKey(session), buildListedGrantKey(`sid:${session}`, id)]];
}
