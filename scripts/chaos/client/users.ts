// Users with their tokens, and tokens that must be refused.
import type { Issuer } from '../../../test/support/oauth/issuer.ts';

export interface User {
  readonly token: string;
}

export interface Users {
  pick(): User;
  pickOtherThan(user: User): User;
  /** New tokens for every `everyNth` user, in turn: the others keep those of earlier keys. */
  renew(everyNth: number): Promise<void>;
  /** Signed by nobody. */
  readonly forgedToken: string;
  readonly expiredToken: string;
}

const COUNT = 20;
/** Longer than the longest run. */
const LIFETIME_SECONDS = 6 * 3600;

export async function createUsers(issuer: Issuer, alg = 'RS256'): Promise<Users> {
  const now = Math.floor(Date.now() / 1000);
  const sign = (sub: string, exp = now + LIFETIME_SECONDS) => issuer.sign({ sub, exp }, { alg });
  const users: { readonly name: string; token: string }[] = [];
  for (let index = 0; index < COUNT; index += 1) {
    const name = `user-${index}`;
    users.push({ name, token: await sign(name) });
  }
  const signExpired = () => sign('user-0', now - 172_800);
  const [header, payload] = (await sign('user-0')).split('.');
  let expiredToken = await signExpired();
  let turn = 0;

  function pick(): User {
    const user = users[Math.floor(Math.random() * users.length)];
    if (user === undefined) throw new Error('There are no users');
    return user;
  }

  return {
    pick,
    pickOtherThan(user) {
      for (;;) {
        const other = pick();
        if (other !== user) return other;
      }
    },
    async renew(everyNth) {
      turn += 1;
      for (const [index, user] of users.entries()) {
        if ((index + turn) % everyNth === 0) user.token = await sign(user.name);
      }
      expiredToken = await signExpired();
    },
    forgedToken: `${header}.${payload}.${Buffer.alloc(256, 7).toString('base64url')}`,
    get expiredToken() {
      return expiredToken;
    },
  };
}
