// §22.2: names and e-mail addresses of those whom operators see, sealed wherever they are kept.

import type { UserContext } from '../../endpoint/user-context.ts';
import { parseObject } from '../../platform/json.ts';
import type { Seal } from '../../store/seal/seal.ts';

/** What the token said when the session was opened. */
export interface Person {
  readonly name?: string;
  readonly email?: string;
  /** Whether the provider says that the address is theirs; absent where it does not say. */
  readonly emailVerified?: boolean;
}

export interface People {
  /** `context` must be the same for opening. Undefined where the token has neither name nor e-mail. */
  seal(user: UserContext, context: string): Promise<string | undefined>;
  /** Empty where there is nothing, or it was sealed with a secret that is no longer in use. */
  open(sealed: string | undefined, context: string): Promise<Person>;
}

/** Of a name. */
const MAX_NAME = 200;
/** RFC 5321 §4.5.3.1 allows no longer address. */
const MAX_EMAIL = 320;

export function createPeople(getSeal: () => Promise<Seal>): People {
  const toSealContext = (context: string) => `person ${context}`;
  return {
    async seal({ name, email, emailVerified }, context) {
      if (!name && !email) return undefined;
      const person: Person = {
        ...(name && { name: name.slice(0, MAX_NAME) }),
        ...(email && { email: email.slice(0, MAX_EMAIL) }),
        ...(email && emailVerified !== undefined && { emailVerified }),
      };
      return (await getSeal()).seal(toSealContext(context), JSON.stringify(person));
    },
    async open(sealed, context) {
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

/** Whether an operator who types this means the person: the whole user ID, or a part of e-mail or name. */
export function matchesPerson(text: string, sub: string | undefined, person: Person): boolean {
  const part = text.toLowerCase();
  const has = (value: string | undefined) => value?.toLowerCase().includes(part) === true;
  return sub === text || has(person.email) || has(person.name);
}
