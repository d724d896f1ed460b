// §5.11, §24.3: logs users in at the gateway's own pages: to the provider and back.

import { createRedirectReply, type Reply } from '../../http/endpoint/message.ts';
import { ACCOUNT_CLIENT_ID } from '../../http/endpoint/own-clients.ts';
import type { BeginLogin, Browsers } from '../../http/endpoint/own-pages.ts';
import { generateSecret } from '../../platform/ids.ts';
import { escapeInvisible } from '../../platform/invisible.ts';
import { isStringArray } from '../../platform/json.ts';
import { shorten } from '../../platform/text.ts';
import { type Login, sendToProvider } from '../broker/login.ts';
import type { Broker } from '../broker/open-broker.ts';
import type { BrokerRuntime } from '../broker/runtime.ts';
import { type Identity, readText } from '../identity/identity.ts';
import { buildProviderScope } from '../provider/provider-parameters.ts';
import type { StoredBrowserSessions } from './browser-sessions.ts';

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
      // The provider says the same of the person as at a client's login.
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
  // Only users of `OIDC_ISSUER` come here, whose groups these are.
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
