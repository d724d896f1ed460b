// §22.2: names and e-mail addresses of users, for operators: seals them at rest, and finds users by them.

import { createExpiringMap } from '../../platform/bounded-map.ts';
import { type Clock, createTurns } from '../../platform/clock.ts';
import { isStringArray, parseObject } from '../../platform/json.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import {
  buildCallerKey,
  buildPersonKey,
  CALLER_LIST_KEY,
  hashOwner,
  nameOwner,
} from '../../store/keys.ts';
import type { PageRequest, StoredPage } from '../../store/page.ts';
import type { Owner } from '../../store/store.ts';
import type { CallList } from './admin-calls.ts';
import type {
  AdminPage,
  AdminPageRequest,
  AdminPlace,
  Issuers,
  NamedUser,
} from './admin-requests.ts';
import type { GrantReader, UserGrant } from './grants.ts';
import { readEmail, type UserContext } from './message.ts';

/** Claims of the token from the time when the session was opened. */
export interface Person {
  readonly name?: string;
  readonly email?: string;
  /** True if the provider has verified the address; undefined if unknown. */
  readonly emailVerified?: boolean;
  readonly groups?: readonly string[] | undefined;
}

type People = ReturnType<typeof createPeople>;

const MAX_NAME = 200;
/** The maximum length of an address (RFC 5321 §4.5.3.1). */
const MAX_EMAIL = 320;
/** Of all groups of a user together. */
const MAX_GROUPS = 4000;

export function createPeople({ getSeal }: Pick<Runtime, 'getSeal'>) {
  const toSealContext = (context: string) => `person ${context}`;
  return {
    /** Opening requires the same `context`. Undefined if nothing is known. */
    async seal(user: Person, context: string) {
      const person = describePerson(user);
      if (Object.keys(person).length === 0) return undefined;
      return (await getSeal()).seal(toSealContext(context), JSON.stringify(person));
    },
    /** Empty if nothing is stored, or it was sealed with a secret that has been removed. */
    async open(sealed: string | undefined, context: string): Promise<Person> {
      if (sealed === undefined) return {};
      const text = (await getSeal()).open(toSealContext(context), sealed);
      const { name, email, emailVerified, groups } = (text && parseObject(text)) || {};
      return {
        ...(typeof name === 'string' && { name }),
        ...(typeof email === 'string' && { email }),
        ...(typeof emailVerified === 'boolean' && { emailVerified }),
        ...(isStringArray(groups) && { groups }),
      };
    },
  };
}

/** The part of a person's data that is stored and shown. */
export const describePerson = ({ name, email, emailVerified, groups }: Person): Person => ({
  ...(name && { name: name.slice(0, MAX_NAME) }),
  ...(email && { email: email.slice(0, MAX_EMAIL) }),
  ...(email && emailVerified !== undefined && { emailVerified }),
  ...(groups?.length && { groups: cutGroups(groups) }),
});

/** The first of them, whole. */
function cutGroups(groups: readonly string[]): readonly string[] {
  let left = MAX_GROUPS;
  return groups.filter((group) => {
    left -= group.length;
    return left >= 0;
  });
}

/** True if the operator's search text matches the person: the whole user ID, or a part of the e-mail or name. */
export function matchesPerson(text: string, sub: string | undefined, person: Person): boolean {
  const part = text.toLowerCase();
  const has = (value: string | undefined) => value?.toLowerCase().includes(part) === true;
  return sub === text || has(person.email) || has(person.name);
}

// §22.2: an index of users by the HMAC of their e-mail address, for a fast search among any number of sessions.

/** A session may last this long, or longer. */
const PERSON_TTL_SECONDS = 2_592_000;
/** Maximum per page. An address belongs to one user, or to a few who share it. */
const MAX_USERS = 20;
const MAC_CONTEXT = 'e-mail address';

export function createPersonIndex({ store, getSeal }: Runtime) {
  return {
    /** Never rejects: a user missing in the index is found by a scan of all sessions. */
    async note(user: UserContext) {
      const { sub, issuer, email, emailVerified } = user;
      if (!email) return;
      try {
        const seal = await getSeal();
        const [mac = ''] = seal.computeMacs(MAC_CONTEXT, email.toLowerCase());
        const list = buildPersonKey(mac, emailVerified === true);
        const key = `${list}:${hashOwner(user)}`;
        await store.setListed(
          list,
          key,
          seal.seal(key, JSON.stringify({ sub, issuer })),
          PERSON_TTL_SECONDS,
        );
      } catch {
        // A missing index entry must not fail the session.
      }
    },
    /**
     * Finds users whose tokens recently had this address, ignoring case: users with a verified address come first. Any number of
     * users may have an unverified address.
     */
    async find(email: string, from: AdminPlace | undefined) {
      const seal = await getSeal();
      const macs = seal.computeMacs(MAC_CONTEXT, email.toLowerCase());
      const lists = [true, false].flatMap((isVerified) =>
        macs.map((mac) => buildPersonKey(mac, isVerified)),
      );
      const users = new Map<string, Owner>();
      const start = from?.list ?? 0;
      for (const [offset, list] of lists.slice(start).entries()) {
        const { items, next } = await store.readListed(list, {
          from: offset === 0 ? from : undefined,
          limit: MAX_USERS,
        });
        for (const { key, value } of items) {
          const { sub, issuer } = parseObject(seal.open(key, value) ?? '') ?? {};
          const user = toOwner(sub, issuer);
          if (user !== undefined) users.set(nameOwner(user), user);
        }
        if (next !== undefined)
          return { users: [...users.values()], next: { list: start + offset, ...next } };
      }
      return { users: [...users.values()], next: undefined };
    },
  };
}

/** Reads an owner as written by this file; undefined for anything else. */
const toOwner = (sub: unknown, issuer: unknown): Owner | undefined =>
  typeof sub === 'string' ? { sub, ...(typeof issuer === 'string' && { issuer }) } : undefined;

// §22.2: users who called within the last day, on any replica, for operators.

export interface RecentCaller {
  readonly user: Owner;
  readonly person: Person;
  /** ISO 8601, UTC; up to five minutes before the last call. */
  readonly lastSeenAt: string;
}

const CALLER_TTL_SECONDS = 86_400;
/** A process writes each user at most once in this time. */
const PAUSE_MS = 300_000;
const MAX_CALLERS = 5_000;
/** The interval between two removals of excess entries by a process, and their maximum number. */
const TRIM_PAUSE_MS = 60_000;
const TRIMMED = 100;
/** Later than any entry: the start of the list. */
const AFTER_ALL = Number.MAX_SAFE_INTEGER;

/** Keeps at most `maxCallers` in total. */
export function createRecentCallers(
  { store, clock, log }: Pick<Runtime, 'store' | 'clock' | 'log'>,
  people: People,
  maxCallers = MAX_CALLERS,
) {
  /** Users written recently; each expires when it may be written again. */
  const written = createExpiringMap<true>('people', clock.monotonic);
  let trimAt = Number.NEGATIVE_INFINITY;
  const warn = createWarnThrottle(clock, (cause: unknown) =>
    log.warn("A user could not be noted for the operators' page.", { cause }),
  );

  async function write(user: UserContext) {
    const key = buildCallerKey(hashOwner(user));
    const lastSeenAt = new Date(clock.now()).toISOString();
    const person = await people.seal(user, key);
    const value = JSON.stringify({ user: user.sub, issuer: user.issuer, lastSeenAt, person });
    await store.setListed(CALLER_LIST_KEY, key, value, CALLER_TTL_SECONDS);
    if (clock.monotonic() < trimAt) return;
    trimAt = clock.monotonic() + TRIM_PAUSE_MS;
    const from = { time: AFTER_ALL, skip: maxCallers };
    const { items } = await store.readListed(CALLER_LIST_KEY, { from, limit: TRIMMED });
    for (const extra of items) await store.deleteListed(CALLER_LIST_KEY, extra.key);
  }

  async function read(key: string, value: string): Promise<readonly RecentCaller[]> {
    const { user: sub, issuer, lastSeenAt, person: sealed } = parseObject(value) ?? {};
    const user = toOwner(sub, issuer);
    if (user === undefined || typeof lastSeenAt !== 'string') return [];
    const person = await people.open(typeof sealed === 'string' ? sealed : undefined, key);
    return [{ user, person, lastSeenAt }];
  }

  return {
    /** Called with each call: returns immediately, and occasional writes run in the background. */
    note(user: UserContext) {
      const name = nameOwner(user);
      if (written.get(name)) return;
      written.set(name, true, clock.monotonic() + PAUSE_MS);
      write(user).catch(warn);
    },
    /** The person, from the last call that was noted; empty if unknown. */
    async find(user: Owner): Promise<Person> {
      const key = buildCallerKey(hashOwner(user));
      const [caller] = await read(key, (await store.get(key)) ?? '');
      return caller?.person ?? {};
    },
    /** The latest caller comes first. */
    async list(request: PageRequest) {
      const { items, next } = await store.readListed(CALLER_LIST_KEY, request);
      const callers = await Promise.all(items.map(({ key, value }) => read(key, value)));
      return { items: callers.flat(), next };
    },
  };
}

// §22.2: finds a person's items in a list.

/** The data of people, and the indexes to find them. */
export interface FoundPeople {
  readonly people: People;
  readonly personIndex: ReturnType<typeof createPersonIndex>;
  readonly recentCallers: ReturnType<typeof createRecentCallers>;
  /** Undefined with `ADMIN_CALLS=false`. */
  readonly calls: CallList | undefined;
  readonly issuers: Issuers;
  readonly clock: Clock;
}

/** A list to search for a person's items. */
interface SearchedList<Item> {
  readonly isMeant: (item: Item) => boolean;
  readonly readPage: (request: PageRequest) => Promise<StoredPage<Item>>;
  /** Reads the items of one user. */
  readonly readOfUser: (user: NamedUser) => Promise<readonly Item[]>;
}

/** Looks up a complete e-mail address in the index; otherwise scans the list. */
export async function findOfPerson<Item>(
  { personIndex, clock, issuers }: FoundPeople,
  { text, from }: { readonly text: string; readonly from: AdminPageRequest['from'] },
  { isMeant, readPage, readOfUser }: SearchedList<Item>,
): Promise<AdminPage<Item>> {
  // A cursor contains a list number if it comes from the index, and none if it comes from a scan.
  if (text.includes('@') && (from === undefined || from.list !== undefined)) {
    const { users, next } = await personIndex.find(text, from);
    const read = users.map((user) =>
      readOfUser({ ...user, issuer: user.issuer ?? issuers.issuer }),
    );
    const items = (await Promise.all(read)).flat().filter(isMeant);
    if (items.length > 0 || next !== undefined || from !== undefined) return { items, next };
  }
  return lookThrough(readPage, isMeant, { from, clock });
}

// Names and e-mail addresses are sealed, so they have no index: the list is scanned, within the limits of one request.

const PAGE = 50;
/** Maximum pages scanned per request, and the number of items after which the scan stops; the last page may contain more. */
const MAX_PAGES = 40;
const ENOUGH = 50;

/** `next` is where the scan continues. */
export async function lookThrough<Item>(
  readPage: (request: PageRequest) => Promise<StoredPage<Item>>,
  isMeant: (item: Item) => boolean,
  { from, clock }: { readonly from: PageRequest['from']; readonly clock: Clock },
): Promise<StoredPage<Item>> {
  const work = createTurns(clock);
  const found: Item[] = [];
  let place = from;
  for (let page = 0; page < MAX_PAGES && found.length < ENOUGH; page += 1) {
    const { items, next } = await readPage({ from: place, limit: PAGE });
    found.push(...items.filter(isMeant));
    place = next;
    if (next === undefined) break;
    if (work.isOver()) await work.next();
  }
  return { items: found, next: place };
}

/**
 * Finds grants of people whose user ID equals the text, or whose e-mail or name contains it; at most `maxOfUser` for each user
 * found by the index.
 */
export const findGrants = <Found extends UserGrant>(
  found: FoundPeople,
  grants: GrantReader<Found>,
  asked: { readonly text: string; readonly from: AdminPageRequest['from'] },
  maxOfUser: number,
): Promise<AdminPage<Found>> =>
  findOfPerson(found, asked, {
    isMeant: (grant: Found) =>
      matchesPerson(asked.text, grant.user.sub, describeGrantPerson(grant)),
    readPage: (page) => grants.list(page, { kind: 'all' }),
    readOfUser: async (user) => (await grants.listOfUser(user)).slice(0, maxOfUser),
  });

/** From the provider's latest claims. */
export const describeGrantPerson = ({ claims }: UserGrant): Person =>
  describePerson({
    ...(typeof claims.name === 'string' && { name: claims.name }),
    ...readEmail(claims),
    ...(isStringArray(claims.groups) && { groups: claims.groups }),
  });
