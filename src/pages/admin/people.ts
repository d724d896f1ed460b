// §22.2: names and e-mail addresses of those whom operators see, sealed wherever they are kept, and how they are found.

import type { UserContext } from '../../http/endpoint/message.ts';
import { parseObject } from '../../platform/json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildPersonKey } from '../../store/keys.ts';
import { hashOwner, nameOwner } from '../../store/owner.ts';
import type { Owner } from '../../store/store.ts';
import type { AdminPlace } from './read-request.ts';

/** What the token said when the session was opened. */
export interface Person {
  readonly name?: string;
  readonly email?: string;
  /** Whether the provider says that the address is theirs; absent where it does not say. */
  readonly emailVerified?: boolean;
}

export type People = ReturnType<typeof createPeople>;

/** Of a name. */
const MAX_NAME = 200;
/** RFC 5321 §4.5.3.1 allows no longer address. */
const MAX_EMAIL = 320;

export function createPeople({ getSeal }: Pick<Runtime, 'getSeal'>) {
  const toSealContext = (context: string) => `person ${context}`;
  return {
    /** `context` must be the same for opening. Undefined where the token has neither name nor e-mail. */
    async seal(user: UserContext, context: string) {
      const person = describePerson(user);
      if (!person.name && !person.email) return undefined;
      return (await getSeal()).seal(toSealContext(context), JSON.stringify(person));
    },
    /** Empty where there is nothing, or it was sealed with a secret that is no longer in use. */
    async open(sealed: string | undefined, context: string): Promise<Person> {
      if (sealed === undefined) return {};
      const text = (await getSeal()).open(toSealContext(context), sealed);
      const { name, email, emailVerified } = (text && parseObject(text)) || {};
      return {
        ...(typeof name === 'string' && { name }),
        ...(typeof email === 'string' && { email }),
        ...(typeof emailVerified === 'boolean' && { emailVerified }),
      };
    },
  };
}

/** As much as is kept, or shown, of somebody. */
export const describePerson = ({ name, email, emailVerified }: Person): Person => ({
  ...(name && { name: name.slice(0, MAX_NAME) }),
  ...(email && { email: email.slice(0, MAX_EMAIL) }),
  ...(email && emailVerified !== undefined && { emailVerified }),
});

/** Whether an operator who types this means the person: the whole user ID, or a part of e-mail or name. */
export function matchesPerson(text: string, sub: string | undefined, person: Person): boolean {
  const part = text.toLowerCase();
  const has = (value: string | undefined) => value?.toLowerCase().includes(part) === true;
  return sub === text || has(person.email) || has(person.name);
}

// §22.2: users by the HMAC of their e-mail address, so that one is found at once among any number of sessions.

export type PersonIndex = ReturnType<typeof createPersonIndex>;

/** A session may be used for as long, and longer. */
const TTL_SECONDS = 2_592_000;
/** Of one page. An address is that of one user, or of a few who share it. */
const MAX_USERS = 20;
const MAC_CONTEXT = 'e-mail address';

export function createPersonIndex({ store, getSeal }: Pick<Runtime, 'store' | 'getSeal'>) {
  return {
    /** Never rejects: whoever is not noted is found by looking through all sessions. */
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
          TTL_SECONDS,
        );
      } catch {
        // The session is worth more than that operators find it at once.
      }
    },
    /**
     * Users whose tokens had this address lately, whatever its case: first those whom the provider says it belongs
     * to. Anybody may have an address that is not verified: there may be any number of users.
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
          if (typeof sub !== 'string') continue;
          const user = { sub, ...(typeof issuer === 'string' && { issuer }) };
          users.set(nameOwner(user), user);
        }
        if (next !== undefined)
          return { users: [...users.values()], next: { list: start + offset, ...next } };
      }
      return { users: [...users.values()], next: undefined };
    },
  };
}
