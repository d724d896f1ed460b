// /account as a browser sees it: a login at the page, its forms and its cookies.
import type { Claims, OpaqueProvider } from '../providers/opaque-provider.ts';
import type { OwnTokenLogins } from './own-tokens.ts';

export interface AccountVisit {
  /** Where the browser was sent to log in. */
  readonly asked: URL;
  readonly back: Awaited<ReturnType<OwnTokenLogins['steps']['callback']>>;
  /** All that the browser sends. */
  readonly cookie: string;
  /** The one of the page alone. */
  readonly session: string;
}

export async function openAccount(
  { steps, provider }: Pick<OwnTokenLogins, 'steps'> & { readonly provider: OpaqueProvider },
  claims?: Claims,
): Promise<AccountVisit> {
  const begun = await steps.get('/account');
  const asked = new URL(begun.headers.location ?? '');
  const cookie = readCookie(begun.headers['set-cookie']);
  const back = await steps.callback(provider.logIn(asked, claims), cookie);
  const session = readCookie(back.headers['set-cookie']);
  return { asked, back, cookie: `${cookie}; ${session}`, session };
}

export const readCookie = (header: unknown): string => String(header).split(';')[0] ?? '';

export const readCsrf = (page: string): string =>
  /name="csrf" value="([^"]+)"/.exec(page)?.[1] ?? '';

export const readGrants = (page: string): readonly string[] =>
  [...page.matchAll(/name="grant" value="([^"]+)"/g)].map(([, id]) => id ?? '');
