// §5.11, §24.3: the provider has said who came for a page of the gateway's own: the browser gets a session, and goes to the page.
import { createRedirectReply, type Reply } from '../../http/endpoint/message.ts';
import { escapeInvisible } from '../../platform/invisible.ts';
import { isStringArray } from '../../platform/json.ts';
import { shorten } from '../../platform/text.ts';
import type { Login } from '../broker/redirect-to-provider.ts';
import type { Identity } from '../identity/identity.ts';
import type { StoredBrowserSessions } from './browser-sessions.ts';
import { selectHint } from './end-provider-session.ts';

export type FinishPageLogin = (
  identity: Identity,
  login: Pick<Login, 'account' | 'logoutMark' | 'redirectUri'>,
  idToken: unknown,
) => Promise<Reply>;

export interface FinishPageLoginDeps {
  /** `BASE_URL`. */
  readonly baseUrl: string;
  /** `ADMIN_GROUPS`. Only the provider's own users come here, whose groups these are. */
  readonly adminGroups: readonly string[];
  readonly browserSessions: Pick<StoredBrowserSessions, 'create'>;
}

export function createFinishPageLogin(deps: FinishPageLoginDeps): FinishPageLogin {
  const { browserSessions } = deps;
  const accountUrl = `${deps.baseUrl}/account`;
  const adminGroups = new Set(deps.adminGroups);

  return async function finishPageLogin(identity, { account, logoutMark, redirectUri }, idToken) {
    const { user, claims, sid } = identity;
    const { freshSince } = account ?? {};
    const isFresh = freshSince !== undefined && wasAskedSince(claims.auth_time, freshSince);
    const names = [claims.email, claims.name].filter((one) => typeof one === 'string');
    const headers = await browserSessions.create({
      user,
      displayName: shorten(escapeInvisible(names.find((one) => one !== '') ?? user.sub), MAX_NAME),
      isFresh,
      isOperator: isStringArray(claims.groups) && claims.groups.some((one) => adminGroups.has(one)),
      sid,
      idToken: selectHint(idToken),
      logoutMark,
    });
    // That page alone asks for it, and says what came of it.
    const tells = redirectUri === accountUrl && freshSince !== undefined;
    const notice = tells ? (isFresh ? '?all=1' : '?unsure=1') : '';
    const reply = createRedirectReply(redirectUri + notice);
    return { ...reply, headers: { ...reply.headers, ...headers } };
  };
}

/** OpenID Connect Core §3.1.2.1: without `auth_time` nobody knows. The provider's clock may be behind. */
const wasAskedSince = (authTime: unknown, since: number): boolean =>
  typeof authTime === 'number' && authTime * 1000 >= since - TOLERANCE_MS;

const TOLERANCE_MS = 60_000;

/** Characters. */
const MAX_NAME = 200;
