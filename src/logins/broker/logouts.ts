// §5.11: tombstones for logouts of a user, a client, a session at the provider, or all users. They end everything that is in no
// list: logins in progress, codes, sessions at /account, and approvals in browsers.

import { hashSha256 } from '../../platform/ids.ts';
import { buildLogoutKey, LOGOUT_COUNT_KEY } from '../../store/keys.ts';
import type { Grant, UserIdentity } from '../grants/grant.ts';
import type { ProviderSession } from '../grants/grants.ts';
import { hashSid, hashUser } from '../grants/token-codec.ts';
import type { BrokerRuntime } from './runtime.ts';

/** Selects the logins that match all given members. At least one must be given: an empty selection never means all users. */
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
 * Cause of the end of a login. `provider`: a logout token. `renewal`: the provider, or a LOGIN_ALLOWED setting, no longer lets the
 * user in.
 * `reuse`: a code or a refresh token was used twice. `configuration`: the client has changed in the configuration file. `excess`:
 * its user has too many logins. `unfinished`: no client received its tokens.
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

/** True if a person chose to end the login. The other causes say nothing about the user's intentions. */
export const isMeant = (by: GrantEndedBy): boolean => by === 'user' || by === 'operator';

export type Logouts = ReturnType<typeof createLogouts>;

export interface MarkedLogin {
  readonly user: UserIdentity;
  readonly clientId: string;
  /** Its session at the provider; undefined if the provider names none. */
  readonly sid: string | undefined;
  /** When it began; undefined for records from before marks existed. */
  readonly logoutMark: number | undefined;
}

/** Lifetime of a browser's session at /account. */
export const BROWSER_SESSION_MAX_SECONDS = 28_800;
/** Time for a login and its code, and for an unused session at /account: sessions in use are checked on use. */
const LOGIN_SECONDS = 3600;

/**
 * A logical clock, since clocks of replicas differ: each logout gets a number higher than all before, and each login the number of
 * the last logout when it began. A login that began before a logout has ended, even if its user comes back from the provider later:
 * the person who is being logged out may have begun it.
 */
export function createLogouts({ store, clock, oauth }: BrokerRuntime) {
  const { refreshTtlSeconds, consent } = oauth;
  /**
   * Maximum age of unlisted logins that a logout must end: a login from before the gateway issued its own tokens is listed only
   * once its client comes back.
   */
  const notedSeconds = Math.max(BROWSER_SESSION_MAX_SECONDS, refreshTtlSeconds) + LOGIN_SECONDS;
  const approvalSeconds = consent.ttlSeconds + LOGIN_SECONDS;
  /** Outlives all notes that contain the number. */
  const countedSeconds = 2 * Math.max(notedSeconds, approvalSeconds);

  const readNumber = async (key: string) => Number((await store.get(key)) ?? 0);

  async function change(key: string, seconds: number, compute: (current: number) => number) {
    for (;;) {
      const text = await store.get(key);
      const next = compute(Number(text ?? 0));
      if (await store.compareAndSet(key, text, String(next), seconds)) return next;
    }
  }

  // Starts at the current time, so that it keeps increasing if it was lost.
  const count = () =>
    change(LOGOUT_COUNT_KEY, countedSeconds, (current) => Math.max(current + 1, clock.now()));

  const raise = (key: string, seconds: number, mark: number) =>
    change(key, seconds, (current) => Math.max(current, mark));

  /** True if one of the keys has a higher number than the mark. */
  async function isNotedAfter(mark: number, keys: readonly string[]) {
    const latest = Math.max(...(await Promise.all(keys.map(readNumber))));
    if (latest <= mark) return false;
    // A store with several servers can lose the counter but keep the records: no user could log in until those have expired.
    if ((await readNumber(LOGOUT_COUNT_KEY)) < latest)
      await raise(LOGOUT_COUNT_KEY, countedSeconds, latest);
    return true;
  }

  return {
    /** The mark for logins that begin now. */
    getMark: () => readNumber(LOGOUT_COUNT_KEY),
    /** Notes a logout, before its caller ends the listed logins. Resolves to the mark of what begins afterwards. */
    async note({ user, client, session }: GrantSelection, by: GrantEndedBy): Promise<number> {
      const mark = await count();
      const concerned = {
        user: user && hashUser(user),
        client,
        session: session && hashSid(session),
      };
      if (isMeant(by)) await raise(buildApprovalKey(concerned), approvalSeconds, mark);
      // Logins from before own tokens have no known session.
      const seconds = session === undefined ? notedSeconds : LOGIN_SECONDS;
      await raise(buildKey(concerned), seconds, mark);
      return mark;
    },
    /** Notes that a user or operator ended one login, while others of the same user and client continue. */
    async noteOfOne({ user, client }: Grant) {
      const concerned = { user: hashUser(user), client: client.id };
      await raise(buildApprovalKey(concerned), approvalSeconds, await count());
    },
    /** To be called after the record was stored: otherwise both sides could miss each other. */
    async isOver({ user, clientId, sid, logoutMark = 0 }: MarkedLogin) {
      const userKey = hashUser(user);
      const session = sid === undefined ? undefined : hashSid({ issuer: user.issuer, sid });
      return isNotedAfter(logoutMark, [
        ...listConcerned(userKey, clientId).map(buildKey),
        ...(session ? [buildKey({ session }), buildKey({ user: userKey, session })] : []),
      ]);
    },
    /**
     * True if a user or an operator has logged the person out of that client since the approval.
     *
     * @param userKey - that of `hashUser`.
     */
    isApprovalOver: (userKey: string, clientId: string, logoutMark: number) =>
      isNotedAfter(logoutMark, listConcerned(userKey, clientId).map(buildApprovalKey)),
  };
}

/** Hashes, except for the client; a missing member matches any value. */
type Concerned = Readonly<Partial<Record<'user' | 'client' | 'session', string | undefined>>>;

/** All kinds of logouts that affect a login. */
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
