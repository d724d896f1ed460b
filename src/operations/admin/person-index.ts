// §22.2: users by the HMAC of their e-mail address, so that one is found at once among any number of sessions.

import type { UserContext } from '../../endpoint/user-context.ts';
import { hashSha256 } from '../../platform/sha256.ts';
import { buildPersonKey } from '../../store/keys.ts';
import type { Seal } from '../../store/seal/seal.ts';
import type { KeyValue } from '../../store/store.ts';
import type { AdminPlace } from './read-page-request.ts';

export interface PersonIndex {
  /** Never rejects: whoever is not noted is found by looking through all sessions. */
  note(user: UserContext): Promise<void>;
  /** Users whose tokens had this address lately, whatever its case: first those whom the provider says it belongs to. */
  find(email: string, from: AdminPlace | undefined): Promise<UserPage>;
}

export interface UserPage {
  /** `sub` of each. */
  readonly users: readonly string[];
  /** Anybody may have an address that is not verified: there may be any number of users. */
  readonly next: AdminPlace | undefined;
}

export interface PersonIndexDeps {
  readonly store: Pick<KeyValue, 'setListed' | 'readListed'>;
  getSeal(): Promise<Seal>;
}

/** A session may be used for as long, and longer. */
const TTL_SECONDS = 2_592_000;
/** Of one page. An address is that of one user, or of a few who share it. */
const MAX_USERS = 20;
const MAC_CONTEXT = 'e-mail address';

export function createPersonIndex({ store, getSeal }: PersonIndexDeps): PersonIndex {
  return {
    async note({ sub, email, emailVerified }) {
      if (!email) return;
      try {
        const seal = await getSeal();
        const [mac = ''] = seal.computeMacs(MAC_CONTEXT, email.toLowerCase());
        const list = buildPersonKey(mac, emailVerified === true);
        const key = `${list}:${hashSha256(sub)}`;
        await store.setListed(list, key, seal.seal(key, sub), TTL_SECONDS);
      } catch {
        // The session is worth more than that operators find it at once.
      }
    },
    async find(email, from) {
      const seal = await getSeal();
      const macs = seal.computeMacs(MAC_CONTEXT, email.toLowerCase());
      const lists = [true, false].flatMap((isVerified) =>
        macs.map((mac) => buildPersonKey(mac, isVerified)),
      );
      const users = new Set<string>();
      const start = from?.list ?? 0;
      for (const [offset, list] of lists.slice(start).entries()) {
        const { items, next } = await store.readListed(list, {
          from: offset === 0 ? from : undefined,
          limit: MAX_USERS,
        });
        for (const { key, value } of items) {
          const sub = seal.open(key, value);
          if (sub !== undefined) users.add(sub);
        }
        if (next !== undefined)
          return { users: [...users], next: { list: start + offset, ...next } };
      }
      return { users: [...users], next: undefined };
    },
  };
}
