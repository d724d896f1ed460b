// §5.11: that all logins of a user, by a client, of a session at the provider, or of everybody were ended, for what was under
// way then and is found in no list: logins at the provider, codes, and browsers at /account; and for what browsers approved.

import { hashSha256 } from '../../platform/ids.ts';
import { buildLogoutKey, LOGOUT_COUNT_KEY } from '../../store/keys.ts';
import type { Grant, UserIdentity } from '../grants/grant.ts';
import type { ProviderSession } from '../grants/grants.ts';
import { hashSid, hashUser } from '../grants/token-codec.ts';
import type { BrokerRuntime } from './runtime.ts';

/** Logins that end at once: those of which all holds that is said. A selection that says nothing is none, rather than everybody's. */
export type GrantSelection = Selected &
  (
    | Required<Pick<Selected, 'user'>>
    | Required<Pick<Selected, 'client'>>
    | Required<Pick<Selected, 'session'>>
    | { readonly everybody: true; user?: never; client?: never; session?: never }
  );

interface Selected {
  readonly user?: UserIdentity;
  /** An OAuth client ID. */
  readonly client?: string;
  /** At the provider. */
  readonly session?: ProviderSession;
}

/**
 * The cause of the end of a login. `provider`: it sent a logout token. `renewal`: the provider, or a LOGIN_ALLOWED setting, no
 * longer lets the user in. `reuse`: a code or a refresh token came a second time. `configuration`: the client is another in the
 * configuration file now. `excess`: its user has too many. `unfinished`: no client got its tokens.
 */
export type GrantEndedBy =
  | 'client'
  | 'user'
  | 'operator'
  | 'provider'
  | 'renewal'
  | 'reuse'
  | 'configuration'
  | 'excess'
  | 'unfinished';

/** Else the client itself, the provider or the gateway ended it, which says nothing of what somebody wants to go on. */
export const isMeant = (by: GrantEndedBy): boolean => by === 'user' || by === 'operator';

export type Logouts = ReturnType<typeof createLogouts>;

export interface MarkedLogin {
  readonly user: UserIdentity;
  readonly clientId: string;
  /** The session at the provider that it came from; undefined where the provider names none. */
  readonly sid: string | undefined;
  /** When it began; undefined for what began before all that is known. */
  readonly logoutMark: number | undefined;
}

/** Lifetime of a browser's session at /account. */
export const BROWSER_SESSION_MAX_SECONDS = 28_800;
/** A login and its code, and a browser at /account that nobody uses: what is used meanwhile is found to be over. */
const LOGIN_SECONDS = 3600;

/**
 * Replicas' clocks differ, so they count: each logout has a number that is higher than all before, and each login has the
 * number of the last one when it began. What began before a logout is over, also where the person came back from the
 * provider after it: whoever it is that one logs out may have begun it.
 */
export function createLogouts({ store, clock, oauth }: BrokerRuntime) {
  const { refreshTtlSeconds, consent } = oauth;
  /**
   * Nothing that a logout concerns, and that no list names, is older than that: a login from before the gateway's own tokens
   * stands in no list until its client comes.
   */
  const notedSeconds = Math.max(BROWSER_SESSION_MAX_SECONDS, refreshTtlSeconds) + LOGIN_SECONDS;
  const approvalSeconds = consent.ttlSeconds + LOGIN_SECONDS;
  /** Longer than what was noted by it. */
  const countedSeconds = 2 * Math.max(notedSeconds, approvalSeconds);

  const readNumber = async (key: string) => Number((await store.get(key)) ?? 0);

  async function change(key: string, seconds: number, compute: (current: number) => number) {
    for (;;) {
      const text = await store.get(key);
      const next = compute(Number(text ?? 0));
      if (await store.compareAndSet(key, text, String(next), seconds)) return next;
    }
  }

  // Begun at the time of day, so that it goes on rising after it was forgotten.
  const count = () =>
    change(LOGOUT_COUNT_KEY, countedSeconds, (current) => Math.max(current + 1, clock.now()));

  const raise = (key: string, seconds: number, mark: number) =>
    change(key, seconds, (current) => Math.max(current, mark));

  /** True where one of them was noted after the mark. */
  async function isNotedAfter(mark: number, keys: readonly string[]) {
    const latest = Math.max(...(await Promise.all(keys.map(readNumber))));
    if (latest <= mark) return false;
    // A store of several servers can lose the count and keep what was noted by it: nobody could log in then until that is forgotten, too.
    if ((await readNumber(LOGOUT_COUNT_KEY)) < latest)
      await raise(LOGOUT_COUNT_KEY, countedSeconds, latest);
    return true;
  }

  return {
    /** The mark of what begins now. */
    getMark: () => readNumber(LOGOUT_COUNT_KEY),
    /** Notes one; whoever ends what is listed does that afterwards. Resolves to the mark of what begins after it. */
    async note({ user, client, session }: GrantSelection, by: GrantEndedBy): Promise<number> {
      const mark = await count();
      const concerned = {
        user: user && hashUser(user),
        client,
        session: session && hashSid(session),
      };
      if (isMeant(by)) await raise(buildApprovalKey(concerned), approvalSeconds, mark);
      // No login from before own tokens is known to be of a session.
      const seconds = session === undefined ? notedSeconds : LOGIN_SECONDS;
      await raise(buildKey(concerned), seconds, mark);
      return mark;
    },
    /** Notes the end of one login that a user or operator ends, while others of the same user by the same client go on. */
    async noteOfOne({ user, client }: Grant) {
      const concerned = { user: hashUser(user), client: client.id };
      await raise(buildApprovalKey(concerned), approvalSeconds, await count());
    },
    /** Asked once whatever is judged stands in the store: else it could be missed by both. */
    async isOver({ user, clientId, sid, logoutMark = 0 }: MarkedLogin) {
      const userKey = hashUser(user);
      const session = sid === undefined ? undefined : hashSid({ issuer: user.issuer, sid });
      return isNotedAfter(logoutMark, [
        ...listConcerned(userKey, clientId).map(buildKey),
        ...(session ? [buildKey({ session }), buildKey({ user: userKey, session })] : []),
      ]);
    },
    /**
     * True for what a browser approved where a user or an operator has logged the person out of that client since.
     *
     * @param userKey - that of `hashUser`.
     */
    isApprovalOver: (userKey: string, clientId: string, logoutMark: number) =>
      isNotedAfter(logoutMark, listConcerned(userKey, clientId).map(buildApprovalKey)),
  };
}

/** Hashes, but for the client; what is not there stands for any. */
type Concerned = Readonly<Partial<Record<'user' | 'client' | 'session', string | undefined>>>;

/** All that a logout which concerns a login may have said. */
const listConcerned = (user: string, client: string): readonly Concerned[] => [
  { user },
  { client },
  { user, client },
  {},
];

const buildKey = ({ user, client, session }: Concerned) =>
  buildLogoutKey(hashSha256(JSON.stringify([user, client, session])));

const buildApprovalKey = ({ user, client }: Concerned) =>
  buildLogoutKey(hashSha256(JSON.stringify(['approvals', user, client])));
