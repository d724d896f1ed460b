// How a login ends from the provider's side: RP-Initiated Logout 1.0, and Back-Channel Logout 1.0.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Habits, type Login, readSeconds, type Surroundings } from './habits.ts';
import { sendPage } from './login-page.ts';
import type { Logins } from './logins.ts';

/** Whose logins end: those of a session, or all of a person. */
export type LoggedOut = { readonly sid: string } | { readonly sub: string };

/** What was posted to the gateway, and how that was answered; status 0 where nobody answered. */
export interface SentLogout {
  readonly logoutToken: string;
  readonly status: number;
}

export interface LogoutDeps {
  readonly habits: Habits;
  readonly here: Surroundings;
  readonly logins: Logins;
  /** Where logout tokens are posted to; undefined where nobody registered. */
  readonly getLogoutUrl: () => string | undefined;
}

export function createLogout({ habits, here, logins, getLogoutUrl }: LogoutDeps) {
  /** Back-Channel Logout §2.4, §2.5. */
  async function send(names: object): Promise<SentLogout[]> {
    const url = getLogoutUrl();
    if (url === undefined || habits.logoutTokenNames.length === 0) return [];
    const now = readSeconds(here);
    const claims = {
      // What the issuer would add.
      sub: undefined,
      aud: here.clientId,
      iat: now,
      exp: habits.logoutTokenSeconds && now + habits.logoutTokenSeconds,
      jti: randomUUID(),
      events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
      ...names,
    };
    const logoutToken = await here.issuer.sign(claims, { header: { typ: 'logout+jwt' } });
    const body = new URLSearchParams({ logout_token: logoutToken });
    const answer = await fetch(url, { method: 'POST', body }).catch(() => undefined);
    return [{ logoutToken, status: answer?.status ?? 0 }];
  }

  const nameOf = ({ sid, person: { sub } }: Login): object => ({
    ...(habits.logoutTokenNames.includes('sid') && { sid }),
    ...(habits.logoutTokenNames.includes('sub') && { sub }),
  });

  async function logOut(whom: LoggedOut): Promise<readonly SentLogout[]> {
    const isMeant = ({ sid, person: { sub } }: Login): boolean =>
      'sid' in whom ? sid === whom.sid : sub === whom.sub;
    const meant = logins.list().filter(isMeant);
    logins.endWhere((login) => isMeant(login) && !habits.survivesLogout(login));
    const sent = await Promise.all(meant.map((login) => send(nameOf(login))));
    return sent.flat();
  }

  return {
    logOut,
    async answerEndSession(req: IncomingMessage, res: ServerResponse, form: URLSearchParams) {
      const { searchParams: query } = new URL(req.url ?? '', here.origin);
      const read = (name: string) => query.get(name) ?? form.get(name);
      const sid = readSession(read('id_token_hint'));
      if (sid === undefined) {
        const body = '<p>Missing parameters: id_token_hint</p>';
        sendPage(res, { status: 400, title: 'We are sorry …', body });
        return;
      }
      await logOut({ sid });
      const back = read('post_logout_redirect_uri');
      if (back === null || !URL.canParse(back)) {
        sendPage(res, { title: 'You are logged out', body: '' });
        return;
      }
      const url = new URL(back);
      const state = read('state');
      if (state !== null) url.searchParams.set('state', state);
      res.writeHead(302, { location: url.href }).end();
    },
  };
}

/** `sid` of an ID token that was issued here; that it has expired does not matter (RP-Initiated Logout §2). */
function readSession(idToken: string | null): string | undefined {
  try {
    const payload = Buffer.from(idToken?.split('.')[1] ?? '', 'base64url').toString();
    const { sid }: { sid?: string } = JSON.parse(payload);
    return sid;
  } catch {
    return undefined;
  }
}
