// §22.2: users by the HMAC of their e-mail address, so that one is found at once among any number of sessions.
import type { Seal } from '../../core/seal/seal.ts';
import { hashSha256 } from '../../core/sha256.ts';
import { buildPersonKey } from '../../core/store/keys.ts';
import type { Store } from '../../core/store/store.ts';
import type { UserContext } from '../../core/user-context.ts';

export interface PersonIndex {
  /** Never rejects: whoever is not noted is found by looking through all sessions. */
  note(user: UserContext): Promise<void>;
  /** `sub` of the users whose tokens had this address lately, whatever its case. */
  find(email: string): Promise<readonly string[]>;
}

export interface PersonIndexDeps {
  readonly store: Pick<Store, 'setListed' | 'readListed'>;
  getSeal(): Promise<Seal>;
}

/** A session may be used for as long, and longer. */
const TTL_SECONDS = 2_592_000;
/** An address is that of one user, or of a few who share it. */
const MAX_USERS = 20;
const MAC_CONTEXT = 'e-mail address';

export function createPersonIndex({ store, getSeal }: PersonIndexDeps): PersonIndex {
  return {
    async note({ sub, email }) {
      if (!email) return;
      try {
        const seal = await getSeal();
        const [mac = ''] = seal.computeMacs(MAC_CONTEXT, email.toLowerCase());
        const list = buildPersonKey(mac);
        const key = `${list}:${hashSha256(sub)}`;
        await store.setListed(list, key, seal.seal(key, sub), TTL_SECONDS);
      } catch {
        // The session is worth more than that operators find it at once.
      }
    },
    async find(email) {
      const seal = await getSeal();
      const macs = seal.computeMacs(MAC_CONTEXT, email.toLowerCase());
      const pages = await Promise.all(
        macs.map((mac) =>
          store.readListed(buildPersonKey(mac), { from: undefined, limit: MAX_USERS }),
        ),
      );
      const subs = pages.flatMap(({ items }) =>
        items.map(({ key, value }) => seal.open(key, value)),
      );
      return [...new Set(subs.filter((sub) => sub !== undefined))];
    },
  };
}
