// §5.11: that all logins of a user, by a client, of a session at the provider, or of everybody were ended, for what was under
// way then and is found in no list: logins at the provider, codes, and browsers at /account.
import type { UserIdentity } from '../../grants/grant.ts';
import type { ProviderSession } from '../../grants/grant-lists.ts';
import { hashSid, hashUser } from '../../grants/token-codec.ts';
import type { Clock } from '../../platform/clock.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { buildLogoutKey, LOGOUT_COUNT_KEY } from '../../store/keys.ts';
import type { KeyValue } from '../../store/store.ts';

/** Whose logins end at once. `client` is an OAuth client ID. */
export type GrantSelection =
  | { readonly kind: 'user'; readonly user: UserIdentity; readonly client: string | undefined }
  | { readonly kind: 'client'; readonly client: string }
  /** Of a session at the provider; of those the ones of `user`, where there is one. */
  | {
      readonly kind: 'session';
      readonly session: ProviderSession;
      readonly user: UserIdentity | undefined;
    }
  | { readonly kind: 'all' };

/**
 * Replicas' clocks differ, so they count: each logout has a number that is higher than all before, and each login has the
 * number of the last one when it began. What began before a logout is over, also where the person came back from the
 * provider after it: whoever it is that one logs out may have begun it.
 */
export interface Logouts {
  /** Of what begins now. */
  getMark(): Promise<number>;
  /** Notes one; whoever ends what is listed does that afterwards. Resolves to the mark of what begins after it. */
  note(selection: GrantSelection): Promise<number>;
  /** Asked once whatever is judged stands in the store: else it could be missed by both. */
  isOver(login: MarkedLogin): Promise<boolean>;
}

export interface MarkedLogin {
  readonly user: UserIdentity;
  readonly clientId: string;
  /** Of the session at the provider that it came from; undefined where the provider names none. */
  readonly sid: string | undefined;
  /** When it began; undefined for what began before all that is known. */
  readonly logoutMark: number | undefined;
}

/** Of a browser at /account. */
export const BROWSER_SESSION_MAX_SECONDS = 28_800;
/** A login and its code, and a browser at /account that nobody uses: what is used meanwhile is found to be over. */
const LOGIN_SECONDS = 3600;

export interface LogoutsDeps {
  readonly store: Pick<KeyValue, 'get' | 'compareAndSet'>;
  /** `OAUTH_REFRESH_TTL_SECONDS`: a login from before the gateway's own tokens stands in no list until its client comes. */
  readonly refreshTtlSeconds: number;
  readonly clock: Clock;
}

export function createLogouts({ store, refreshTtlSeconds, clock }: LogoutsDeps): Logouts {
  /** Nothing that a logout concerns, and that no list names, is older than that. */
  const notedSeconds = Math.max(BROWSER_SESSION_MAX_SECONDS, refreshTtlSeconds) + LOGIN_SECONDS;
  /** Longer than what was noted by it. */
  const countedSeconds = 2 * notedSeconds;

  const readNumber = async (key: string): Promise<number> => Number((await store.get(key)) ?? 0);

  async function change(
    key: string,
    seconds: number,
    compute: (current: number) => number,
  ): Promise<number> {
    for (;;) {
      const text = await store.get(key);
      const next = compute(Number(text ?? 0));
      if (await store.compareAndSet(key, text, String(next), seconds)) return next;
    }
  }

  /**
   * A store of several servers can lose the count and keep what was noted by it: nobody could log in then until that is
   * forgotten, too.
   */
  async function restoreCount(mark: number): Promise<void> {
    if ((await readNumber(LOGOUT_COUNT_KEY)) >= mark) return;
    await change(LOGOUT_COUNT_KEY, countedSeconds, (current) => Math.max(current, mark));
  }

  return {
    getMark: () => readNumber(LOGOUT_COUNT_KEY),
    async note(selection) {
      // Begun at the time of day, so that it goes on rising after it was forgotten.
      const mark = await change(LOGOUT_COUNT_KEY, countedSeconds, (current) =>
        Math.max(current + 1, clock.now()),
      );
      // No login from before own tokens is known to be of a session.
      const seconds = selection.kind === 'session' ? LOGIN_SECONDS : notedSeconds;
      await change(buildSelectionKey(selection), seconds, (current) => Math.max(current, mark));
      return mark;
    },
    async isOver({ user, clientId, sid, logoutMark = 0 }) {
      const session = sid === undefined ? undefined : { issuer: user.issuer, sid };
      const keys = [
        buildKey(user, undefined),
        buildKey(undefined, clientId),
        buildKey(user, clientId),
        buildKey(undefined, undefined),
        ...(session
          ? [buildKey(undefined, undefined, session), buildKey(user, undefined, session)]
          : []),
      ];
      const latest = Math.max(...(await Promise.all(keys.map(readNumber))));
      if (latest <= logoutMark) return false;
      await restoreCount(latest);
      return true;
    },
  };
}

function buildSelectionKey(selection: GrantSelection): string {
  switch (selection.kind) {
    case 'user':
      return buildKey(selection.user, selection.client);
    case 'client':
      return buildKey(undefined, selection.client);
    case 'session':
      return buildKey(selection.user, undefined, selection.session);
    case 'all':
      return buildKey(undefined, undefined);
  }
}

/** Undefined stands for any. */
const buildKey = (
  user: UserIdentity | undefined,
  clientId: string | undefined,
  session?: ProviderSession,
): string =>
  buildLogoutKey(
    hashSha256(
      JSON.stringify([user && hashUser(user), clientId, ...(session ? [hashSid(session)] : [])]),
    ),
  );
