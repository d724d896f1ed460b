// §5.11: whoever is logged in at the gateway's own pages for users. A cookie, of which only the hash is stored, and a sealed record.

import { ACCOUNT_CLIENT_ID } from '../../http/endpoint/own-clients.ts';
import type { BrowserSession } from '../../http/endpoint/own-pages.ts';
import { generateSecret, hashSha256 } from '../../platform/ids.ts';
import { buildOAuthKey } from '../../store/keys.ts';
import { createRecords, jsonFormat } from '../../store/records.ts';
import { BROWSER_SESSION_MAX_SECONDS, type Logouts } from '../broker/logouts.ts';
import type { BrokerRuntime } from '../broker/runtime.ts';
import { createReadSecret } from '../consent/browser.ts';

/** As the gateway keeps it. */
export interface StoredBrowserSession extends BrowserSession {
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** The provider asked who it is, whatever it knew: all that concerns all logins needs it. */
  readonly isFresh: boolean;
  /** The session at the provider, where it names one. */
  readonly sid: string | undefined;
  /** The ID token of its login: the provider wants to see it where it is to log the browser out. Undefined for one that is too long. */
  readonly idToken: string | undefined;
  /** When its login began, as `Logouts` counts: after a logout it is none any more. */
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
  // The prefix keeps other hosts of the domain from setting it; it is for the whole of a host (RFC 6265bis §4.1.3).
  const prefix = isAtRoot ? '__Host-' : '__Secure-';
  const name = `${isSecure ? prefix : ''}postern-account`;
  const attributes = `Path=${pathname}; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`;
  const readSecret = createReadSecret(name);
  const sessions = createRecords(store, SESSION_FORMAT, seal);

  function getSecondsLeft({ createdAt, isOperator }: StoredBrowserSession) {
    const maxSeconds = isOperator ? OPERATOR_MAX_SECONDS : BROWSER_SESSION_MAX_SECONDS;
    return Math.min(IDLE_SECONDS, maxSeconds - Math.floor((clock.now() - createdAt) / 1000));
  }

  /** Headers that give it to the browser. */
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
    /** Undefined without one. Being read, it lives on. */
    async find(cookie: string | undefined) {
      const key = readKey(cookie);
      if (key === undefined) return undefined;
      // Only where it still stands: whoever has left stays out, whatever comes at the same moment.
      let isAgain = false;
      const session = await sessions.update(key, async (standing) => {
        if (standing === undefined || !(await isGood(standing))) return { result: undefined };
        // Another request of this browser has just given it its time.
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
        /** It goes on, by another cookie, in place of one that a logout has ended. */
        async renew(logoutMark: number) {
          const renewed = { ...session, csrf: generateSecret(), logoutMark };
          const headers = await writeNew(renewed);
          await end();
          return { session: { ...renewed, isFresh }, headers };
        },
      };
    },
    /** Always a new one, so that nobody knows its cookie. The headers give it to the browser. */
    create: (session: Omit<StoredBrowserSession, 'csrf' | 'createdAt'>) =>
      writeNew({ ...session, csrf: generateSecret(), createdAt: clock.now() }),
    /** Headers that take the cookie away. */
    removal: { 'Set-Cookie': `${name}=; Max-Age=0; ${attributes}` },
  };
}

const SESSION_FORMAT = jsonFormat<StoredBrowserSession>('A browser session');

const buildKey = (secret: string) => buildOAuthKey('browser-session', hashSha256(secret));
