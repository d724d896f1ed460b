// §5.11: sessions of users at the gateway's own pages: a cookie, of which only the hash is stored, and a sealed record.

import { ACCOUNT_CLIENT_ID } from '../../http/endpoint/own-clients.ts';
import type { BrowserSession } from '../../http/endpoint/own-pages.ts';
import { generateSecret, hashSha256 } from '../../platform/ids.ts';
import { buildOAuthKey } from '../../store/keys.ts';
import { createRecords, jsonFormat } from '../../store/records.ts';
import { BROWSER_SESSION_MAX_SECONDS, type Logouts } from '../broker/logouts.ts';
import type { BrokerRuntime } from '../broker/runtime.ts';
import { createReadSecret } from '../consent/browser.ts';

/** The stored record. */
export interface StoredBrowserSession extends BrowserSession {
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** The provider authenticated the user again: required for all that concerns every login. */
  readonly isFresh: boolean;
  /** Session at the provider, if it names one. */
  readonly sid: string | undefined;
  /** ID token of the login: the provider's logout page needs it. Undefined if it is too long. */
  readonly idToken: string | undefined;
  /** The mark (`Logouts`) of when its login began: a logout after it ends the session. */
  readonly logoutMark: number | undefined;
}

export type StoredBrowserSessions = ReturnType<typeof createBrowserSessions>;

export type FoundBrowserSession = NonNullable<Awaited<ReturnType<StoredBrowserSessions['find']>>>;

const IDLE_SECONDS = 900;
const FRESH_MS = 300_000;
const OPERATOR_MAX_SECONDS = 3600;

/** The cookie has the path of `BASE_URL`. */
export function createBrowserSessions(
  { baseUrl, store, seal, clock }: BrokerRuntime,
  logouts: Logouts,
) {
  const { protocol, pathname } = new URL(baseUrl);
  const isSecure = protocol === 'https:';
  const isAtRoot = pathname === '/';
  // The prefix keeps other hosts of the domain from setting the cookie; it requires the whole host as path (RFC 6265bis §4.1.3).
  const prefix = isAtRoot ? '__Host-' : '__Secure-';
  const name = `${isSecure ? prefix : ''}postern-account`;
  const attributes = `Path=${pathname}; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`;
  const readSecret = createReadSecret(name);
  const sessions = createRecords(store, SESSION_FORMAT, seal);

  function getSecondsLeft({ createdAt, isOperator }: StoredBrowserSession) {
    const maxSeconds = isOperator ? OPERATOR_MAX_SECONDS : BROWSER_SESSION_MAX_SECONDS;
    return Math.min(IDLE_SECONDS, maxSeconds - Math.floor((clock.now() - createdAt) / 1000));
  }

  /** Headers that set the cookie. */
  async function writeNew(session: StoredBrowserSession) {
    const secret = generateSecret();
    await sessions.put(buildKey(secret), session, getSecondsLeft(session));
    return { 'Set-Cookie': `${name}=${secret}; ${attributes}` };
  }

  function readKey(cookie: string | undefined) {
    const secret = readSecret(cookie);
    return secret && buildKey(secret);
  }

  const isGood = async (session: StoredBrowserSession) =>
    getSecondsLeft(session) > 0 &&
    !(await logouts.isOver({ ...session, clientId: ACCOUNT_CLIENT_ID }));

  return {
    /** Without effect. */
    async has(cookie: string | undefined) {
      const key = readKey(cookie);
      const session = key && (await sessions.get(key));
      return session ? isGood(session) : false;
    },
    /** Undefined without a session. Reading it extends its life. */
    async find(cookie: string | undefined) {
      const key = readKey(cookie);
      if (key === undefined) return undefined;
      // Only while the record exists: a user who has just logged out stays logged out.
      let isAgain = false;
      const session = await sessions.update(key, async (standing) => {
        if (standing === undefined || !(await isGood(standing))) return { result: undefined };
        // Another request of this browser has just extended it.
        if (isAgain) return { result: standing };
        isAgain = true;
        return { value: standing, ttlSeconds: getSecondsLeft(standing), result: standing };
      });
      if (session === undefined) return undefined;
      const isFresh = session.isFresh && clock.now() - session.createdAt < FRESH_MS;
      const end = () => store.delete(key);
      return {
        session: { ...session, isFresh },
        end,
        /** Replaces a session that a logout has ended, with a new cookie. */
        async renew(logoutMark: number) {
          const renewed = { ...session, csrf: generateSecret(), logoutMark };
          const headers = await writeNew(renewed);
          await end();
          return { session: { ...renewed, isFresh }, headers };
        },
      };
    },
    /** Always creates a new cookie, which no attacker can know. The headers set it. */
    create: (session: Omit<StoredBrowserSession, 'csrf' | 'createdAt'>) =>
      writeNew({ ...session, csrf: generateSecret(), createdAt: clock.now() }),
    /** Headers that delete the cookie. */
    removal: { 'Set-Cookie': `${name}=; Max-Age=0; ${attributes}` },
  };
}

const SESSION_FORMAT = jsonFormat<StoredBrowserSession>('A browser session');

const buildKey = (secret: string) => buildOAuthKey('browser-session', hashSha256(secret));
