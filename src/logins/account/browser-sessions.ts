// §5.11, §24.3: sessions of users at the gateway's own pages: a cookie (only its hash is stored) and a sealed record;
// and the logins that start them.

import { createRedirectReply, type Reply } from '../../http/endpoint/message.ts';
import { ACCOUNT_CLIENT_ID } from '../../http/endpoint/own-clients.ts';
import type { BeginLogin, BrowserSession, Browsers } from '../../http/endpoint/own-pages.ts';
import { generateSecret, hashSha256 } from '../../platform/ids.ts';
import { escapeInvisible } from '../../platform/invisible.ts';
import { isStringArray } from '../../platform/json.ts';
import { shorten } from '../../platform/text.ts';
import { buildOAuthKey } from '../../store/keys.ts';
import { createRecords, jsonFormat } from '../../store/records.ts';
import { buildProviderScope, type Login, sendToProvider } from '../broker/login.ts';
import { BROWSER_SESSION_MAX_SECONDS, type Logouts } from '../broker/logouts.ts';
import type { Broker } from '../broker/open-broker.ts';
import type { BrokerRuntime } from '../broker/runtime.ts';
import { createReadSecret } from '../consent/browser.ts';
import { type Identity, readText } from '../identity/identity.ts';

/** The stored record. */
export interface StoredBrowserSession extends BrowserSession {
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** The provider authenticated the user again: required for actions that affect all logins. */
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

// To the provider, to log in for one of these pages.

export const createBeginLogin = (broker: Broker, browsers: Browsers): BeginLogin =>
  async function beginLogin(cookie, { page, isFresh }) {
    const { baseUrl, clock, oauth } = broker.runtime;
    const login = {
      clientId: ACCOUNT_CLIENT_ID,
      redirectUri: baseUrl + page,
      query: '',
      state: undefined,
      codeChallenge: '',
      resources: [],
      scopes: [],
      logoutMark: await broker.ends.logouts.getMark(),
      nonce: generateSecret(),
      account: isFresh ? { freshSince: clock.now() } : {},
      // The provider returns the same data about the person as at a client's login.
      scope: buildProviderScope(oauth, undefined),
    };
    const added = oauth.addedParameters;
    const more = isFresh ? [...ASK_AGAIN, ...added.filter(([name]) => name !== 'prompt')] : added;
    return sendToProvider(broker, browsers.getOrCreate(cookie), login, more);
  };

const ASK_AGAIN = [
  ['prompt', 'login'],
  ['max_age', '0'],
] as const;

// Back from the provider: the browser gets a session, and goes to the page.

export type FinishPageLogin = ReturnType<typeof createFinishPageLogin>;

export function createFinishPageLogin(
  { config, baseUrl }: BrokerRuntime,
  browserSessions: StoredBrowserSessions,
) {
  // Only users of `OIDC_ISSUER` get here, and these are their groups.
  const adminGroups = new Set(config.admin.groups);

  return async function finishPageLogin(
    { user, claims, sid }: Identity,
    { account, logoutMark, redirectUri }: Login,
    idToken: unknown,
  ): Promise<Reply> {
    const { freshSince } = account ?? {};
    const isFresh = freshSince !== undefined && wasAskedSince(claims.auth_time, freshSince);
    const name = readText(claims.email) ?? readText(claims.name) ?? user.sub;
    const headers = await browserSessions.create({
      user,
      displayName: shorten(escapeInvisible(name), MAX_NAME),
      isFresh,
      isOperator: isStringArray(claims.groups) && claims.groups.some((one) => adminGroups.has(one)),
      sid,
      // Kept for the provider's logout page. Without it, most providers ask for confirmation.
      idToken: typeof idToken === 'string' && idToken.length <= MAX_HINT ? idToken : undefined,
      logoutMark,
    });
    // Only that page asks for a fresh login, and shows the outcome.
    const tells = redirectUri === `${baseUrl}/account` && freshSince !== undefined;
    const notice = tells ? (isFresh ? '?all=1' : '?unsure=1') : '';
    return createRedirectReply(redirectUri + notice, headers);
  };
}

/** OpenID Connect Core §3.1.2.1: without `auth_time` the login may be old. The provider's clock may be behind. */
const wasAskedSince = (authTime: unknown, since: number) =>
  typeof authTime === 'number' && authTime * 1000 >= since - TOLERANCE_MS;

const TOLERANCE_MS = 60_000;

/** Characters. */
const MAX_NAME = 200;

/** Characters: it becomes a part of an address, whose length some servers limit. */
const MAX_HINT = 4096;
